"""Is `auto` right? Processor seconds of the estimators until the same validation score, on the
graphs of the league, and how much later than the soonest the one is that `auto` chooses.

    python -m lab.studies.auto_race --splits 3 --out results/auto-race.jsonl
    python -m lab.studies.auto_race --show results/auto-race.jsonl

The network of `vrgcn train` by default, one thread; evaluations are not counted. The target of a
graph and split is the best validation score of all estimators, less a point. Every (graph,
estimator, split) is a line of the file; what is there is not run again. `auto` chooses exact
training if it costs at most HARDLY_MORE times as much as two-way: the last table has other factors,
the best of them on the graphs that it is fitted on, and what it gives on the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import torch

from lab.harness.records import Record, append_record, in_order, of, read_lines
from lab.harness.version import code_version
from lab.league.real_graphs import GRAPHS, Entry, data_folder, entry_of, load
from lab.studies.pyg_race import Budget, Ours, race, warm_up
from lab.studies.pyg_times import seconds_to
from vrgcn.costs.choice import CANDIDATES, EXACT, HARDLY_MORE, work
from vrgcn.models.config import ModelConfig
from vrgcn.runs.settings import Settings
from vrgcn.training.config import TrainConfig

ESTIMATORS = ("exact", "two-way", "cvd", "history", "ns")
FITTED = ("tolokers", "facebook_large", "cora", "nell")  # the rule may be fitted on these
FACTORS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
BELOW = 0.01  # of the target below the best score
CLOSE = 1.1  # times the soonest estimator's seconds


def cost_ratio(entry: Entry) -> tuple[float | None, str]:
    """Return how many times as much as two-way exact training costs as `auto` counts it, None if
    there is nothing to compare, and what `auto` chooses."""
    job = Settings(model=ModelConfig(), train=TrainConfig(threads=1)).prepare(entry.graph)
    costs = job.costs((EXACT, *CANDIDATES))
    other = next((costs[name] for name in CANDIDATES if name in costs), None)
    ratio = None if other is None or EXACT not in costs else work(costs[EXACT]) / work(other)
    return ratio, job.config.estimator


def run(out: Path, graphs: Sequence[str], splits: int, budget: Budget) -> None:
    """Train by what has no record yet."""
    folder = data_folder()
    if folder is None:
        sys.exit("the real graphs are not here: name their folder by VRGCN_DATA")
    torch.set_num_threads(1)
    warm_up()
    done = {(r["graph"], r["estimator"], r["split"]) for r in read_lines(out)}
    rate = TrainConfig().learning_rate
    for graph in graphs:
        for split in range(splits):
            left = [name for name in ESTIMATORS if (graph, name, split) not in done]
            if not left:
                continue
            entry = entry_of(graph, load(graph, split, folder))
            ratio, chosen = cost_ratio(entry)
            for name in left:
                method = partial(Ours, entry, None, rate, split, name)
                found = race(method, entry, budget)
                record = {"graph": graph, "split": split, **found, "auto": chosen, "ratio": ratio}
                record |= {"degree": round(entry.graph.num_edges / entry.graph.num_nodes, 1)}
                append_record(out, record | {"version": code_version()})
                best = max(value for _, value in found["curve"])
                print(f"{graph} {split} {name}: best {best:.4f}, {found['wall']:.0f} s", flush=True)


@dataclass(frozen=True)
class Times:
    """Seconds to the target on one split of a graph.

    seconds: by estimator; None: never
    ratio: what exact training costs in epochs of two-way; chosen: by `auto`
    """

    graph: str
    seconds: dict[str, float | None]
    ratio: float | None
    chosen: str

    def behind(self, estimator: str) -> float:
        """Return the seconds of an estimator over those of the soonest; infinity if it never
        arrives."""
        mine = self.seconds.get(estimator)
        best = min(value for value in self.seconds.values() if value is not None)
        return float("inf") if mine is None else mine / best

    def by_factor(self, factor: float) -> str:
        """Return what `auto` would choose with another factor in place of HARDLY_MORE."""
        if self.ratio is None:
            return self.chosen
        return EXACT if self.ratio <= factor else CANDIDATES[0]


def times(records: Sequence[Record]) -> list[Times]:
    """Return the seconds of every split of every graph."""
    found = []
    for graph in in_order(records, "graph"):
        for split in in_order(of(records, graph=graph), "split"):
            mine = of(records, graph=graph, split=split)
            target = max(value for r in mine for _, value in r["curve"]) - BELOW
            seconds = {r["estimator"]: seconds_to(r, target) for r in mine}
            found.append(Times(graph, seconds, mine[-1]["ratio"], mine[-1]["auto"]))
    return found


def table(records: Sequence[Record]) -> str:
    """Seconds by graph and estimator, medians over splits, and how far behind the choice is."""
    names = [name for name in ESTIMATORS if of(records, estimator=name)]
    lines = [
        f"| graph | degree | {' | '.join(names)} | exact / two-way | auto | auto / soonest |",
        "|" + "---|" * (len(names) + 5),
    ]
    for graph in in_order(records, "graph"):
        mine = [each for each in times(records) if each.graph == graph]
        cells = [graph, f"{of(records, graph=graph)[0]['degree']:.0f}"]
        for name in names:
            taken = [each.seconds.get(name) for each in mine]
            arrived = [value for value in taken if value is not None]
            cells.append(f"{median(arrived):.2f}" if len(arrived) == len(taken) else "never")
        ratio = mine[0].ratio
        cells += ["–" if ratio is None else f"{ratio:.1f}", mine[0].chosen]
        cells.append(f"{_behind(mine, [each.chosen for each in mine]):.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", factor_table(times(records))])


def factor_table(found: Sequence[Times]) -> str:
    """For each factor: on how many graphs the choice is at most a tenth later than the soonest, on
    those that the factor is fitted on and on the others."""
    graphs = list(dict.fromkeys(each.graph for each in found))
    sides = {
        "fitted on": [graph for graph in graphs if graph in FITTED],
        "others": [graph for graph in graphs if graph not in FITTED],
    }
    lines = ["| exact up to | within a tenth: fitted on | others |", "|---|---|---|"]
    for factor in FACTORS:
        cells = [f"{factor:g} times" + (" (now)" if factor == HARDLY_MORE else "")]
        for side in sides.values():
            close = 0
            for graph in side:
                mine = [each for each in found if each.graph == graph]
                close += _behind(mine, [each.by_factor(factor) for each in mine]) <= CLOSE
            cells.append(f"{close} of {len(side)}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _behind(mine: Sequence[Times], chosen: Sequence[str]) -> float:
    """Median over splits of how far behind the chosen estimators are."""
    return median(each.behind(name) for each, name in zip(mine, chosen, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.studies.auto_race")
    parser.add_argument("--out", type=Path, default=Path("results/auto-race.jsonl"))
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="of training, for each run")
    parser.add_argument("--evaluations", type=int, default=200, help="at most, of each run")
    parser.add_argument("--patience", type=int, default=60, help="evaluations without a better")
    parser.add_argument("--show", nargs="+", type=Path, help="print these records, run nothing")
    given = parser.parse_args()
    if not given.show:
        budget = Budget(given.seconds, given.evaluations, given.patience)
        run(given.out, given.graphs, given.splits, budget)
    shown = given.show or [given.out]
    records = [record for file in shown for record in read_lines(file)]
    if not records:
        sys.exit(f"{' '.join(map(str, shown))}: no records yet")
    print(table(records))


if __name__ == "__main__":
    main()
