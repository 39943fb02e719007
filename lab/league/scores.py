"""Scores of the league's records: by row and graph, with means over splits and their errors."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from lab.harness.records import Record, in_order, of
from lab.league.real_graphs import GRAPHS
from lab.league.rows import ROWS

# The models that a search found beside its average, by the names of their rows.
INSIDE = {
    "single": "tune: best single model",
    "network": "tune: best network",
    "baseline": "tune: best baseline",
}
NETWORKS = ("default", "estimator", "variant")  # kinds of rows that are one network


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean over splits and its standard error, which one split does not tell: NaN."""
    if len(values) < 2:
        return values[0], math.nan
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def with_error(mean: float, error: float, sign: str = "") -> str:
    """A mean with its standard error, where there is one."""
    text = f"{mean:{sign}.1f}"
    return text if math.isnan(error) else f"{text} ± {error:.1f}"


@dataclass(frozen=True)
class Difference:
    """How much one row is above another, split by split.

    mean, error: of the differences, in points
    """

    mean: float
    error: float

    @property
    def word(self) -> str:
        """Whether the mean is more than one standard error from zero, and on which side."""
        if abs(self.mean) <= self.error or self.mean == 0:
            return "level"
        return "above" if self.mean > 0 else "below"

    def __str__(self) -> str:
        return with_error(self.mean, self.error, "+")


class Scores:
    """Test scores by row, graph and split.

    records: lines of one or several files; of two with the same graph, row and split the later one
        counts
    splits: how many of each graph count; None: all

    graphs, rows: in the order of the tables GRAPHS and ROWS, then others as they come
    """

    def __init__(self, records: Sequence[Record], splits: int | None = None) -> None:
        latest = {(r["graph"], r["row"], r["split"]): r for r in records}
        counted = [r for r in latest.values() if splits is None or r["split"] < splits]
        self.records = [part for record in counted for part in (record, *_inside(record))]
        self.graphs: list[str] = _sorted(in_order(self.records, "graph"), list(GRAPHS))
        self.rows: list[str] = _sorted(in_order(self.records, "row"), [*ROWS, *INSIDE.values()])

    def kind(self, row: str) -> str:
        return str(of(self.records, row=row)[0]["kind"])

    def tests(self, row: str, graph: str) -> dict[int, float]:
        """Test scores in per cent, by split; empty if the row has none on this graph."""
        found = of(self.records, row=row, graph=graph)
        return {record["split"]: 100 * record["test"] for record in found}

    def mean(self, row: str, graph: str) -> tuple[float, float] | None:
        """Mean and standard error in per cent; None without records."""
        tests = self.tests(row, graph)
        return mean_and_error(list(tests.values())) if tests else None

    def seconds(self, row: str, graph: str) -> float | None:
        """Mean processor seconds; None without records."""
        found = of(self.records, row=row, graph=graph)
        values = [r["cpu_seconds"] for r in found if "cpu_seconds" in r]
        return statistics.mean(values) if values else None

    def best(self, graph: str, kinds: Sequence[str]) -> str | None:
        """Return the row of these kinds with the highest mean on a graph; None without one."""
        means = {
            row: found[0]
            for row in self.rows
            if self.kind(row) in kinds and (found := self.mean(row, graph)) is not None
        }
        return max(means, key=lambda row: means[row]) if means else None

    def best_network(self, graph: str) -> str | None:
        """Return the row of the best single network, those of searches among them."""
        return self.best(graph, (*NETWORKS, INSIDE["network"]))

    def difference(self, row: str, other: str, graph: str) -> Difference | None:
        """Compare two rows on the splits that both have; None without any."""
        ours, theirs = self.tests(row, graph), self.tests(other, graph)
        common = [split for split in ours if split in theirs]
        if not common:
            return None
        return Difference(*mean_and_error([ours[split] - theirs[split] for split in common]))


def _inside(record: Record) -> list[Record]:
    """Return the models that a search found as records of their own, without seconds."""
    return [
        {
            "graph": record["graph"],
            "row": row,
            "split": record["split"],
            "kind": row,
            "test": record[part]["test"],
        }
        for part, row in INSIDE.items()
        if record.get(part) is not None
    ]


def _sorted(found: list[str], order: list[str]) -> list[str]:
    return [*(name for name in order if name in found), *(n for n in found if n not in order)]
