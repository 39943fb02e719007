"""How near `auto` comes to the best estimator: seconds to a common validation score on real graphs.

    python -m lab.studies.auto_choice --out results/auto-choice.jsonl
    python -m lab.studies.auto_choice --show --out docs/results/auto-choice.jsonl

Every run of (graph, estimator, split) is a line of the file; what is there is not run again. A run
trains the network of `vrgcn train` by default and is scored exactly several times an epoch; scoring
is not counted. Seconds are those of the processor, one thread.

One validation score of 500 nodes is mostly luck. So curves are means over the splits: of the best
score so far, which is that of the weights that a run keeps, and of the seconds until then. The
target on a graph is `SHARE` of the best mean score that any estimator reached. The table shows how
much longer the choice of `auto` takes than the best estimator, with its 5% and 95% quantiles if
the splits are drawn anew, and the same if the rule's one threshold is fitted on the other graphs.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from lab.harness.records import Record, append_record, in_order, of, read_lines
from lab.harness.trainers import EndlessTrainer
from lab.harness.version import code_version
from lab.league.real_graphs import GRAPHS, Entry, data_folder, entry_of, load
from vrgcn.costs.choice import CANDIDATES, EXACT, choice_by
from vrgcn.costs.epoch_cost import HARDLY_MORE, Cost
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.models.config import ModelConfig
from vrgcn.runs.settings import Settings
from vrgcn.training.config import TrainConfig

ESTIMATORS = (EXACT, *CANDIDATES, "history")
SHARE = 0.99
TURNS = 3  # scores in an epoch
EPOCHS = 200
SECONDS = 12.0  # of training, after which a run ends
PATIENCE = 24  # turns without a better score, after which it ends too
DRAWS = 200  # of splits, for the spread of an excess
COUNTS = ("nodes", "neighbours", "entries", "steps")  # of a cost, as a record keeps them


@dataclass(frozen=True)
class Unit:
    graph: str
    estimator: str
    split: int


def run(unit: Unit, entry: Entry, *, epochs: int = EPOCHS, seconds: float = SECONDS) -> Record:
    """Train by one estimator; return its scores and the processor's seconds until each."""
    config = TrainConfig(
        unit.estimator, metric=entry.asked, seed=unit.split, diagnostics=0, threads=1
    )
    job = Settings(model=ModelConfig(), train=config).prepare(entry.graph)
    cost = job.costs([unit.estimator])[unit.estimator]
    training = EndlessTrainer(job.model, entry.graph, job.config)
    curve = _curve(training, entry, epochs=epochs, seconds=seconds)
    counted = {name: getattr(cost, name) for name in COUNTS}
    return asdict(unit) | curve | counted | {"version": code_version()}


def _curve(
    training: EndlessTrainer, entry: Entry, *, epochs: int, seconds: float
) -> dict[str, list[float]]:
    trainer, steps = training.trainer, training.steps_per_epoch
    assert trainer.average is not None
    assert entry.graph.labels is not None
    sweeps = ExactSweeps(trainer.model, trainer.minibatches.setup)
    turns = min(TURNS, steps)
    labels = entry.graph.labels[entry.graph.val]
    spent, scores, until = 0.0, list[float](), list[float]()
    for turn in range(turns * epochs):
        start = time.process_time()
        training.run(steps * (turn + 1) // turns - steps * turn // turns)
        spent += time.process_time() - start
        if training.diverged is not None or spent > seconds:
            break
        with trainer.average.applied():
            scores.append(entry.metric.compute(sweeps.outputs(entry.graph.val), labels))
        until.append(round(spent, 5))
        if turn - scores.index(max(scores)) > PATIENCE:
            break
    return {"val": [round(score, 5) for score in scores], "cpu_seconds": until}


def times(records: list[Record], graph: str) -> dict[str, float]:
    """Return the seconds of each estimator to the target, by mean curves over the splits that all
    have. One that never gets there counts as twice the longest."""
    return _times(of(records, graph=graph), _shared(records, graph))


def _shared(records: list[Record], graph: str) -> list[int]:
    """Return the splits of which every estimator has a run."""
    mine = of(records, graph=graph)
    names = in_order(mine, "estimator")
    return sorted(set.intersection(*({r["split"] for r in of(mine, estimator=n)} for n in names)))


def _times(mine: list[Record], splits: list[int]) -> dict[str, float]:
    """Return the seconds by the runs of some splits; one that is named twice counts twice."""
    curves = {
        name: mean_curve([of(mine, estimator=name, split=split)[0] for split in splits])
        for name in in_order(mine, "estimator")
    }
    target = SHARE * max(score for curve in curves.values() for _, score in curve)
    never = 2 * max(curve[-1][0] for curve in curves.values())
    return {
        name: next((seconds for seconds, score in curve if score >= target), never)
        for name, curve in curves.items()
    }


def spread(records: list[Record], graph: str, chosen: str) -> tuple[float, float] | None:
    """Return the 5% and 95% quantiles of the chosen estimator's excess over splits that are drawn
    anew; None for fewer than three splits."""
    mine, splits = of(records, graph=graph), _shared(records, graph)
    if len(splits) < 3:
        return None
    draw = random.Random(0)
    drawn = (draw.choices(splits, k=len(splits)) for _ in range(DRAWS))
    cuts = statistics.quantiles((excess(_times(mine, each), chosen) for each in drawn), n=20)
    return cuts[0], cuts[-1]


def mean_curve(runs: list[Record]) -> list[tuple[float, float]]:
    """Return, turn by turn, means over runs of the seconds and of the best score so far. A run that
    has ended keeps both."""
    turns = max(len(run["val"]) for run in runs)
    seconds = [_held(run["cpu_seconds"], turns) for run in runs]
    scores = [_held(list(accumulate(run["val"], max)), turns) for run in runs]
    means = (map(statistics.mean, zip(*each, strict=True)) for each in (seconds, scores))
    return list(zip(*means, strict=True))


def _held(values: list[float], count: int) -> list[float]:
    """Return the values with the last one repeated until there are `count`."""
    return values + [values[-1]] * (count - len(values))


def costs(records: list[Record], graph: str) -> dict[str, Cost]:
    """Return the counted cost of an epoch of each estimator."""
    mine = of(records, graph=graph, split=0)
    return {
        record["estimator"]: Cost(memory={}, **{name: record[name] for name in COUNTS})
        for record in mine
    }


def excess(times: dict[str, float], chosen: str) -> float:
    """Return how many times as long as the best estimator the chosen one takes."""
    return times[chosen] / min(times.values())


def fitted(known: dict[str, tuple[dict[str, float], dict[str, Cost]]]) -> float:
    """Return the threshold `HARDLY_MORE` that loses least time on these graphs, the middle of the
    best range of thresholds. known: times and costs by graph"""
    ratios = sorted(cost[EXACT].work / cost[CANDIDATES[0]].work for _, cost in known.values())
    between = [(a + b) / 2 for a, b in zip([1.0, *ratios], [*ratios, 2 * ratios[-1]], strict=True)]

    def lost(threshold: float) -> float:
        return sum(
            min(excess(time, choice_by(cost, threshold).estimator), 10.0) - 1
            for time, cost in known.values()
        )

    least = min(map(lost, between))
    best = [threshold for threshold in between if lost(threshold) <= least + 1e-9]
    return best[len(best) // 2]


def show(records: list[Record]) -> str:
    """Return the table: seconds to the target by each estimator, what `auto` takes, and its
    excess."""
    known = {name: (times(records, name), costs(records, name)) for name in _complete(records)}
    lines = [
        f"| graph | {' | '.join(ESTIMATORS)} | work, exact to two-way | auto | excess | "
        "fitted on the others | excess |",
        "|---" * (len(ESTIMATORS) + 6) + "|",
    ]
    for name, (time_of, cost) in known.items():
        chosen = choice_by(cost).estimator
        others = {other: value for other, value in known.items() if other != name}
        threshold = fitted(others) if others else HARDLY_MORE
        held_out = choice_by(cost, threshold).estimator
        cells: list[Any] = [
            name,
            *(f"{time_of[each]:.2f}" for each in ESTIMATORS),
            f"{cost[EXACT].work / cost[CANDIDATES[0]].work:.2f}",
            chosen,
            f"{excess(time_of, chosen):.2f}" + _interval(spread(records, name, chosen)),
            f"{held_out} ({threshold:.2f})",
            f"{excess(time_of, held_out):.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f" ({ends[0]:.2f} to {ends[1]:.2f})"


def _complete(records: list[Record]) -> list[str]:
    """Return the graphs that have a run of every estimator."""
    return [
        name
        for name in in_order(records, "graph")
        if {record["estimator"] for record in of(records, graph=name)} >= set(ESTIMATORS)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of training, for each run")
    parser.add_argument("--out", type=Path, default=Path("results/auto-choice.jsonl"))
    parser.add_argument("--show", action="store_true", help="print the table of what is there")
    given = parser.parse_args()
    folder = data_folder()
    if folder is None and not given.show:
        parser.error("no real graphs: name their folder by VRGCN_DATA")
    done = {Unit(r["graph"], r["estimator"], r["split"]) for r in read_lines(given.out)}
    torch.set_num_threads(1)
    for split in range(0 if given.show else given.splits):
        for name in given.graphs:
            todo = [u for e in ESTIMATORS if (u := Unit(name, e, split)) not in done]
            if not todo or folder is None:
                continue
            entry = entry_of(name, load(name, split, folder))
            for unit in todo:
                print(unit, flush=True)
                record = run(unit, entry, epochs=given.epochs, seconds=given.seconds)
                append_record(given.out, record)
    print(show(read_lines(given.out)))


if __name__ == "__main__":
    main()
