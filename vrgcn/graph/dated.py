"""Rows with a time of their own: which facts each of them sees.

Every dated fact is a node, and so is every row of the task. A row is of an entity, such as a
driver, and sees the entity's facts that were known by its time: the last one, the last five. These
edges lead from facts to rows only, and no edge leads to what was known earlier, so that one static
graph is free of leaks.

    time of a node    seconds since 1970; -inf if it was always known, inf if it is never known
    a fact is seen    if its time is not later than that of the row
    the last fact     the one of the latest time; of equal times that of the greatest node number

The import makes the edges of its rows with `Lookback`, and so does whoever asks about a new row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.kinds import is_count, is_text

if TYPE_CHECKING:
    from vrgcn.graph.graph import Graph

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]
Pairs = tuple[Int64s, Int64s]

ALWAYS, NEVER = -np.inf, np.inf
DAY = 86_400
_LONG_AGO = 36_525.0  # days since the last fact where there is none


@dataclass(frozen=True)
class FactPath:
    """A way from a row to facts.

    name: of its features
    entity: relation from entities to rows
    facts: relation from entities to facts; of the entity that `by` leads to
    by: pairs of relations to facts, from the entity and from another that the same facts name: the
        last such fact says which other entity is meant. Empty if the facts are the entity's own
    last: how many facts a row sees at most, by the relation that has these edges
    """

    name: str
    entity: str
    facts: str
    last: Mapping[str, int]
    by: tuple[tuple[str, str], ...] = ()

    @property
    def relations(self) -> list[str]:
        """All relations that it names."""
        return [self.entity, self.facts, *self.last, *(name for pair in self.by for name in pair)]

    @property
    def features(self) -> tuple[str, str]:
        """Names of the features that a row gets."""
        return f"{self.name}.log_count", f"{self.name}.log_days"


@dataclass(frozen=True)
class Dated:
    """What a graph knows of time.

    rows: the kind of the rows
    times: the kept column that says when a node became known, by kind; nodes of other kinds were
        always known
    paths: the ways from a row to facts
    past: the kind of past targets, in the order of the rows; None if there are none
    known_after: seconds from a row's time until its target is known; None without past targets
    known_until: the date at which facts stop for later rows; None if each sees those of its own
        time
    """

    rows: str
    times: Mapping[str, str]
    paths: tuple[FactPath, ...] = ()
    past: str | None = None
    known_after: float | None = None
    known_until: str | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        """What is done against leaks, a sentence each."""
        seen = "each row sees the facts until its own time"
        if self.known_until is not None:
            seen = f"rows after {self.known_until} see facts until then only"
        return (
            f"{seen}, and no edge leads back in time",
            "statistics of features know facts until the last training row",
        )

    def __str__(self) -> str:
        counts = sorted({count for path in self.paths for count in path.last.values()})
        last = " and ".join(map(str, counts))
        return (
            f"{self.rows}, by its column {self.times[self.rows]}: each sees the last {last} of "
            f"{', '.join(path.name for path in self.paths)} that were known by then"
        )

    def moments(self, graph: Graph) -> Tensor:
        """(nodes,) float64: the time of each node."""
        found = torch.full((graph.num_nodes,), ALWAYS, dtype=torch.float64)
        for kind, column in self.times.items():
            span = graph.kinds.range(kind)
            found[span.start : span.stop] = graph.kept[kind][column].values.nan_to_num(NEVER)
        return found

    def entries(self) -> dict[str, Any]:
        """JSON values from which `read` makes the same."""
        paths = [
            {"name": p.name, "entity": p.entity, "facts": p.facts}
            | {"last": dict(p.last), "by": [list(pair) for pair in p.by]}
            for p in self.paths
        ]
        plain = {name: getattr(self, name) for name in ("rows", "past", "known_after")}
        return plain | {"times": dict(self.times), "paths": paths}

    @classmethod
    def reads(cls, entries: Any) -> bool:
        """True if `read` makes one of them."""
        try:
            found = cls.read(entries)
            names = [name for path in found.paths for name in (path.name, *path.relations)]
            names += [*found.times, *found.times.values(), found.rows, found.past or ""]
            counts = [count for path in found.paths for count in path.last.values()]
            after = found.known_after
        except (TypeError, ValueError, KeyError, AttributeError):
            return False
        return (
            all(map(is_text, names))
            and all(map(is_count, counts))
            and (after is None or isinstance(after, int | float))
        )

    @classmethod
    def read(cls, entries: Mapping[str, Any]) -> Self:
        paths = (
            FactPath(**path | {"by": tuple((one, other) for one, other in path["by"])})
            for path in entries["paths"]
        )
        return cls(**{**entries, "paths": tuple(paths)})


def later_nodes(graph: Graph) -> Tensor:
    """The nodes that nothing may be learned from: they became known after the last training row."""
    if graph.dated is None or not len(graph.train):
        return graph.train[:0]
    moments = graph.dated.moments(graph)
    return (moments > moments[graph.train].max()).nonzero()[:, 0]


@dataclass(frozen=True)
class TimedRows:
    """Rows that look back.

    times: (rows,)
    entities: (rows,) the entity of each row, -1 if there is none, by `FactPath.entity`
    levels: (rows,) 0 of training, 1 of validation, 2 of the test: a row sees no target of a later
        split; None if all may be seen
    until: (rows,) the time until which facts are seen, if it is not that of the row
    """

    times: Float64s
    entities: Mapping[str, Int64s]
    levels: NDArray[np.int8] | None = None
    until: Float64s | None = None

    @property
    def sight(self) -> Float64s:
        """(rows,) the time until which each row sees facts."""
        return self.times if self.until is None else self.until


class Timeline:
    """Facts of each entity in the order of time.

    entities, facts: (facts,) node numbers, the facts ascending
    times: (facts,)
    """

    def __init__(self, entities: Int64s, facts: Int64s, times: Float64s) -> None:
        known = times < NEVER
        entities, facts, times = entities[known], facts[known], times[known]
        self._moments = np.unique(times)
        self._span = len(self._moments) + 1
        key = entities * self._span + np.searchsorted(self._moments, times)
        order = np.argsort(key, kind="stable")
        self._keys, self._facts, self._times = key[order], facts[order], times[order]

    def until(self, entities: Int64s, times: Float64s) -> Pairs:
        """Where the facts of each entity begin, and where those that are later than its time."""
        base = entities * self._span
        place = np.searchsorted(self._moments, times, side="right") - 1
        return (
            np.searchsorted(self._keys, base),
            np.searchsorted(self._keys, base + place, side="right"),
        )

    def last(self, first: Int64s, end: Int64s, count: int) -> Pairs:
        """The last `count` facts of each range, as places of ranges and facts."""
        counts = np.minimum(end - first, count)
        rows = np.repeat(np.arange(len(end)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, self._facts[np.repeat(end - counts, counts) + within]

    def last_times(self, first: Int64s, end: Int64s) -> Float64s:
        """(ranges,) the time of the last fact of each; -inf if it is empty."""
        some = end > first
        found = np.full(len(end), ALWAYS)
        found[some] = self._times[end[some] - 1]
        return found


@dataclass
class Lookback:
    """Finds the facts that rows see.

    edges: returns the sources and the targets of a relation's edges, by ascending targets
    time: (nodes,)
    levels: (nodes,) the split of each past target, as in `TimedRows`; None if rows may see all
    """

    edges: Callable[[str], Pairs]
    time: Float64s
    levels: NDArray[np.int8] | None = None
    _timelines: dict[Any, Timeline] = field(default_factory=dict)

    @staticmethod
    def on(graph: Graph) -> Lookback:
        """Over the facts of a graph that has `dated`."""
        assert graph.dated is not None

        def edges(relation: str) -> Pairs:
            A = graph.relations[relation].adjacency
            return A.indices.numpy(), A.row_of_entry.numpy()

        return Lookback(edges, graph.dated.moments(graph).numpy())

    def seen(self, path: FactPath, asked: TimedRows) -> Seen:
        """The facts that rows see on a path."""
        entities = self._reached(path, asked)
        parts = []
        for rows, level in self._by_level(asked, entities >= 0):
            timeline = self._timeline(path.facts, level)
            parts.append((rows, timeline, *timeline.until(entities[rows], asked.sight[rows])))
        return Seen(asked.times, parts)

    def _by_level(
        self, asked: TimedRows, some: NDArray[np.bool_]
    ) -> Iterator[tuple[Int64s, int | None]]:
        if self.levels is None or asked.levels is None:
            yield np.flatnonzero(some), None
            return
        for level in np.unique(asked.levels):
            yield np.flatnonzero(some & (asked.levels == level)), int(level)

    def _reached(self, path: FactPath, asked: TimedRows) -> Int64s:
        """(rows,) the entity whose facts are seen; -1 if there is none."""
        entities = asked.entities[path.entity]
        if not path.by:
            return entities
        key = ("by", path.by)
        if key not in self._timelines:
            self._timelines[key] = self._meetings(path.by)
        timeline, found = self._timelines[key], np.full(len(entities), -1)
        own = np.flatnonzero(entities >= 0)
        rows, others = timeline.last(*timeline.until(entities[own], asked.sight[own]), 1)
        found[own[rows]] = others
        return found

    def _meetings(self, by: tuple[tuple[str, str], ...]) -> Timeline:
        """The other entities that facts of an entity name, in the order of time."""
        parts = []
        for one, other in by:
            entities, facts = self.edges(one)
            others, named = self.edges(other)
            start = min(facts.min(initial=0), named.min(initial=0))
            of_fact = np.full(max(facts.max(initial=0), named.max(initial=0)) - start + 1, -1)
            of_fact[named - start] = others
            met = of_fact[facts - start]
            parts.append([each[met >= 0] for each in (entities, met, self.time[facts])])
        return Timeline(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _timeline(self, relation: str, level: int | None) -> Timeline:
        if (relation, level) not in self._timelines:
            entities, facts = self.edges(relation)
            if self.levels is not None and level is not None:
                seen = self.levels[facts] <= level
                entities, facts = entities[seen], facts[seen]
            self._timelines[relation, level] = Timeline(entities, facts, self.time[facts])
        return self._timelines[relation, level]


@dataclass(frozen=True)
class Seen:
    """The facts that rows see on a path, as ranges of timelines.

    times: (rows,) of the rows
    parts: some rows, their timeline, and where their facts begin and end in it
    """

    times: Float64s
    parts: list[tuple[Int64s, Timeline, Int64s, Int64s]]

    def last(self, count: int) -> Pairs:
        """The edges to the last `count` facts: rows, by their places, and facts."""
        rows, facts = [], []
        for own, timeline, first, end in self.parts:
            places, found = timeline.last(first, end, count)
            rows.append(own[places])
            facts.append(found)
        return np.concatenate(rows), np.concatenate(facts)

    @cached_property
    def features(self) -> NDArray[np.float32]:
        """(rows, 2) logarithms of the number of facts seen and of the days since the last one."""
        counts, days = np.zeros(len(self.times)), np.full(len(self.times), _LONG_AGO)
        for own, timeline, first, end in self.parts:
            counts[own] = end - first
            since = (self.times[own] - timeline.last_times(first, end)) / DAY
            days[own] = np.minimum(since, _LONG_AGO)
        return np.log1p(np.stack([counts, days], axis=1)).astype(np.float32)


def known_nodes(graph: Graph) -> Tensor:
    """The nodes that statistics of features may learn from, ascending: the training nodes, and
    those of other kinds that were known by the last training row."""
    known = torch.zeros(graph.num_nodes, dtype=torch.bool)
    known[graph.seen] = True
    known[later_nodes(graph)] = False
    return known.nonzero()[:, 0]
