"""`Live`: exact predictions for a graph that changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.graph.edge_means import averaged_columns, cannot_follow
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import check_outputs
from vrgcn.inference.predictions import Predictions
from vrgcn.inference.saved import SavedModel
from vrgcn.inference.sweeps import KnownOutputs
from vrgcn.live.asking import ask, edges_in_time
from vrgcn.live.changes import Applied, Change, Changes, RefusedError, checked, id_list, within
from vrgcn.live.explaining import Effects, Explanation, explain_node, influence_on
from vrgcn.live.ids import Id
from vrgcn.live.known_pairs import relation_of, with_pairs
from vrgcn.live.materialise import materialise
from vrgcn.live.reading import (
    UnknownNodeError,
    hidden_numbers,
    names_of,
    neighbours_of,
    new_partners,
    slot_of,
)
from vrgcn.live.resolving import Resolved, Resolver, find_kind
from vrgcn.live.saving import load_tables, open_graph, save_live, verified_description
from vrgcn.live.slots import ONLY, FullError, Undo
from vrgcn.live.state import Computed
from vrgcn.live.turns import Turns
from vrgcn.live.world import (
    Recipes,
    World,
    check_finite,
    check_live_graph,
    check_live_model,
    make_world,
)
from vrgcn.pairs.model import PairModel
from vrgcn.tasks import find_task


class Live:
    """A trained model on a graph that changes: what `predict` answers on the changed graph, from
    tables that every change keeps exact.

    model: a saved model, or a model as `fit` left it
    graph: as it was loaded, its features not scaled
    recipes: of the import that made the graph, by which rows become features; None: rows are
        numbers
    undirected: whether an edge counts in both directions; None: as the graph does
    directory: keep the tables in files there instead of in memory

    One thread at a time changes it or computes, changes first; readers are never in the middle of a
    change.
    """

    def __init__(
        self,
        model: nn.Module | SavedModel,
        graph: Graph,
        *,
        recipes: Recipes | None = None,
        undirected: bool | None = None,
        directory: str | Path | None = None,
    ) -> None:
        saved = model if isinstance(model, SavedModel) else SavedModel.of(model)
        self._begin(saved, graph, recipes, undirected, directory)
        self._world.state.fill()
        slots = self._world.answered_slots()
        numbers = self._world.slots.numbers()[slots]
        check_outputs(graph, numbers, self._world.state.outputs[slots])

    def _begin(
        self,
        saved: SavedModel,
        graph: Graph,
        recipes: Recipes | None,
        undirected: bool | None,
        directory: str | Path | None,
    ) -> None:
        check_live_model(saved)
        check_live_graph(graph)
        self.saved = saved
        self.note: Any = None
        self.version = 0  # how often it was changed
        self._last: tuple[int, Tensor] | None = None  # see _finished; of which version, by slots
        self._recipes = recipes or {}
        self._undirected = undirected
        self._directory = None if directory is None else Path(directory)
        self._latest = 0.0
        self._turns = Turns()
        self._reading = threading.Lock()
        self._world = self._made(graph)

    @staticmethod
    def open(
        folder: str | Path,
        model: nn.Module | SavedModel,
        *,
        directory: str | Path | None = None,
    ) -> Live:
        """The live model that `save` wrote to a folder, with its tables; `note` is what was given.

        model: that it was saved with
        directory: as in `Live`
        """
        saved = model if isinstance(model, SavedModel) else SavedModel.of(model)
        described = verified_description(Path(folder), saved)
        graph, recipes = open_graph(Path(folder), saved, "ram" if directory is None else "disk")
        live = Live.__new__(Live)
        live._begin(saved, graph, recipes, described["undirected"], directory)
        load_tables(live, Path(folder))
        live.note = described["note"]
        return live

    def save(self, folder: str | Path, note: Any = None) -> None:
        """Write the changed graph and all tables to a new folder, complete or not at all.

        note: any value that JSON has, such as the number of the last change; `open` gives it back
        """
        with self._turns.changing():
            save_live(self, Path(folder), note)

    # Reading.

    @property
    def undirected(self) -> bool | None:
        """Whether an edge counts in both directions; None in a graph with relations, each of which
        says so itself."""
        return (
            self._world.relations[ONLY].edges.undirected if ONLY in self._world.relations else None
        )

    @property
    def refuses(self) -> list[str]:
        """Sentences about changes that are refused, because features cannot follow them."""
        relations = self._world.relations
        if ONLY in relations:
            reason: str | None = relations[ONLY].frozen
        else:
            reason = cannot_follow(averaged_columns(self._world.graph))
        return [reason] if reason else []

    @property
    def num_nodes(self) -> int:
        with self._reading:
            return sum(map(len, self._world.ids.values()))

    def about(self) -> dict[str, Any]:
        """Sizes of the graph, names of its kinds and relations, kinds that have predictions, and
        whether edges have weights."""
        with self._turns:
            relations = self._world.relations
            return {
                "nodes": self.num_nodes,
                "edges": sum(each.edges.num_edges for each in relations.values()),
                "kinds": [kind for kind in self._world.ids if kind != ONLY],
                "predicted": [kind for kind in self._world.answered if kind != ONLY],
                "relations": [name for name in relations if name != ONLY],
                "weighted": any(each.edges.weighted for each in relations.values()),
            }

    @property
    def classes(self) -> list[str] | None:
        """Names of the classes; None if numbers are predicted."""
        if not find_task(self.saved.task).has_classes:
            return None
        width = self._world.state.outputs.shape[1]
        return self.saved.classes or [str(number) for number in range(width)]

    def __contains__(self, node: Any) -> bool:
        return self.has(node)

    def has(self, node: Any, kind: str | None = None) -> bool:
        """Whether there is a node with an id."""
        ids = self._world.ids[find_kind(kind, self._world.slots, "kind")]
        key = ids.index.key(node)
        with self._reading:
            return key is not None and ids.slot(key) is not None

    def id(self, node: Any, kind: str | None = None) -> Id:
        """The id of a node as the graph has it: a number if ids are numbers, else a text."""
        kind = find_kind(kind, self._world.slots, "kind")
        with self._reading:
            return self._world.ids[kind].id(slot_of(self._world, kind, node))

    def predicts(self, kind: str | None = None) -> bool:
        """Whether the nodes of a kind have predictions."""
        return find_kind(kind, self._world.slots, "kind") in self._world.answered

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Hold back changes by other threads, so that all answers inside the block are about one
        graph."""
        with self._turns:
            yield

    def predict(self, ids: Any, kind: str | None = None) -> Predictions:
        """The predictions of some nodes, exact for the graph as it is now.

        ids: the user's own; one, or several
        kind: of the nodes, where there are several kinds; None: the kind that has labels
        """
        if isinstance(self.saved.model, PairModel):
            raise InputError("predict: the model predicts pairs: see recommend")
        nodes = id_list(ids)
        kind = find_kind(kind, self._world.slots, "predict")
        return self._predictions(kind, nodes, self._outputs(kind, nodes))

    def _predictions(self, kind: str, nodes: list[Any], outputs: Tensor) -> Predictions:
        """outputs: (len(nodes), width), of the last stage"""
        names = names_of(nodes, kind, self._world.ids[kind].index.text)
        return Predictions(
            torch.arange(len(nodes)),
            outputs,
            names,
            self.classes,
            self.saved.task,
            self.saved.calibration,
        )

    def computed(self, node: Any, kind: str | None = None) -> float:
        """When the outputs of a node were computed, in Unix seconds: at each change that affects
        them or anything that they depend on, and no two changes have the same time."""
        kind = find_kind(kind, self._world.slots, "computed")
        with self._reading:
            return float(self._world.state.computed[slot_of(self._world, kind, node)])

    def _outputs(self, kind: str, nodes: list[Any]) -> Tensor:
        if kind not in self._world.answered:
            kept = ", ".join(self._world.answered)
            text = f"predict: nodes of kind {kind!r} have no predictions; {kept} have"
            raise RefusedError(text, "kind")
        if self.saved.whole is not None:
            with self._turns:
                table = self._finished()
                return table[[slot_of(self._world, kind, node) for node in nodes]]
        with self._reading:
            slots = torch.tensor(
                [slot_of(self._world, kind, node) for node in nodes], dtype=torch.int64
            )
            outputs = self._world.state.outputs.index_select(0, slots)
        return self.saved.row_outputs(outputs)

    def _finished(self) -> Tensor:
        """Outputs of the last stage, (slots, width), computed once after each change."""
        if self._last is None or self._last[0] != self.version:
            state = self._world.state
            slots = state.alive.nonzero()[:, 0]
            graph = materialise(self._world.graph, state, self._world.ids, bare=True)
            outputs = self.saved.staged(KnownOutputs(graph, state.outputs[slots])).outputs()
            table = outputs.new_zeros((self._world.slots.total, outputs.shape[1]))
            table[slots] = outputs
            self._last = self.version, table
        return self._last[1]

    @property
    def source_kind(self) -> str | None:
        """The kind of nodes that `recommend` finds partners for; None if there are no kinds, or the
        model does not predict pairs."""
        model = self.saved.model
        if not isinstance(model, PairModel):
            return None
        return self._world.relations[relation_of(model)].source or None

    def recommend(self, node: Any, top: int = 10, kind: str | None = None) -> list[dict[str, Any]]:
        """The best new partners of a node by a model of pairs, best first: id, kind and score.

        kind: of the node, where the relation is between two kinds; None: that of its sources
        """
        model = self.saved.model
        if not isinstance(model, PairModel):
            raise InputError("recommend: the model predicts labels of nodes, and no pairs")
        relation = self._world.relations[relation_of(model)]
        if kind not in (None, relation.source):
            text = f"recommend: partners are found for nodes of kind {relation.source!r}"
            raise RefusedError(text, "kind")
        with self._turns:
            slot = slot_of(self._world, relation.source, node)
            return new_partners(self._world, model, slot, top)

    def neighbours(
        self, node: Any, kind: str | None = None, most: int = 50
    ) -> list[dict[str, Any]]:
        """The neighbours that a node averages: relation, id, kind and weight of each edge.

        most: so many of each relation
        """
        kind = find_kind(kind, self._world.slots, "neighbours")
        with self._turns:
            return neighbours_of(self._world, slot_of(self._world, kind, node), kind, most)

    def what_if(
        self, changes: Changes | list[Change] | Change, ids: Any, kind: str | None = None
    ) -> Predictions:
        """The predictions that some nodes would have after some changes, which are not made.

        ids: also of nodes that the changes add
        """
        whole = self.saved.whole
        if isinstance(self.saved.model, PairModel) or whole is not None:
            which = "of pairs" if whole is None else f"that are {whole.words}"
            raise InputError(
                f"what_if: predictions {which} are not known without making the change"
            )
        nodes = id_list(ids)
        kind = find_kind(kind, self._world.slots, "what_if")
        with self._turns:
            resolved = self._resolve(checked(changes))
            new: dict[Any, int] = {
                k: slot for (of, k), slot in resolved.added.items() if of == kind
            }
            gone = {key for of, key in resolved.removed if of == kind}
            key = self._world.ids[kind].index.key
            slots = []
            for index, node in enumerate(nodes):
                with within("ids", index):
                    if key(node) in gone and key(node) not in new:
                        raise UnknownNodeError(f"there would be no node {node!r}")
                    slot = new.get(key(node))
                    slots.append(slot_of(self._world, kind, node) if slot is None else slot)
            outputs = self._supposed(resolved, torch.tensor(slots))
        return self._predictions(kind, nodes, self.saved.row_outputs(outputs))

    def ask(self, rows: Any = None, **question: Any) -> Predictions:
        """Predictions of new rows, by the facts known at their time; rows: dicts or a DataFrame;
        question: the one row, driver=44, at="2026-06-01"."""
        return ask(self, [question] if rows is None else rows)

    def explain(self, node: Any, kind: str | None = None, most: int = 30) -> Explanation:
        """How the prediction of a node changes when an edge, a neighbour or a column is left out.

        most: how many edges, neighbours and columns are left out, one by one
        """
        kind = self._explained_kind(kind)
        with self._turns:
            return explain_node(self, slot_of(self._world, kind, node), kind, most)

    def influence(self, node: Any, kind: str | None = None, most: int = 30) -> Effects:
        """How the prediction of a node changes when a neighbour is left out; `explain` without
        edges and columns."""
        kind = self._explained_kind(kind)
        with self._turns:
            return influence_on(self, slot_of(self._world, kind, node), kind, most)

    def _explained_kind(self, kind: str | None) -> str:
        if isinstance(self.saved.model, PairModel):
            raise InputError("explain: the model predicts pairs, and no labels of nodes")
        kind_of = find_kind(kind, self._world.slots, "explain")
        if kind_of not in self._world.answered:
            raise RefusedError(f"explain: nodes of kind {kind_of!r} have no predictions", "kind")
        return kind_of

    def _supposed(self, changes: Resolved, slots: Tensor) -> Tensor:
        """(slots, width) outputs that changes would lead to. Nothing of them stays."""
        undo = Undo()
        state = self._world.state
        try:
            computed = state.apply(changes, undo, only=slots)
        finally:
            undo.run()
        outputs = state.outputs.index_select(0, slots)
        if len(computed.nodes):
            at = torch.searchsorted(computed.nodes, slots).clamp(max=len(computed.nodes) - 1)
            new = computed.nodes[at] == slots
            outputs[new] = computed.outputs[at[new]]
        return outputs

    # Changing.

    @contextmanager
    def changes(self) -> Iterator[Changes]:
        """Changes that are applied together when the block ends without an error."""
        changes = Changes()
        yield changes
        self.apply(changes)

    def add_nodes(self, rows: Any, kind: str | None = None) -> Applied:
        """Add nodes; see `Changes.add_nodes`."""
        return self._one("add_nodes", rows, kind)

    def set_features(self, rows: Any, kind: str | None = None) -> Applied:
        """Replace features of nodes; see `Changes.set_features`."""
        return self._one("set_features", rows, kind)

    def remove_nodes(self, ids: Any, kind: str | None = None) -> Applied:
        """Remove nodes with all of their edges."""
        return self._one("remove_nodes", ids, kind)

    def add_edges(self, rows: Any, relation: str | None = None) -> Applied:
        """Add edges; see `Changes.add_edges`."""
        return self._one("add_edges", rows, relation)

    def remove_edges(self, rows: Any, relation: str | None = None) -> Applied:
        """Remove edges; see `Changes.remove_edges`."""
        return self._one("remove_edges", rows, relation)

    def _one(self, name: str, rows: Any, of: str | None) -> Applied:
        changes = Changes()
        getattr(changes, name)(rows, of)
        return self.apply(changes)

    def apply(
        self,
        changes: Changes | list[Change] | Change,
        record: Callable[[], None] | None = None,
        seconds: float | None = None,
    ) -> Applied:
        """Apply changes together: all of them, or none if one is refused.

        record: called when all is computed and before any reader sees it; if it raises, nothing is
            changed. A journal writes here what can no longer be refused.
        seconds: longest wait for the computation of another thread; then a `TimeoutError` is raised
        """
        began = time.perf_counter()
        with self._turns.changing(seconds):
            resolved = self._resolve(checked(changes))
            undo = Undo()
            try:
                computed = self._world.state.apply(resolved, undo)
                check_finite(self._world, computed, resolved)
                if record is not None:
                    record()
            except BaseException:
                undo.run()
                raise
            self._commit(resolved, computed)
            if self._world.state.wasteful:
                self._fold()
        added = [key for _, key in resolved.added]
        return Applied(added, computed.rows, time.perf_counter() - began)

    def check(self, changes: Changes | list[Change] | Change) -> None:
        """Raise if `apply` would refuse the changes; apply nothing."""
        with self._turns:
            self._resolve(checked(changes))

    def graph(self) -> Graph:
        """The graph as it is now, as it would be imported anew: new nodes have no labels and are
        in no split."""
        with self._turns:
            graph = materialise(self._world.graph, self._world.state, self._world.ids)
            model = self.saved.model
            if isinstance(model, PairModel):
                return with_pairs(graph, model, hidden_numbers(self._world, model))
            return graph

    # Inside.

    def _resolve(self, changes: list[Change]) -> Resolved:
        try:
            resolved = Resolver(self._world.known).resolve(changes)
        except FullError:
            self._fold()
            resolved = Resolver(self._world.known).resolve(changes)
        for wrong in edges_in_time(self._world, resolved):
            raise RefusedError(wrong)
        return resolved

    def _commit(self, resolved: Resolved, computed: Computed) -> None:
        """Let readers see a change: all of it at once."""
        with self._reading:
            if len(computed.nodes):
                self._world.state.outputs.index_copy_(0, computed.nodes, computed.outputs)
                self._latest = max(time.time(), self._latest + 1e-6)  # no two changes have one
                self._world.state.computed[computed.nodes] = self._latest
            for (kind, key), _ in resolved.removed.items():
                self._world.ids[kind].remove(key)
            for (kind, key), slot in resolved.added.items():
                self._world.ids[kind].add(key, slot)
            for kind, count in resolved.taken.items():
                self._world.slots.used[kind] += count
            for name, pairs in resolved.forgotten.items():
                self._world.relations[name].hidden.forget(pairs)
            self.version += 1

    def _fold(self) -> None:
        """Make the changed graph the graph that slots are made for, with room for new nodes; its
        tables go with it."""
        before = self._world
        slots = before.state.alive.nonzero()[:, 0]
        world = self._made(self.graph())
        world.state.adopt(before.state, slots, world.slots.of_graph())
        with self._reading:
            self._world = world
            self.version += 1

    def _made(self, graph: Graph) -> World:
        return make_world(self.saved, graph, self._recipes, self._undirected, self._directory)
