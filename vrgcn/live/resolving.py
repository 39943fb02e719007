"""Changes checked against the graph as it is, completely, before anything is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa

from vrgcn.data.tables.encoders.dates import parse_dates
from vrgcn.graph.relations import REVERSE, relation_name
from vrgcn.live.changes import (
    ADD_EDGES,
    ADD_NODES,
    REMOVE_EDGES,
    REMOVE_NODES,
    SET_FEATURES,
    Change,
    RefusedError,
    within,
)
from vrgcn.live.edges import EdgeEdits, HalfEdges, LiveEdges
from vrgcn.live.ids import Id, KindIds
from vrgcn.live.row_features import NumberRows, Numbers, RowFeatures
from vrgcn.live.slots import ONLY, Slots

Ends = tuple[int, int]  # target and source, by slots


class HiddenPairs:
    """A set of pairs, by their sources."""

    def __init__(self, pairs: Iterable[Ends] = ()) -> None:
        self._targets: dict[int, set[int]] = {}
        for target, source in pairs:
            self._targets.setdefault(source, set()).add(target)

    def __contains__(self, pair: Ends) -> bool:
        return pair[0] in self._targets.get(pair[1], ())

    def __iter__(self) -> Iterator[Ends]:
        for source, targets in self._targets.items():
            yield from ((target, source) for target in targets)

    def of(self, source: int) -> list[int]:
        """The targets of a source."""
        return list(self._targets.get(source, ()))

    def forget(self, pairs: Iterable[Ends]) -> None:
        for target, source in pairs:
            self._targets.get(source, set()).discard(target)


_OTHER_END = {"source": "target", "target": "source"}
_LARGEST = float(np.finfo(np.float32).max)

Named = tuple[str, Id]  # the kind and the id of a node


@dataclass(frozen=True)
class LiveRelation:
    """A relation as people name it.

    source, target: kinds
    columns: names of the columns of both ends and of the weight, the import's own first
    frozen: why its edges cannot be changed; empty if they can
    hidden: pairs that are known and carry no messages
    one_way: it has no reverse, not even by name
    """

    name: str
    source: str
    target: str
    edges: LiveEdges
    columns: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    frozen: str = ""
    hidden: HiddenPairs = field(default_factory=HiddenPairs)
    one_way: bool = False

    @property
    def short(self) -> str:
        """ "bought" for "user-bought-item"."""
        return self.name.removeprefix(f"{self.source}-").removesuffix(f"-{self.target}")

    @property
    def rev_short(self) -> str:
        return REVERSE + self.short

    @property
    def reverse(self) -> str:
        return relation_name((self.target, self.rev_short, self.source))

    @property
    def against(self) -> HalfEdges | None:
        """The edges by their sources, if messages go against them over the relation's reverse."""
        edges = self.edges
        has_reverse = self.name != ONLY and not self.one_way and edges.out is not edges.into
        return edges.out if has_reverse else None


@dataclass
class Resolved:
    """Changes by slots.

    added, removed: nodes with their slots
    features: the raw features of slots that are new or changed, of the columns of their kind
    edits: new weights of edges by relation
    taken: how many slots of each kind are used now, also by nodes that did not stay
    forgotten: hidden pairs that are known no longer, by relation
    times: when nodes became known, of new nodes of dated kinds
    """

    added: dict[Named, int] = field(default_factory=dict)
    removed: dict[Named, int] = field(default_factory=dict)
    features: dict[int, Numbers] = field(default_factory=dict)
    edits: dict[str, EdgeEdits] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    forgotten: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    times: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """What changes are checked against.

    raw: the raw features of a slot that has a node
    frozen: why nodes of a kind cannot be added, or changed; empty if they can
    times: by dated kind, the column that says when a node became known
    """

    slots: Slots
    ids: Mapping[str, KindIds]
    relations: Mapping[str, LiveRelation]
    features: Mapping[str, RowFeatures]
    raw: Callable[[int], Numbers]
    frozen: Mapping[str, str]
    times: Mapping[str, str] = field(default_factory=dict)


class Resolver:
    """Resolves changes one after the other; each sees those before it."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._found = Resolved()
        self._now: dict[Named, int | None] = {}  # slots of nodes that were added or removed
        self._next: dict[str, int] = {}
        self._pending: set[Named] = set()  # nodes that are being added

    def resolve(self, changes: Sequence[Change]) -> Resolved:
        steps: dict[str, Callable[[Change, str], None]] = {
            ADD_NODES: self._add_nodes,
            SET_FEATURES: self._set_features,
            REMOVE_NODES: self._remove_nodes,
            ADD_EDGES: self._add_edges,
            REMOVE_EDGES: self._remove_edges,
        }
        for index, change in enumerate(changes):
            name = change["change"]
            what = name if len(changes) == 1 else f"change {index} ({name})"
            with within(index):
                steps[name](change, what)
        self._refuse_empty_kinds()
        self._drop_what_stays()
        return self._found

    def _add_nodes(self, change: Change, what: str) -> None:
        kind = self._kind(change["kind"], what)
        self._refuse_frozen(kind, what)
        rows, encoder = change["rows"], self._known.features[kind]
        keys = [self._new_key(kind, row, index, what) for index, row in enumerate(rows)]
        with within("rows"):
            values = encoder.encode(rows, keys, what) if rows else np.empty((0, 0))
        for key, row, given in zip(keys, values, rows, strict=True):
            taken = self._found.taken.get(kind, 0)
            slot = self._known.slots.free(kind, taken)
            self._found.taken[kind] = taken + 1
            self._now[kind, key] = slot
            self._found.added[kind, key] = slot
            self._found.features[slot] = row
            if kind in self._known.times:
                with within("rows", keys.index(key)):
                    self._found.times[slot] = _moment(self._known.times[kind], given, key, what)

    def _new_key(self, kind: str, row: Mapping[str, Any], place: int, what: str) -> Id:
        ids, encoder = self._known.ids[kind], self._known.features[kind]
        column = encoder.id
        following = self._next.get(kind, ids.next)
        given = row.get(column, row.get("id"))
        if given is None and not ids.index.text and isinstance(encoder, NumberRows):
            given = following
        if given is None or given == "":
            raise RefusedError(
                f"{what}: row {place} has no {column!r}: every node needs an id",
                *("rows", place, column),
            )
        key = ids.index.key(given)
        if key is None:
            wanted = "a text" if ids.index.text else "a whole number, as all ids of the graph are"
            raise RefusedError(
                f"{what}: {column!r} of row {place} must be {wanted}, not {given!r}",
                *("rows", place, column),
            )
        if self._slot(kind, key) is not None or (kind, key) in self._pending:
            raise RefusedError(
                f"{what}: row {place}: there is a node {self._shown(kind, key)}",
                *("rows", place, column),
            )
        if isinstance(key, int):
            self._next[kind] = max(following, key + 1)
        self._pending.add((kind, key))
        return key

    def _set_features(self, change: Change, what: str) -> None:
        kind = self._kind(change["kind"], what)
        self._refuse_frozen(kind, what)
        encoder = self._known.features[kind]
        for index, row in enumerate(change["rows"]):
            given = row.get(encoder.id, row.get("id"))
            at = ("rows", index, encoder.id)
            if given is None:
                raise RefusedError(
                    f"{what}: row {index} has no {encoder.id!r}: say which node", *at
                )
            if row.get("id", given) != given:
                raise RefusedError(f"{what}: row {index} names two nodes by its two ids", *at)
            with within(*at):
                slot = self._there(kind, given, f"{what}: row {index}")
            named = {key: value for key, value in row.items() if key not in (encoder.id, "id")}
            with within("rows", index):
                columns, values = encoder.encode_part(named, given, what)
            before = self._found.features.get(slot)
            after = (self._known.raw(slot) if before is None else before).copy()
            after[columns] = values
            self._found.features[slot] = after

    def _remove_nodes(self, change: Change, what: str) -> None:
        kind = self._kind(change["kind"], what)
        for index, given in enumerate(change["ids"]):
            with within("ids", index):
                slot = self._there(kind, given, f"{what}: id {index}")
            key = self._known.ids[kind].index.key(given)
            assert key is not None
            self._now[kind, key] = None
            self._pending.discard((kind, key))
            if self._found.added.pop((kind, key), None) is None:
                self._found.removed[kind, key] = slot
            self._found.features.pop(slot, None)
            for relation in self._known.relations.values():
                self._remove_all_edges(relation, slot, what)

    def _refuse_empty_kinds(self) -> None:
        """A graph has a node of each kind: without one it can be neither saved nor served again."""
        for kind in {kind for kind, _ in self._found.removed}:
            removed, added = (
                sum(of == kind for of, _ in nodes)
                for nodes in (self._found.removed, self._found.added)
            )
            if len(self._known.ids[kind]) - removed + added == 0:
                where = "the graph" if kind == ONLY else f"kind {kind!r}"
                raise RefusedError(
                    f"{REMOVE_NODES}: {where} would have no nodes: keep one, or add others in the "
                    "same change"
                )

    def _remove_all_edges(self, relation: LiveRelation, slot: int, what: str) -> None:
        edges, edits = relation.edges, self._edits(relation.name)
        into, _ = edges.into.rows.row(slot)
        out, _ = edges.out.rows.row(slot)
        ends = [(slot, source) for source in into.tolist()]
        ends += [(target, slot) for target in out.tolist()]
        ends += [pair for pair in edits if slot in pair]
        if ends and relation.frozen:
            raise RefusedError(f"{what}: {relation.frozen}")
        edits.update(dict.fromkeys(ends))

    def _add_edges(self, change: Change, what: str) -> None:
        for pair, weight, place in self._pairs(change, what, weights=True):
            relation = self._relation(change["relation"], what)[0]
            for row, column in self._both(relation, pair):
                before = self._weight(relation, row, column)
                total = weight if before is None or not relation.edges.weighted else before + weight
                if not _fits(total):
                    raise RefusedError(
                        f"{what}: row {place}: the weights of the edge sum to more than 32 bits "
                        "hold",
                        *("rows", place, relation.columns[2][0]),
                    )
                self._edits(relation.name)[row, column] = total

    def _remove_edges(self, change: Change, what: str) -> None:
        for pair, _, place in self._pairs(change, what, weights=False):
            relation = self._relation(change["relation"], what)[0]
            forgotten = self._found.forgotten.setdefault(relation.name, set())
            hidden = pair in relation.hidden and pair not in forgotten
            if self._weight(relation, *pair) is None and not hidden:
                row = change["rows"][place]
                raise RefusedError(
                    f"{what}: row {place}: there is no such edge: {dict(row)}", "rows", place
                )
            for one in self._both(relation, pair):
                self._edits(relation.name)[one] = None
                forgotten.add(one)

    def _pairs(
        self, change: Change, what: str, *, weights: bool
    ) -> list[tuple[tuple[int, int], float, int]]:
        """(target, source) slots, weight and place of each row."""
        relation, reverse = self._relation(change["relation"], what)
        if relation.frozen:
            raise RefusedError(f"{what}: {relation.frozen}")
        pairs = []
        for index, row in enumerate(change["rows"]):
            where = f"{what}: row {index}"
            names = relation.columns
            kinds = relation.source, relation.target
            if reverse:  # "source" is that of the relation that is named
                ends = [tuple(_OTHER_END.get(name, name) for name in end) for end in names]
                names, kinds = (ends[1], ends[0], names[2]), kinds[::-1]
            with within("rows", index):
                source, target = (
                    self._end(row, kind, names[end], ("source", "target")[end], where)
                    for end, kind in enumerate(kinds)
                )
                pair = (source, target) if reverse else (target, source)
                weight = self._given_weight(row, relation, where) if weights else 1.0
            pairs.append((pair, weight, index))
        return pairs

    def _end(
        self, row: Mapping[str, Any], kind: str, names: Sequence[str], end: str, where: str
    ) -> int:
        name = next((name for name in (*names, end) if name in row), None)
        if name is None:
            raise RefusedError(f"{where} has no {names[0]!r}, the {end} of the edge", names[0])
        with within(name):
            return self._there(kind, row[name], f"{where}, {name!r}")

    def _given_weight(self, row: Mapping[str, Any], relation: LiveRelation, where: str) -> float:
        names = (*relation.columns[2], "weight")
        name = next((name for name in names if name in row), None)
        weight = None if name is None else row[name]
        if not relation.edges.weighted:
            if weight not in (None, 1):
                raise RefusedError(
                    f"{where}: {name!r} is {weight!r}, and edges of this graph have no weights: "
                    "leave it out",
                    str(name),
                )
            return 1.0
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not _fits(weight):
            raise RefusedError(
                f"{where}: {name or names[0]!r} must be a finite number, not {weight!r}",
                name or names[0],
            )
        if weight < 0:
            raise RefusedError(
                f"{where}: {name!r} is {weight!r}: weights are not negative", str(name)
            )
        return float(weight)

    def _both(self, relation: LiveRelation, pair: tuple[int, int]) -> list[tuple[int, int]]:
        both = relation.edges.undirected and pair[0] != pair[1]
        return [pair, pair[::-1]] if both else [pair]

    def _weight(self, relation: LiveRelation, row: int, column: int) -> float | None:
        edits = self._edits(relation.name)
        if (row, column) in edits:
            return edits[row, column]
        return relation.edges.into.rows.weight(row, column)

    def _edits(self, relation: str) -> EdgeEdits:
        return self._found.edits.setdefault(relation, {})

    def _drop_what_stays(self) -> None:
        for name, edits in self._found.edits.items():
            rows = self._known.relations[name].edges.into.rows
            self._found.edits[name] = {
                pair: weight for pair, weight in edits.items() if weight != rows.weight(*pair)
            }

    def _slot(self, kind: str, key: Id) -> int | None:
        if (kind, key) in self._now:
            return self._now[kind, key]
        return self._known.ids[kind].slot(key)

    def _there(self, kind: str, given: Any, where: str) -> int:
        key = self._known.ids[kind].index.key(given)
        slot = None if key is None else self._slot(kind, key)
        if slot is None:
            raise RefusedError(f"{where}: there is no node {self._shown(kind, given)}")
        return slot

    def _kind(self, kind: str | None, what: str) -> str:
        return find_kind(kind, self._known.slots, what)

    def _relation(self, name: str | None, what: str) -> tuple[LiveRelation, bool]:
        return find_relation(name, self._known.relations, what)

    def _refuse_frozen(self, kind: str, what: str) -> None:
        if self._known.frozen.get(kind):
            raise RefusedError(f"{what}: {self._known.frozen[kind]}")

    @staticmethod
    def _shown(kind: str, key: Any) -> str:
        return repr(key) if kind == ONLY else f"{key!r} of kind {kind!r}"


def _fits(number: float) -> bool:
    """Whether 32 bits hold a number; whole numbers may be too large for a float of 64 bits."""
    return abs(number) <= _LARGEST


def find_kind(kind: str | None, slots: Slots, what: str) -> str:
    """The kind that is meant; an error where it is none."""
    if slots.kinds == (ONLY,):
        if kind is not None:
            raise RefusedError(
                f"{what}: the graph has no kinds of nodes, and kind is {kind!r}", "kind"
            )
        return ONLY
    kind = slots.schema.kinds.target if kind is None else kind
    if kind not in slots.kinds:
        near = get_close_matches(str(kind), slots.kinds, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise RefusedError(
            f"{what}: kind is {kind!r}, and none of {', '.join(slots.kinds)}{hint}", "kind"
        )
    return kind


def _moment(column: str, row: Mapping[str, Any], node: Id, what: str) -> float:
    """The time of a new node, in seconds since 1970."""
    given = row.get(column)
    if given is None:
        raise RefusedError(
            f"{what}: row {node!r} has no {column!r}: a fact needs the time from which it is known",
            column,
        )
    if isinstance(given, int | float) and not isinstance(given, bool):
        return float(given)
    seconds, wrong = parse_dates(pa.array([str(given)]), None)
    if len(wrong):
        raise RefusedError(
            f"{what}: {column!r} of row {node!r} is no date such as 2024-03-01: {given!r}", column
        )
    return float(seconds[0])


def find_relation(
    name: str | None, relations: Mapping[str, LiveRelation], what: str
) -> tuple[LiveRelation, bool]:
    """The relation that is meant, and whether its reverse is named."""
    if name is None and len(relations) == 1:
        return next(iter(relations.values())), False
    if name is not None and name in relations:
        return relations[name], False
    reverse = {
        key: () if one.one_way else (one.reverse, one.rev_short) for key, one in relations.items()
    }
    named = [one for key, one in relations.items() if name in (one.short, *reverse[key])]
    if len(named) == 1:
        return named[0], name in reverse[named[0].name]
    if ONLY in relations:
        raise RefusedError(
            f"{what}: the graph has no relations, and relation is {name!r}", "relation"
        )
    near = get_close_matches(str(name), relations, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise RefusedError(
        f"{what}: relation is {name!r}, and none of {', '.join(relations)}{hint}", "relation"
    )
