"""Two-way histories with and without a moving frame: test scores at equal epochs.

    python -m lab.studies.moving_frame --out results/moving-frame.jsonl
    python -m lab.studies.moving_frame --show results/moving-frame.jsonl

The networks are those of the race (`pyg_residual.py`), the settings those of `vrgcn train`. After
each epoch the outputs are exact, and validation and test nodes are scored. Every (graph, network,
estimator, seed) is a line of the file; what is there is not run again, so a stopped run continues.
Scores do not depend on what else the machine does. The table has means ± deviations over the seeds:
after one epoch, of the last epoch, of the best by validation, and the swing of the test score over
the last five. Sparse features are centred, as `vrgcn train` centres them; `--starts` also trains
without that:

    python -m lab.studies.moving_frame --starts --estimators exact two-way --depths 2 3
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import product
from pathlib import Path

import torch

from lab.harness.graphs import scaled_graph
from lab.harness.records import Record, append_record, read_lines
from lab.harness.trainers import EndlessTrainer
from lab.harness.version import code_version
from lab.league.real_graphs import GRAPHS, Entry, data_folder, entry_of, load
from lab.studies.pyg_race import network
from lab.studies.pyg_residual import Layer, SameResidual
from vrgcn.files.mistakes import InputError
from vrgcn.training.config import TrainConfig

# By graph: epochs of a run.
EPOCHS = {
    "blogcatalog_attributed": 20,
    "tolokers": 20,
    "amazon_computers": 15,
    "facebook_large": 10,
    "communities": 8,
    "facebook100": 5,
    "reddit-like": 3,
}
LAYERS: tuple[Layer, ...] = ("GCN", "GraphSAGE")
EXACT = "exact"
ESTIMATORS = {
    EXACT: EXACT,
    "cvd": "cvd",
    "two-way raw": "few/corrected/corrected/raw",
    "two-way": "two-way",
}
RATE = 0.01
LAST = 5  # epochs whose swing is shown


@dataclass(frozen=True)
class Unit:
    """centred: whether sparse features are centred, as `vrgcn train` does by default"""

    graph: str
    layer: Layer
    depth: int
    centred: bool
    estimator: str
    seed: int

    @property
    def network(self) -> str:
        start = "" if self.centred else ", features as they are"
        return f"{self.graph}, {self.layer}, {self.depth} layers{start}"


def units(
    graphs: Sequence[str],
    layers: Sequence[Layer],
    estimators: Sequence[str],
    seeds: int,
    *,
    depths: Sequence[int] = (2,),
    centred: Sequence[bool] = (True,),
) -> Iterator[Unit]:
    """Yield units seed by seed, so that a stopped run has equally many of each."""
    for seed in range(seeds):
        for graph, layer, depth, its in product(graphs, layers, depths, centred):
            for estimator in estimators:
                yield Unit(graph, layer, depth, its, estimator, seed)


@cache
def entry(name: str) -> Entry:
    """A graph with scaled features: one of the league, or a generated one."""
    if name not in GRAPHS:
        return Entry(name, scaled_graph(name))
    folder = data_folder()
    if folder is None:
        raise InputError(f"{name} is one of the real graphs: name their folder by VRGCN_DATA")
    return entry_of(name, load(name, 0, folder))


def run(unit: Unit, its: Entry, epochs: int) -> Record:
    """Return the scores of validation and test nodes after each epoch."""
    torch.manual_seed(unit.seed)
    config = TrainConfig(
        estimator=ESTIMATORS[unit.estimator],
        learning_rate=RATE,
        seed=unit.seed,
        metric=its.asked,
        threads=1,
    )
    model = network(SameResidual, unit.layer, its, depth=unit.depth, centred=unit.centred)
    training = EndlessTrainer(model, its.graph, config)
    curves: dict[str, list[float]] = {"val": [], "test": []}
    for _ in range(epochs):
        training.run(training.steps_per_epoch)
        if training.diverged is not None:
            break
        with training.evaluated():
            outputs = training.trainer.evaluation.outputs(torch.arange(its.graph.num_nodes))
        for split, scores in curves.items():
            scores.append(its.scored(outputs, split))
    return asdict(unit) | curves | {"diverged": training.diverged, "version": code_version()}


def last(record: Record) -> float:
    return float(record["test"][-1])


def best(record: Record) -> float:
    """The test score of the epoch with the best validation score."""
    return float(record["test"][record["val"].index(max(record["val"]))])


def swing(record: Record) -> float:
    scores = record["test"][-LAST:]
    return float(max(scores) - min(scores))


def table(records: Sequence[Record]) -> str:
    """A row for each graph, network and estimator; in brackets the points above those of exact."""
    lines = [
        "| graph, network | estimator | runs | one epoch | last epoch (to exact) "
        f"| best by validation (to exact) | largest swing of {LAST} epochs |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(_unit(record).network, []).append(record)
    for title, group in groups.items():
        for estimator in ESTIMATORS:
            mine = [r for r in group if r["estimator"] == estimator and r["test"]]
            exact = [r for r in group if r["estimator"] == EXACT and r["test"]]
            if mine:
                cells = [_mean(100 * record["test"][0] for record in mine)]
                cells += [_against(mine, exact, score) for score in (last, best)]
                most = 100 * max(swing(record) for record in mine)
                row = [title, estimator, str(len(mine)), *cells, f"{most:.1f}"]
                lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _against(
    mine: Sequence[Record], exact: Sequence[Record], score: Callable[[Record], float]
) -> str:
    """Mean ± deviation in points, and the difference of means of the seeds that both have."""
    text = _mean(100 * score(record) for record in mine)
    theirs = {record["seed"]: 100 * score(record) for record in exact}
    pairs = [100 * score(r) - theirs[r["seed"]] for r in mine if r["seed"] in theirs]
    return f"{text} ({statistics.mean(pairs):+.1f})" if pairs else text


def _mean(scores: Iterable[float]) -> str:
    found = [*scores]
    deviation = statistics.stdev(found) if len(found) > 1 else 0.0
    return f"{statistics.mean(found):.1f} ± {deviation:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.studies.moving_frame")
    parser.add_argument("--out", type=Path, default=Path("results/moving-frame.jsonl"))
    parser.add_argument("--graphs", nargs="+", choices=EPOCHS, default=list(EPOCHS))
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--depths", nargs="+", type=int, default=[2])
    parser.add_argument(
        "--starts", action="store_true", help="also with sparse features as they are"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--units", type=int, help="stop after so many runs")
    parser.add_argument("--show", type=Path, help="print the table of these records, run nothing")
    given = parser.parse_args()
    if given.show is None:
        torch.set_num_threads(1)
        done = {_unit(record) for record in read_lines(given.out)}
        asked = units(
            given.graphs,
            given.layers,
            given.estimators,
            given.seeds,
            depths=given.depths,
            centred=(True, False) if given.starts else (True,),
        )
        todo = [unit for unit in asked if unit not in done]
        for number, unit in enumerate(todo[: given.units], start=1):
            record = run(unit, entry(unit.graph), EPOCHS[unit.graph])
            append_record(given.out, record)
            score = "diverged" if not record["test"] else f"{100 * last(record):.1f}"
            print(f"{number}/{len(todo)} {unit}: {score}", flush=True)
    print(table(read_lines(given.show or given.out)))


def _unit(record: Record) -> Unit:
    return Unit(**{field.name: record[field.name] for field in fields(Unit)})


if __name__ == "__main__":
    main()
