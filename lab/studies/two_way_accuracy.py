"""Accuracy of two-way histories: against exact training, and by the fan-out of `few`.

    python -m lab.studies.two_way_accuracy --out results/two-way-accuracy.jsonl
    python -m lab.studies.two_way_accuracy --show --out docs/results/two-way-accuracy.jsonl

Every run of (graph, estimator, fan-out, seed) is a line of the file; what is there is not run
again, so a stopped run goes on. Planetoid's graphs are trained in minibatches of an eighth of the
nodes (GCN, the paper's settings), the generated ones by GraphSAGE of 128 hidden units, dropout .2.
Accuracies do not depend on what else the machine does; seconds do: they are measured by --seconds,
one epoch of each in turns, and want a quiet machine.
"""

from __future__ import annotations

import argparse
import math
import statistics
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from lab.harness.graphs import scaled_graph
from lab.harness.records import Record, append_record, read_lines
from lab.harness.trainers import EndlessTrainer
from vrgcn import TrainConfig, fit
from vrgcn.engine.samplers import usual_fanout
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import build_model

FANOUTS = (0, 1, 2, 3, 4, 6, 8)
REFERENCE = "exact"
DENSE = ("communities, 2 layers", "communities, 3 layers", "reddit-like")


@dataclass(frozen=True)
class Problem:
    """A graph by name, the model and its training; eighths: minibatches of V/8 nodes."""

    dataset: str
    model: ModelConfig
    train: TrainConfig
    eighths: bool = False


_GCN = ModelConfig(model="gcn", hidden=32, dropout=0.5, layer_norm=False)
_KIPF = TrainConfig(
    epochs=100,
    weight_decay=5e-4,
    visit="all",
    select="last",
    evaluate_every=100,
    average_weights=False,
)
_SAGE = ModelConfig(model="graphsage", hidden=128, dropout=0.2)
_PLAIN = TrainConfig(epochs=24, diagnostics=0, average_weights=False)
PROBLEMS = {
    "cora": Problem("cora", _GCN, _KIPF, eighths=True),
    "citeseer": Problem("citeseer", _GCN, _KIPF, eighths=True),
    "pubmed": Problem("pubmed", _GCN, _KIPF, eighths=True),
    "communities, 2 layers": Problem("communities", _SAGE, _PLAIN),
    "communities, 3 layers": Problem(
        "communities", replace(_SAGE, layers=3), replace(_PLAIN, epochs=8)
    ),
    "sparse-communities, 2 layers": Problem(
        "sparse-communities", _SAGE, replace(_PLAIN, learning_rate=0.005, epochs=16)
    ),
    "sparse-communities, 3 layers": Problem(
        "sparse-communities",
        replace(_SAGE, layers=3),
        replace(_PLAIN, learning_rate=0.005, epochs=16),
    ),
    "reddit-like": Problem(
        "reddit-like",
        replace(_SAGE, dense=2, layer_norm=True),
        replace(_PLAIN, learning_rate=0.003, epochs=5, inductive=True, history_dtype="float16"),
    ),
}


@dataclass(frozen=True)
class Unit:
    problem: str
    estimator: str
    fanout: int | None
    seed: int


def units(problems: list[str], seeds: int, fanout_seeds: int) -> list[Unit]:
    """Return units seed by seed, so that a stopped run has equally many of each.

    seeds: of the comparison with exact training; fanout_seeds: of other estimators and fan-outs
    """
    usual = usual_fanout("few")
    compared: list[tuple[str, int | None]] = [(REFERENCE, None), ("two-way", usual)]
    others: list[tuple[str, int | None]] = [
        ("cvd", 1),
        ("history", None),
        ("two-way-cv", 1),
        *(("two-way", fanout) for fanout in FANOUTS if fanout != usual),
    ]
    return [
        Unit(problem, estimator, fanout, seed)
        for seed in range(max(seeds, fanout_seeds))
        for problem in problems
        for kinds, count in ((compared, seeds), (others, fanout_seeds))
        for estimator, fanout in kinds
        if seed < count
        # Hardly any node there has so few neighbours: all fan-outs are the same.
        and not (problem in DENSE and estimator == "two-way" and fanout != usual)
    ]


class Graphs:
    """Graphs that are opened once each, features scaled as in training."""

    def __init__(self, root: Path | None) -> None:
        self.root = root
        self.known: dict[str, Graph] = {}

    def __getitem__(self, name: str) -> Graph:
        if name not in self.known:
            graph = scaled_graph(name, self.root)
            # These fit in memory as they are, and dense rows are faster to gather.
            self.known[name] = graph.with_features(graph.features.to_dense())
        return self.known[name]


def _parts(unit: Unit, graph: Graph) -> tuple[torch.nn.Module, Graph, TrainConfig]:
    problem = PROBLEMS[unit.problem]
    fanout = None if unit.fanout is None else (unit.fanout,)
    config = replace(
        problem.train, estimator=unit.estimator, fanout=fanout, seed=unit.seed, diagnostics=0
    )
    if problem.eighths:
        config = replace(config, batch_size=math.ceil(graph.num_nodes / 8))
    model = build_model(problem.model, graph.num_features, graph.num_classes, unit.seed)
    return model, graph, config


def run(unit: Unit, graph: Graph) -> Record:
    result = fit(*_parts(unit, graph))
    return asdict(unit) | {"val": result.val, "test": result.test}


def measure(problems: list[str], graphs: Graphs, turns: int) -> list[Record]:
    """Return the median seconds of an epoch of each, in turns; two epochs come before."""
    found = []
    for problem in problems:
        mine = units([problem], 1, 1)
        graph = graphs[PROBLEMS[problem].dataset]
        running = [EndlessTrainer(*_parts(unit, graph)) for unit in mine]
        times: list[list[float]] = [[] for _ in mine]
        for turn in range(turns + 1):
            for each, seconds in zip(running, times, strict=True):
                taken = each.run(each.steps_per_epoch)
                if each.diverged is not None:
                    raise FloatingPointError(each.diverged)
                if turn:
                    seconds.append(taken)
        found += [
            asdict(unit) | {"epoch_seconds": statistics.median(seconds)}
            for unit, seconds in zip(mine, times, strict=True)
        ]
    return found


def show(records: list[Record]) -> None:
    """Show a row for each estimator and fan-out: mean test accuracy, and the difference from
    exact."""
    for problem in PROBLEMS:
        mine = [record for record in records if record["problem"] == problem]
        if not mine:
            continue
        print(f"\n{problem}\n| estimator | runs | test | against exact | s an epoch |")
        print("|---|---|---|---|---|")
        groups: dict[tuple[object, object], list[Record]] = {}
        for record in mine:
            groups.setdefault((record["estimator"], record["fanout"]), []).append(record)
        exact = [100 * r["test"] for r in groups.get((REFERENCE, None), []) if "test" in r]
        for (estimator, fanout), group in groups.items():
            tests = [100 * r["test"] for r in group if "test" in r]
            times = [r["epoch_seconds"] for r in group if "epoch_seconds" in r]
            name = f"{estimator}" + ("" if fanout is None else f", fan-out {fanout}")
            spread = statistics.stdev(tests) if len(tests) > 1 else 0.0
            against = "–"
            if len(exact) > 1 and len(tests) > 1 and estimator != REFERENCE:
                error = math.sqrt(spread**2 / len(tests) + statistics.variance(exact) / len(exact))
                difference = statistics.mean(tests) - statistics.mean(exact)
                against = f"{difference:+.2f} ± {error:.2f}"
            mean = f"{statistics.mean(tests):.2f} ± {spread:.2f}" if tests else "–"
            seconds = f"{times[-1]:.3f}" if times else "–"
            print(f"| {name} | {len(tests)} | {mean} | {against} | {seconds} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--fanout-seeds", type=int, default=3, help="of what is not compared with exact"
    )
    parser.add_argument("--units", type=int, default=None, help="stop after so many runs")
    parser.add_argument("--out", type=Path, default=Path("results/two-way-accuracy.jsonl"))
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--seconds", action="store_true", help="measure epochs in turns instead")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--show", action="store_true", help="print the tables of what is there")
    given = parser.parse_args()
    graphs = Graphs(given.data_root)
    if given.seconds:
        for record in measure(given.problems, graphs, given.turns):
            append_record(given.out, record)
    elif not given.show:
        done = {
            Unit(*(record[name] for name in ("problem", "estimator", "fanout", "seed")))
            for record in read_lines(given.out)
            if "test" in record
        }
        asked = units(given.problems, given.seeds, given.fanout_seeds)
        todo = [unit for unit in asked if unit not in done]
        for number, unit in enumerate(todo[: given.units], start=1):
            print(f"{number}/{len(todo)} {unit}", flush=True)
            append_record(given.out, run(unit, graphs[PROBLEMS[unit.problem].dataset]))
    show(read_lines(given.out))


if __name__ == "__main__":
    main()
