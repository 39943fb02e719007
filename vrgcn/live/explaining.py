"""Explanations: how a prediction changes when an edge, a neighbour or a column is left out.

Each is a change that is computed exactly and taken back. Only rows that the one prediction depends
on are computed, so that a neighbour with very many edges costs no more than others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from vrgcn.graph.scaling import Scaling
from vrgcn.live.edges import EdgeEdits
from vrgcn.live.resolving import LiveRelation, Resolved
from vrgcn.live.row_features import Numbers, RecipeRows
from vrgcn.live.slots import ONLY
from vrgcn.tasks import find_task

if TYPE_CHECKING:
    from vrgcn.live.live import Live


@dataclass(frozen=True)
class Effect:
    """What leaving one thing out does.

    what: in words, for people: "city", "u7", "user 7 (bought)"
    id, kind, relation: of the neighbour, where it is one or the edge to it
    column: where it is a column of the node's own row
    without: the probability, or the number, without it
    change: that less what it is with it
    """

    what: str
    without: float
    change: float
    id: Any = None
    kind: str | None = None
    relation: str | None = None
    column: str | None = None


@dataclass(frozen=True)
class Effects:
    """Effects of one sort, the largest first.

    looked_at, there: how many were left out one by one, of how many there are
    total: the sum of their changes
    together: the change when all that were looked at are left out at once
    """

    effects: list[Effect]
    looked_at: int
    there: int
    total: float
    together: float


@dataclass(frozen=True)
class Explanation:
    """Why a node is predicted as it is.

    predicted: the class; None if a number is predicted
    value: its probability, or the number
    edges: each edge of the node left out; neighbours: each neighbour with all of its edges;
    columns: each column of the node's own row, which then has the mean of the import
    note: what the numbers are of, where that needs to be said
    """

    id: Any
    kind: str | None
    predicted: str | None
    value: float
    edges: Effects
    neighbours: Effects
    columns: Effects
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @property
    def title(self) -> str:
        of = "" if self.kind is None else f"{self.kind} "
        if self.predicted is None:
            return f"{of}{self.id}: {self.value:.6g}"
        return f"{of}{self.id}: {self.predicted} with probability {self.value:.4f}"


@dataclass(frozen=True)
class _Link:
    """An edge of the node that is explained, to another slot of a kind."""

    relation: LiveRelation
    pair: tuple[int, int]  # row and column of A
    other: int
    kind: str


class Explainer:
    """Explains one node. most: edges, neighbours and columns that are left out, of each so many"""

    def __init__(self, live: Live, slot: int, kind: str, most: int) -> None:
        self._live, self._slot, self._kind, self._most = live, slot, kind, most
        self._world = live._world
        self._state = self._world.state
        self._task = find_task(live.saved.task)
        outputs = self._state.outputs[slot][None]
        self._class = 0
        if self._task.has_classes:
            self._class = int(self._task.probabilities(outputs)[0].argmax())
        self._value = self._of(outputs)
        self._field = self._state.field(torch.tensor([slot]))

    def explain(self) -> Explanation:
        links = self._links()
        ids, classes = self._world.ids[self._kind], self._live.classes
        whole = self._live.saved.whole
        note = "" if whole is None else f"probabilities of the network, before {whole.title}"
        return Explanation(
            ids.id(self._slot),
            self._kind or None,
            None if classes is None else classes[self._class],
            self._value,
            self._edges(links),
            self._neighbours(links),
            self._columns(),
            note,
        )

    def neighbours(self) -> Effects:
        """Return the effects of its neighbours alone."""
        return self._neighbours(self._links())

    def _of(self, outputs: Tensor) -> float:
        if not self._task.has_classes:
            return float(outputs[0, 0])
        outputs = self._live.saved.row_outputs(outputs)
        return float(self._task.probabilities(outputs)[0, self._class])

    def _without(self, changes: Resolved) -> float:
        outputs = self._live._supposed(changes, torch.tensor([self._slot]))
        return self._of(outputs)

    def _links(self) -> list[_Link]:
        """Edges of the node, those that weigh most in its averages first."""
        links: list[tuple[float, _Link]] = []
        for relation in self._world.relations.values():
            if relation.target == self._kind:
                links += self._half(relation, relation.edges.into.rows.row(self._slot), into=True)
            if relation.source == self._kind and relation.against is not None:
                links += self._half(relation, relation.against.rows.row(self._slot), into=False)
        order = sorted(range(len(links)), key=lambda place: (-links[place][0], place))
        return [links[place][1] for place in order]

    def _half(
        self, relation: LiveRelation, row: tuple[Any, Any], *, into: bool
    ) -> Iterable[tuple[float, _Link]]:
        columns, values = row
        half = relation.edges.out if into else relation.edges.into
        kind = relation.source if into else relation.target
        degrees = half.sums[torch.from_numpy(np.asarray(columns, dtype=np.int64))].clamp(min=1)
        weights = np.ones(len(columns)) if values is None else np.asarray(values, dtype=float)
        for other, weight, degree in zip(columns.tolist(), weights, degrees.tolist(), strict=True):
            if other == self._slot and kind == self._kind:
                continue
            pair = (self._slot, other) if into else (other, self._slot)
            yield float(weight) / degree**0.5, _Link(relation, pair, other, kind)

    def _edges(self, links: list[_Link]) -> Effects:
        looked = links[: self._most]
        effects = [
            self._effect(self._named(link, edge=True), self._edge_edits([link])) for link in looked
        ]
        together = self._edge_edits(looked)
        return self._gathered(effects, len(links), together)

    def _edge_edits(self, links: Sequence[_Link]) -> Resolved:
        changes = Resolved()
        for link in links:
            edits: EdgeEdits = changes.edits.setdefault(link.relation.name, {})
            edits[link.pair] = None
            if link.relation.edges.undirected:
                edits[link.pair[::-1]] = None
        return changes

    def _neighbours(self, links: list[_Link]) -> Effects:
        others = list({link.other: link for link in links}.values())
        looked = others[: self._most]
        effects = [
            self._effect(self._named(link), self._node_edits([link.other])) for link in looked
        ]
        together = self._node_edits([link.other for link in looked])
        return self._gathered(effects, len(others), together)

    def _node_edits(self, slots: Sequence[int]) -> Resolved:
        """Edges of some nodes to those that the prediction depends on; other edges of them do not
        matter."""
        changes = Resolved()
        field = self._field
        for slot in slots:
            kind = self._world.slots.kind_of(slot)
            changes.removed[kind, self._world.ids[kind].id(slot)] = slot
            for name, relation in self._world.relations.items():
                edits = changes.edits.setdefault(name, {})
                for half, flip in ((relation.edges.into, False), (relation.edges.out, True)):
                    columns = torch.from_numpy(half.rows.row(slot)[0])
                    near = columns[torch.isin(columns, field)].tolist()
                    pairs = ((other, slot) if flip else (slot, other) for other in near)
                    edits.update(dict.fromkeys(pairs))
        return changes

    def _columns(self) -> Effects:
        encoder = self._world.known.features[self._kind]
        row = self._state.raw.row(self._slot)
        usual = self._usual(len(row))
        there = {
            name: places
            for name, places in encoder.columns_of().items()
            if len(places) and not np.array_equal(row[places], usual[places])
        }
        size = {n: float(np.abs(row[p] - usual[p]).max()) for n, p in there.items()}
        looked = sorted(there, key=lambda name: -size[name])[: self._most]
        effects = [
            self._effect({"what": name, "column": name}, self._set(row, usual, [there[name]]))
            for name in looked
        ]
        together = self._set(row, usual, [there[name] for name in looked])
        return self._gathered(effects, len(there), together)

    def _usual(self, width: int) -> Numbers:
        """What a column that is left out holds: the mean of a dense one, nothing of sparse ones."""
        usual = np.zeros(width)
        encoder = self._world.known.features[self._kind]
        if isinstance(encoder, RecipeRows):
            own = encoder.usual()
            usual[: len(own)] = own
            return usual
        saved, columns = self._live.saved, self._state.raw.columns(self._kind)
        names = self._world.graph.names.features
        alike = saved.features is None or names is None or saved.features == names
        mean = saved.scaling.mean
        if mean is not None and alike and len(mean) == self._world.graph.num_features:
            usual[:] = _dense_mean(saved.scaling)[columns.start : columns.stop]
        return usual

    def _set(self, row: Numbers, usual: Numbers, places: Sequence[Any]) -> Resolved:
        changed = row.copy()
        for some in places:
            changed[some] = usual[some]
        return Resolved(features={self._slot: changed})

    def _effect(self, named: dict[str, Any], changes: Resolved) -> Effect:
        without = self._without(changes)
        return Effect(without=without, change=without - self._value, **named)

    def _named(self, link: _Link, *, edge: bool = False) -> dict[str, Any]:
        node = self._world.ids[link.kind].id(link.other)
        words = str(node) if link.kind == ONLY else f"{link.kind} {node}"
        named: dict[str, Any] = {"what": words, "id": node, "kind": link.kind or None}
        if edge:
            named["relation"] = link.relation.name or None
            if link.relation.name:
                named["what"] = f"{words} ({link.relation.short})"
        return named

    def _gathered(self, effects: list[Effect], there: int, together: Resolved) -> Effects:
        ordered = sorted(effects, key=lambda effect: -abs(effect.change))
        change = self._without(together) - self._value if effects else 0.0
        total = sum(effect.change for effect in effects)
        return Effects(ordered, len(effects), there, total, change)


def _dense_mean(scaling: Scaling) -> Numbers:
    assert scaling.mean is not None
    mean = scaling.mean.double().numpy().copy()
    if scaling.groups is not None:
        mean[scaling.groups.numpy() > 0] = 0
    return mean


def explain_node(live: Live, slot: int, kind: str, most: int) -> Explanation:
    """Explain the prediction of a slot's node."""
    return Explainer(live, slot, kind, most).explain()


def influence_on(live: Live, slot: int, kind: str, most: int) -> Effects:
    """Return what leaving out each neighbour of a slot's node does to its prediction."""
    return Explainer(live, slot, kind, most).neighbours()
