"""Table 4: epochs and seconds until a validation accuracy is reached, and the appendix's version of
it with three layers on a graph whose degrees are capped.

All algorithms of a table train side by side, half an epoch each in turn (lab.harness.race), so that
none is disturbed more than another. The MLP is the same model under P = I: the same dense layers,
batches and dropout, and no neighbour. Its time is the limit that the algorithms with one sampled
neighbour come close to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from statistics import median

import torch

from lab.harness.algorithms import TWO_WAY
from lab.harness.race import Entry, Validation, race, turns_to
from lab.harness.records import Record, in_order, of, rounded
from lab.harness.trainers import EndlessTrainer
from lab.harness.units import Unit
from lab.paper.experiment import Choice, Experiment, Verdict
from lab.paper.paper import TABLE4, TABLE4_DEEP, Convergence
from lab.paper.settings import (
    NOT_THE_PAPERS,
    chosen_datasets,
    dataset_label,
    epochs_of,
    open_graph,
    setting,
)
from vrgcn.engine.devices import use_threads
from vrgcn.engine.samplers.uniform import uniform
from vrgcn.files.wording import counted
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import build_propagation
from vrgcn.pages.page import Page

REDDITS = ("reddit", "reddit2")
PARTS = 2  # turns of an epoch
RUNS = 3
QUICK_EPOCHS = 2
LIMIT = 3.0  # times the MLP's seconds
MLP = "MLP"


@dataclass(frozen=True)
class Version:
    """layers: graph layers; target: validation accuracy; cap: neighbours that a node keeps
    datasets: those that it says something about
    """

    layers: int
    target: float
    cap: int | None
    paper: dict[str, Convergence]
    datasets: tuple[str, ...]
    title: str

    @property
    def algorithms(self) -> tuple[str, ...]:
        return (MLP, *self.paper, TWO_WAY)


VERSIONS = {
    2: Version(
        2,
        0.96,
        None,
        TABLE4,
        ("reddit-like", *REDDITS),
        "2 layers, to 96% validation accuracy",
    ),
    3: Version(
        3,
        0.94,
        10,
        TABLE4_DEEP,
        ("reddit-like-strong", *REDDITS),
        "3 layers, degrees capped at 10, to 94%",
    ),
}


def epoch_limit(dataset: str, algorithm: str) -> int:
    """Return the number of epochs after which it is "never".

    On the graphs in Reddit's place exact training takes a minute per epoch on two cores, and
    algorithms that converge do so within a few.
    """
    if dataset.startswith("reddit-like"):
        return 3 if algorithm == "Exact+PP" else 6
    if dataset == "communities":
        return 20
    return {"Exact+PP": 15, "CV+PP": 30, "CVD+PP": 30, TWO_WAY: 30, "NS": 100}.get(algorithm, 60)


def units(choice: Choice) -> list[Unit]:
    """A race for each data set, version and seed."""
    runs = choice.runs or (1 if choice.quick else RUNS)
    return [
        Unit(
            {"dataset": name, "layers": layers, "seed": seed, "quick": choice.quick},
            partial(run, name, layers, seed, choice),
            _epochs(name, version, choice),
        )
        for layers, version in VERSIONS.items()
        for name in chosen_datasets(
            choice, version.datasets, among=(*version.datasets, "communities")
        )
        for seed in range(runs)
    ]


def _epochs(dataset: str, version: Version, choice: Choice) -> int:
    """Return the maximum epochs of an algorithm in the race."""
    return max(
        epochs_of(choice, epoch_limit(dataset, name), QUICK_EPOCHS) for name in version.algorithms
    )


def run(dataset: str, layers: int, seed: int, choice: Choice) -> Record:
    paper, version = setting(dataset), VERSIONS[layers]
    use_threads(choice.threads)
    graph = open_graph(dataset, choice)
    if version.cap is not None:
        graph = _capped(graph, version.cap)
    entries = {
        algorithm: Entry(
            EndlessTrainer(
                paper.build(algorithm, graph, seed, layers=layers),
                graph,
                paper.config(algorithm, seed, threads=choice.threads),
            ),
            epochs_of(choice, epoch_limit(dataset, algorithm), QUICK_EPOCHS),
        )
        for algorithm in version.algorithms
    }
    found = race(
        entries, Validation(graph), target=version.target, parts=PARTS, seed=seed, pace=MLP
    )
    return {
        "label": dataset_label(dataset, choice),
        "planned": _epochs(dataset, version, choice),
        "target": version.target,
        "threads": torch.get_num_threads(),
        "parts": PARTS,
        "algorithms": {
            name: {
                "val": [rounded(value) for value in runner.val],
                "seconds": [rounded(value) for value in runner.seconds],
                "diverged": runner.training.diverged,
            }
            for name, runner in found.items()
        },
    }


def cap_degrees(graph: Graph, most: int, seed: int = 0) -> Graph:
    """Return the graph in which each node keeps at most `most` of its neighbours, drawn at random.

    Node u keeping v does not make v keep u: the graph is directed, as in GraphSAGE.
    """
    everyone = torch.arange(graph.num_nodes)
    generator = torch.Generator().manual_seed(seed)
    kept = uniform(build_propagation("mean", graph), everyone, most, generator).edges
    return Graph(
        torch.stack([kept.indices, kept.row_of_entry]),
        graph.features,
        graph.labels,
        train=graph.train,
        val=graph.val,
        test=graph.test,
        num_classes=graph.num_classes,
    )


@lru_cache(maxsize=1)
def _capped(graph: Graph, most: int) -> Graph:
    return cap_degrees(graph, most)


def render(records: list[Record], page: Page, folder: Path) -> list[Verdict]:
    """Show a table for each data set and version."""
    page.text(
        "Seconds of training until the validation accuracy is reached; evaluation and the one-off "
        "average of the features (PP) are not counted. All algorithms train in one process, half "
        "an epoch each in turn. Figures are medians over the runs; the ratio to the MLP's seconds "
        "is formed in each turn. The paper's seconds are those of a Titan X, and its Exact samples "
        f"20 neighbours; ours uses all of them. {NOT_THE_PAPERS}"
    )
    verdicts = []
    for layers, version in VERSIONS.items():
        for dataset in in_order(of(records, layers=layers), "dataset"):
            mine = of(records, layers=layers, dataset=dataset)
            title = f"{mine[0]['label']}, {version.title}"
            _add_table(mine, page, version, title)
            verdicts += _verdicts(mine, version, title)
    return verdicts


def _add_table(records: list[Record], page: Page, version: Version, title: str) -> None:
    rows = []
    for algorithm in records[0]["algorithms"]:
        rows.append(
            [
                algorithm,
                *arrival(records, algorithm),
                f"{epoch_seconds(records, algorithm):.2f}",
                f"{over_mlp(records, algorithm):.2f}",
                *paper_text(version.paper.get(algorithm)),
            ]
        )
    runs = counted(len(records), "run")
    threads = " and ".join(counted(n, "thread") for n in sorted({r["threads"] for r in records}))
    page.table(
        [
            *("algorithm", "epochs", "seconds", "s per epoch", "÷ MLP's"),
            *("paper: epochs", "paper: seconds"),
        ],
        rows,
        caption=f"{title}; {runs}, {threads}",
    )


def reached(record: Record, algorithm: str) -> float | None:
    """Return the epochs until the target; None if it was never reached."""
    turns = turns_to(record["target"], record["algorithms"][algorithm]["val"])
    return None if turns is None else turns / record["parts"]


def seconds_to_target(record: Record, algorithm: str) -> float:
    """Return the seconds until the target; infinity if it was never reached."""
    epochs = reached(record, algorithm)
    if epochs is None:
        return math.inf
    return sum(record["algorithms"][algorithm]["seconds"][: round(epochs * record["parts"])])


def speedup(records: Sequence[Record]) -> float | None:
    """Return the speedup of CVD+PP over exact training, by their median seconds; None if one has
    none."""
    exact, ours = (
        median(seconds_to_target(record, name) for record in records)
        for name in ("Exact+PP", "CVD+PP")
    )
    return exact / ours if math.isfinite(exact) and math.isfinite(ours) else None


def epoch_seconds(records: list[Record], algorithm: str) -> float:
    """Return the median over all turns of all runs, times the turns of an epoch."""
    turns = [s * r["parts"] for r in records for s in r["algorithms"][algorithm]["seconds"]]
    return median(turns)


def over_mlp(records: list[Record], algorithm: str) -> float:
    """Return the seconds over the MLP's in the same turn, the median over all turns of all runs:
    disturbances of both cancel."""
    ratios = [
        ours / theirs
        for record in records
        for ours, theirs in zip(
            *(record["algorithms"][name]["seconds"] for name in (algorithm, MLP)), strict=False
        )
    ]
    return median(ratios)


def arrival(records: Sequence[Record], algorithm: str) -> tuple[str, str]:
    """Return the median epochs and seconds to the target, counting runs that never reached it as
    the longest; or "never" and the best validation accuracy."""
    epochs = [reached(record, algorithm) for record in records]
    lost = epochs.count(None)  # including those that diverged
    middle = median(math.inf if each is None else each for each in epochs)
    if not math.isfinite(middle):
        parts = [record["algorithms"][algorithm] for record in records]
        best = max((100 * value for part in parts for value in part["val"]), default=0.0)
        most = max(len(part["seconds"]) for part in parts) / records[0]["parts"]
        some = f"{lost} of {len(epochs)} never" if lost < len(epochs) else "never"
        return f"{some} in {most:g} (best {best:.1f}%)", "–"
    seconds = median(seconds_to_target(record, algorithm) for record in records)
    return f"{middle:g}" + (f" ({lost} never)" if lost else ""), f"{seconds:.1f}"


def paper_text(paper: Convergence | None) -> tuple[str, str]:
    """Return epochs and seconds as `arrival` writes them."""
    if paper is None:
        return "–", "–"
    if paper.best is not None:
        return f"never in {paper.epochs:g} (best {paper.best}%)", f"{paper.seconds:g}"
    return f"{paper.epochs:g}", f"{paper.seconds:g}"


def _verdicts(records: list[Record], version: Version, title: str) -> list[Verdict]:
    quick = records[0]["quick"]
    ratios = {name: over_mlp(records, name) for name in ("CV+PP", "CVD+PP")}
    text = ", ".join(f"{name} {ratio:.2f} times" for name, ratio in ratios.items())
    cost = Verdict(
        None if quick else max(ratios.values()) <= LIMIT,
        f"Table 4, {title}: with one sampled neighbour (D=2) an epoch costs about that of an MLP "
        f"(median of the ratios in each turn at most {LIMIT:g}): {text}.",
    )
    return [cost, _faster(records, version, title, quick)]


def _faster(records: list[Record], version: Version, title: str, quick: bool) -> Verdict:
    """Return True if CVD+PP reaches the target, and in less time than exact training."""
    claim = f"Table 4, {title}: CVD+PP gets there in less time than exact training"
    if quick:
        return Verdict(None, f"{claim}: a quick run decides nothing.")
    exact, ours = (
        [seconds_to_target(record, name) for record in records] for name in ("Exact+PP", "CVD+PP")
    )
    if lost := ours.count(math.inf):
        told = f"in {lost} of {len(records)} runs CVD+PP did not get there in its epochs"
        return Verdict(False, f"{claim}: {told}.")
    factor = speedup(records)
    if factor is None:
        return Verdict(None, f"{claim}: exact training did not get there in its epochs.")
    lost = exact.count(math.inf)
    paper = version.paper["Exact+PP"].seconds / version.paper["CVD+PP"].seconds
    text = (
        f"{claim} (median seconds to the target; the paper: {paper:.1f} times as fast): "
        f"{median(ours):.1f} s against {median(exact):.1f} s, {factor:.1f} times as fast"
    )
    return Verdict(factor > 1, f"{text}{f'; exact did not in {lost} runs' if lost else ''}.")


EXPERIMENT = Experiment("table4", "Table 4: time to a given accuracy", units, render)
