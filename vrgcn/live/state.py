"""The state of a live model: a graph that changes, and the exact tables of every level.

A change edits features and edges, and then each level in turn, from the input up, computes the rows
that it affects (`dirty`):

    dirty(0)      nodes whose features are new
    dirty(l + 1)  dirty(l), rows of P that changed, and nodes that average one of dirty(l)
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from vrgcn.engine.history import exact_tables
from vrgcn.engine.plan import Relation
from vrgcn.engine.setup import asked_relations, propagation_of
from vrgcn.engine.sweeps import fill_tables, sweep
from vrgcn.engine.trace import device_of, trace
from vrgcn.files.mistakes import InputError
from vrgcn.graph.dated import NEVER
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import zeros
from vrgcn.graph.propagation import PROPAGATIONS, RELATION_SIDES, SIDES
from vrgcn.graph.relations import Schema
from vrgcn.graph.sparse import full_precision
from vrgcn.inference.saved import SavedModel, fit_features
from vrgcn.live.edges import EdgeEdits, LiveEdges
from vrgcn.live.features import LiveAverages, LiveFeatures, live_features
from vrgcn.live.learned import LearnedRows
from vrgcn.live.matrices import LiveMatrix, LivePropagation
from vrgcn.live.raw import RawFeatures
from vrgcn.live.resolving import Resolved
from vrgcn.live.slots import ONLY, Slots, Undo

_ROWS = 65_536  # that are copied at a time
_WASTE = 4_000_000  # entries of old versions of rows that are always worth keeping
_NONE = torch.empty(0, dtype=torch.int64)


@dataclass(frozen=True)
class Computed:
    """Outputs that a change made new.

    nodes, outputs: (rows,) slots, and (rows, width)
    rows: how many rows each table had computed anew, first to last, and then how many outputs
    """

    nodes: Tensor
    outputs: Tensor
    rows: tuple[int, ...]


class LiveState:
    """Everything that sweeps read (`engine.sweeps.SweepSource`), kept exact under changes.

    graph: as it was loaded, not scaled
    edges: by relation; of a graph without relations by ""
    answered: kinds whose outputs are kept
    directory: for tables; None: memory
    """

    def __init__(
        self,
        saved: SavedModel,
        graph: Graph,
        slots: Slots,
        edges: Mapping[str, LiveEdges],
        answered: tuple[str, ...],
        directory: Path | None,
    ) -> None:
        self.slots = slots
        self.edges = edges
        self._directory = directory
        self.raw = RawFeatures(saved, graph, slots)
        scaled = None if directory is None else directory / "scaled.bin"
        prepared = fit_features(saved, graph, scaled)
        self.learned = LearnedRows(saved.model, saved.nodes, prepared, slots)
        self.model: nn.Module = self.learned.model
        self.device = device_of(self.model)
        self.schema: Schema = slots.schema
        self.dtype = full_precision(prepared.features.dtype)
        self.features: LiveFeatures = live_features(
            prepared.features, slots, self._file("features")
        )
        self.evaluation = trace(self.model, prepared.features, training=False, schema=self.schema)
        self._one_way = {name for name, part in graph.given.items() if part.one_way}
        self._union: LiveEdges | None = None  # of all relations, where the model averages over it
        self._matrices = self._made_matrices(saved, graph)
        self.P: dict[Relation, LivePropagation] = {}
        self.averages: dict[Relation, LiveAverages] = {}
        self._renew_matrices()
        self._first = self.evaluation.first_table
        if self._first:
            self.averages = {
                over: LiveAverages(self.P[over], self.features, slots, self._file(f"averages-{n}"))
                for n, over in enumerate(self.evaluation.levels[0])
            }
        self.alive = torch.zeros(slots.total, dtype=torch.bool)
        self.alive[slots.of_graph()] = True
        self.moments: Tensor | None = None  # (slots,) when each became known, as in graph/dated.py
        if graph.dated is not None:
            self.moments = torch.full((slots.total,), NEVER, dtype=torch.float64)
            self.moments[slots.of_graph()] = graph.dated.moments(graph)
        self._answered = torch.zeros(slots.total, dtype=torch.bool)
        for kind in answered:
            first = slots.first(kind)
            self._answered[first : first + slots.room[kind]] = True
        self.tables = exact_tables(slots.total, self.dtype, self.device, directory)
        self.outputs = torch.empty(0)
        self.computed = torch.zeros(slots.total, dtype=torch.float64)  # when, in Unix seconds

    def feature_rows(self, nodes: Tensor) -> Tensor:
        return self.features.rows(nodes).to(self.device, self.dtype)

    def fill(self) -> None:
        """Compute every table and the outputs of all nodes."""
        every = self.slots.of_graph()
        self.computed[every] = time.time()
        sweeps = max(self.evaluation.depth - self._first, 0)
        fill_tables(self.model, self, [every] * sweeps, self.tables, keep_averages=True)
        asked = every[self._answered[every]]
        for swept in sweep(self.model, self, asked, self.tables, keep_averages=True):
            assert swept.outputs is not None
            self.make_outputs(swept.outputs.shape[1], swept.outputs.dtype)
            self.outputs[swept.nodes] = swept.outputs.cpu()

    def make_outputs(self, width: int, dtype: torch.dtype) -> None:
        """Make room for the outputs of all slots."""
        if not self.outputs.numel():
            self.outputs = zeros((self.slots.total, width), dtype, self._file("outputs"))

    @property
    def wasteful(self) -> bool:
        """Whether old versions of rows take more room than is worth keeping."""
        halves = [half for edges in self.edges.values() for half in (edges.into, edges.out)]
        waste = [(half.rows.waste, half.rows.num_base) for half in halves]
        waste.append((self.features.waste, 0))
        return any(old > max(_WASTE, size // 2) for old, size in waste)

    def adopt(self, other: LiveState, theirs: Tensor, ours: Tensor) -> None:
        """Take over the tables and outputs of another state of the same graph.

        theirs, ours: (nodes,) slots of the same nodes
        """
        for (level, _), table in other.tables.tables.items():
            mine = self.tables.table(level, table.values.shape[1])
            for some, there in zip(ours.split(_ROWS), theirs.split(_ROWS), strict=True):
                mine.write(some.to(mine.values.device), table.read(there, self.dtype), 0)
        self.make_outputs(other.outputs.shape[1], other.outputs.dtype)
        for some, there in zip(ours.split(_ROWS), theirs.split(_ROWS), strict=True):
            self.outputs[some] = other.outputs[there]
        self.computed[ours] = other.computed[theirs]

    def apply(self, changes: Resolved, undo: Undo, only: Tensor | None = None) -> Computed:
        """Edit features and edges, and compute what is affected. The outputs are not written:
        readers go on with those from before.

        only: slots whose outputs alone are wanted; then tables are right for these alone, and the
            change has to be taken back
        """
        fresh = self._edit_nodes(changes, undo)
        dirty = self._edit_edges(changes, undo)
        return self._compute(fresh, dirty, self._fields(only), undo)

    def field(self, nodes: Tensor) -> Tensor:
        """The slots that outputs of some depend on, ascending."""
        fields = self._fields(nodes)
        assert fields is not None
        return fields[0]

    def _fields(self, nodes: Tensor | None) -> list[Tensor] | None:
        """For each level, and the outputs, the slots that some outputs depend on; None: all."""
        if nodes is None:
            return None
        fields = [nodes.unique()]
        overs = dict.fromkeys([*self.evaluation.tables, *self.evaluation.second_hops])
        for relations in reversed(self.evaluation.levels):
            P = [self.P[over] for over in relations]
            near = [fields[-1], *(p.rows(fields[-1]).indices for p in P)]
            fields.append(torch.cat(near).unique())
        if overs:  # rows of tables that neighbours have, and theirs
            P = [self.P[over] for over in overs]
            for _ in range(2 if self.evaluation.second_hops else 1):
                near = [fields[-1], *(p.rows(fields[-1]).indices for p in P)]
                fields[-1] = torch.cat(near).unique()
        return fields[::-1]

    def _edit_nodes(self, changes: Resolved, undo: Undo) -> Tensor:
        """Return the slots whose features are new."""
        for (kind, key), slot in changes.added.items():
            self.learned.set(kind, key, slot, undo)
        added = torch.tensor(list(changes.added.values()), dtype=torch.int64)
        removed = torch.tensor(list(changes.removed.values()), dtype=torch.int64)
        undo.write(self.alive, added, torch.ones(len(added), dtype=torch.bool))
        undo.write(self.alive, removed, torch.zeros(len(removed), dtype=torch.bool))
        self.raw.set(changes.features, undo)
        if self.moments is not None and changes.times:
            times = torch.tensor(list(changes.times.values()), dtype=torch.float64)
            undo.write(self.moments, torch.tensor(list(changes.times)), times)
        by_kind: dict[str, list[int]] = {}
        for slot in changes.features:
            by_kind.setdefault(self.slots.kind_of(slot), []).append(slot)
        for kind, slots in by_kind.items():
            if not len(self.raw.columns(kind)):
                continue
            rows = torch.stack([torch.from_numpy(changes.features[slot]) for slot in slots])
            scaled = self.raw.scaled(kind, rows.numpy())
            self.features.set(torch.tensor(slots), scaled, undo)
        return torch.tensor(sorted(changes.features), dtype=torch.int64)

    def _edit_edges(self, changes: Resolved, undo: Undo) -> dict[Relation, Tensor]:
        """Return the rows of P that changed, by relation of the model."""
        touched: dict[int, tuple[Tensor, Tensor]] = {}
        undo.add(self._renew_matrices)  # the last step back: it reads what the others restore
        for name, edits in changes.edits.items():
            if edits:
                touched[id(self.edges[name])] = self.edges[name].edit(edits, undo)
        if touched and self._union is not None:
            both: EdgeEdits = {}
            for name, edits in changes.edits.items():
                both |= edits
                if name not in self._one_way:
                    both |= {(column, row): weight for (row, column), weight in edits.items()}
            touched[id(self._union)] = self._union.edit(both, undo)
        dirty = {}
        for over, matrix in self._matrices.items():
            rows, columns = touched.get(id(matrix.edges), (_NONE, _NONE))
            if matrix.reverse:
                rows, columns = columns, rows
            dirty[over] = matrix.update(rows, columns, undo) if len(rows) else _NONE
        if touched:
            self._renew_matrices()
        return dirty

    def _compute(
        self,
        fresh: Tensor,
        rows: dict[Relation, Tensor],
        fields: list[Tensor] | None,
        undo: Undo,
    ) -> Computed:
        """fields: slots that count, for each level and the outputs; None: all"""
        evaluation = self.evaluation
        of_tables = [rows[over] for over in evaluation.tables]
        of_tables += [self._matrices[o].reach(rows[o]) for o in evaluation.second_hops]
        counts = []
        dirty = self._counting(0, fields, fresh, *of_tables)
        for level, relations in enumerate(evaluation.levels):
            if level >= self._first:
                self._write_table(level, dirty, undo)
                counts.append(len(dirty))
            else:
                for over in relations:
                    wrong = torch.cat([rows[over], self._matrices[over].reach(dirty), dirty])
                    self.averages[over].forget(self._counting(0, fields, wrong), undo)
            reached = [self._matrices[over].reach(dirty) for over in relations]
            changed = (rows[over] for over in relations)
            dirty = self._counting(level + 1, fields, dirty, *of_tables, *changed, *reached)
        nodes = dirty[self._answered[dirty]]
        chunks = (
            [
                swept.outputs.cpu()
                for swept in sweep(self.model, self, nodes, self.tables, keep_averages=True)
                if swept.outputs is not None
            ]
            if len(nodes)
            else []
        )
        outputs = torch.cat(chunks) if chunks else self.outputs[:0]
        return Computed(nodes, outputs, (*counts, len(nodes)))

    def _write_table(self, level: int, nodes: Tensor, undo: Undo) -> None:
        if not len(nodes):
            return
        table = self.tables.table(level, self.evaluation.widths[level])
        swept = sweep(self.model, self, nodes, self.tables, stop=level, keep_averages=True)
        for part in swept:
            h = part.received[level]
            before = table.replace(part.nodes.to(h.device), h, 0)
            undo.add(partial(table.put_back, before))

    def _counting(self, level: int, fields: list[Tensor] | None, *nodes: Tensor) -> Tensor:
        """Return the given nodes that exist and count at a level, ascending."""
        slots_there = torch.cat(nodes).unique()
        slots_there = slots_there[self.alive[slots_there]]
        return (
            slots_there if fields is None else slots_there[torch.isin(slots_there, fields[level])]
        )

    def _made_matrices(self, saved: SavedModel, graph: Graph) -> dict[Relation, LiveMatrix]:
        rule = propagation_of(saved.model) if saved.propagation is None else saved.propagation
        overs = asked_relations(self.evaluation) or [None]
        rules = rule if isinstance(rule, Mapping) else dict.fromkeys(overs, rule)
        matrices: dict[Relation, LiveMatrix] = {}
        for over, name in rules.items():
            if not isinstance(name, str) or name not in PROPAGATIONS:
                raise InputError(
                    "a live graph cannot follow a propagation matrix or rule of your own: what a "
                    f"change does to it is not known; models by {', '.join(PROPAGATIONS)} can"
                )
            matrices[over] = self._made_matrix(over, name, graph)
        return matrices

    def _made_matrix(self, over: Relation, rule: str, graph: Graph) -> LiveMatrix:
        if not graph.kinds.named:
            edges = self.edges[ONLY]
            return LiveMatrix(edges, SIDES.get(rule), self.slots.total, self.dtype)
        if over is None and rule == "identity":
            return LiveMatrix(None, None, self.slots.total, self.dtype)
        if over is None:
            self._union = _union(graph, self.slots)
            return LiveMatrix(self._union, SIDES[rule], self.slots.total, self.dtype)
        relation = graph.relations[over]
        kinds = self.schema.kinds
        return LiveMatrix(
            self.edges[relation.reverse_of or over],
            RELATION_SIDES.get(rule),
            self.slots.total,
            self.dtype,
            reverse=relation.reverse_of is not None,
            spans=(kinds.range(relation.target), kinds.range(relation.source)),
        )

    def _renew_matrices(self) -> None:
        """P anew, where loops have come or gone; its vectors and rows are the same."""
        self.P = {over: matrix.P for over, matrix in self._matrices.items()}
        for over, averages in self.averages.items():
            averages.P = self.P[over]

    def _file(self, name: str) -> Path | None:
        return None if self._directory is None else self._directory / f"{name}.bin"


def _union(graph: Graph, slots: Slots) -> LiveEdges:
    """The edges of all relations, with their reverses, together, which follow changes where no two
    relations can have an edge at the same place."""
    ends = [frozenset((part.source, part.target)) for part in graph.given.values()]
    alone = all(len(pair) == 2 for pair in ends) and len(set(ends)) == len(ends)
    if not alone:
        raise InputError(
            "the model averages over all relations at once, which a live graph can follow only if "
            "each relation is between two kinds of its own; relational models can in any case"
        )
    one_way = any(part.one_way for part in graph.given.values())
    return LiveEdges(graph.adjacency, slots, undirected=not one_way)
