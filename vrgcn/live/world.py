"""A graph and a model as a live one holds them: slots, ids, relations and tables; those that
cannot be live are refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from vrgcn.data.tables.ids import tidied
from vrgcn.data.tables.recipe import ImportRecipe
from vrgcn.engine.forward import find_adapter
from vrgcn.files.mistakes import InputError
from vrgcn.graph.edge_means import averaged_columns, cannot_follow
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import EDGES
from vrgcn.inference.saved import SavedModel
from vrgcn.live.edges import LiveEdges
from vrgcn.live.ids import IdIndex, KindIds
from vrgcn.live.known_pairs import hidden_pairs, relation_of
from vrgcn.live.resolving import Known, LiveRelation, Resolved
from vrgcn.live.row_features import NumberRows, RecipeRows, RowFeatures
from vrgcn.live.slots import ONLY, Slots
from vrgcn.live.state import Computed, LiveState
from vrgcn.pairs.model import PairModel


def check_live_model(saved: SavedModel) -> None:
    """Raise for a model whose outputs cannot follow changes of the graph."""
    saved.check_single("cannot be live; name a single model")
    if find_adapter(saved.model) is not None:
        raise InputError(
            "the layers of a PyG model bring matrices of their own, and what a change of the graph "
            "does to these is not known here: train vrgcn's GCN or GraphSAGE, or predict anew"
        )
    _check_pairs(saved.model)
    if saved.propagation == "both":
        raise InputError(
            "the model reads the edges of a directed graph in both directions, which cannot be "
            "live: name another model, or predict anew"
        )
    if saved.own_matrix:
        raise InputError(
            "the model was trained by a propagation matrix or rule of your own: what a change of "
            "the graph does to it is not known"
        )


def _check_pairs(model: nn.Module) -> None:
    if not isinstance(model, PairModel):
        return
    if model.arguments.get("directions") is not None:
        raise InputError("a model that predicts the edges of all relations cannot be live")
    if model.arguments.get("values") is not None:
        raise InputError("a model that predicts values of pairs cannot be live")


def check_live_graph(graph: Graph) -> None:
    """Raise for a graph that is scaled, or a part of another."""
    if graph.scaling is not None:
        raise InputError(
            "the features of the graph are scaled already: give the graph as it was loaded; the "
            "saved model scales it"
        )
    if graph.sums is not None:
        raise InputError("one part of a larger graph cannot be live: give the whole graph")


Recipes = Mapping[str, ImportRecipe]  # by kind or relation, by "" of a graph of one table

_OF_EDGES = (
    "the features of this graph were made of its edges, all at once, and cannot follow a change of "
    "them: import it again with a table of nodes"
)


@dataclass(frozen=True)
class World:
    """graph: that the slots were made for, as it was loaded
    ids: of the nodes of each kind; relations: as they were given, without reverses
    known: what changes are checked against
    answered: kinds whose outputs are kept
    """

    graph: Graph
    slots: Slots
    ids: Mapping[str, KindIds]
    relations: Mapping[str, LiveRelation]
    state: LiveState
    known: Known
    answered: tuple[str, ...]

    def answered_slots(self) -> Tensor:
        """Slots of the graph's nodes whose outputs are kept."""
        return torch.cat([self.slots.of_graph(kind) for kind in self.answered])


def make_world(
    saved: SavedModel,
    graph: Graph,
    recipes: Recipes,
    undirected: bool | None,
    directory: Path | None,
) -> World:
    """Everything that a live model holds, its tables still empty."""
    slots = Slots(graph)
    ids = _kind_ids(graph, slots, recipes)
    relations = _relations(graph, slots, recipes, undirected)
    edges = {name: relation.edges for name, relation in relations.items()}
    answered = slots.kinds
    predicted = relation_of(saved.model) if isinstance(saved.model, PairModel) else None
    if predicted is not None:
        one = relations[predicted]
        answered = tuple(dict.fromkeys((one.source, one.target)))
    elif graph.kinds.target is not None:
        answered = (graph.kinds.target,)
    if predicted is not None:
        hidden = hidden_pairs(graph, slots.of_graph())
        relations[predicted] = replace(relations[predicted], hidden=hidden)
    state = LiveState(saved, graph, slots, edges, answered, directory)
    frozen = _frozen_kinds(graph, relations)
    features = _row_features(graph, state, recipes)
    times = {} if graph.dated is None else graph.dated.times
    known = Known(slots, ids, relations, features, state.raw.row, frozen, times)
    return World(graph, slots, ids, relations, state, known, answered)


def _kind_ids(graph: Graph, slots: Slots, recipes: Recipes) -> dict[str, KindIds]:
    names = {ONLY: graph.names.nodes, **graph.names.by_kind}
    ids = {}
    for kind, size in slots.sizes.items():
        ways = recipes[kind].options.get("tidy_ids") if kind in recipes else None
        tidy = partial(tidied, ways=ways) if ways else None
        ids[kind] = KindIds(IdIndex(names.get(kind), size, tidy), slots.first(kind))
    return ids


def _relations(
    graph: Graph, slots: Slots, recipes: Recipes, undirected: bool | None
) -> dict[str, LiveRelation]:
    if not graph.kinds.named:
        recipe = recipes.get(ONLY)
        if undirected is None and recipe is not None:
            undirected = not recipe.options["directed"]
        edges = LiveEdges(graph.adjacency, slots, undirected)
        columns = _columns(recipes.get(EDGES))
        frozen = _OF_EDGES if recipe is not None and recipe.features == "edges" else ""
        return {ONLY: LiveRelation(ONLY, ONLY, ONLY, edges, columns, frozen)}
    relations = {}
    averaged = averaged_columns(graph)
    for name, part in graph.given.items():
        recipe = recipes.get(name)
        edges = LiveEdges(part.adjacency, slots, part.undirected)
        columns = _columns(recipe, part.source, part.target)
        own = {name: averaged[name]} if name in averaged else {}
        frozen = cannot_follow(own, advice=False) or ""
        ends = part.source, part.target
        relations[name] = LiveRelation(name, *ends, edges, columns, frozen, one_way=part.one_way)
    return relations


def _frozen_kinds(graph: Graph, relations: Mapping[str, LiveRelation]) -> dict[str, str]:
    """Why nodes of a kind cannot be added or changed: some of their features are made of columns of
    edges."""
    frozen: dict[str, str] = {}
    for relation in relations.values():
        if relation.frozen:
            frozen |= dict.fromkeys((relation.source, relation.target), relation.frozen)
    return frozen


def _columns(
    recipe: ImportRecipe | None, source: str = ONLY, target: str = ONLY
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Names by which rows of edges call their ends and their weight."""
    ends: list[tuple[str, ...]] = [("source",), ("target",)]
    if source != target:
        ends = [("source", source), ("target", target)]
    weight: tuple[str, ...] = ("weight",)
    if recipe is not None:
        named = (recipe.source, recipe.target)
        ends = [(own, *end) if own else end for own, end in zip(named, ends, strict=True)]
        weight = (recipe.weight, *weight) if recipe.weight else weight
    return ends[0], ends[1], weight


def _row_features(graph: Graph, state: LiveState, recipes: Recipes) -> dict[str, RowFeatures]:
    by_kind: dict[str, RowFeatures] = {}
    for kind in state.slots.kinds:
        own = state.raw.columns(kind)
        recipe = recipes.get(kind)
        if recipe is not None and recipe.features == "columns":
            by_kind[kind] = RecipeRows(recipe, len(own))
            continue
        names = graph.names.features
        mine = None if names is None else names[own.start : own.stop]
        if mine is not None and kind != ONLY:
            mine = [name.removeprefix(f"{kind}.") for name in mine]
        by_kind[kind] = NumberRows(len(own), mine)
    return by_kind


def check_finite(world: World, computed: Computed, changes: Resolved) -> None:
    """Refuse changes after which a prediction would be no number."""
    wrong = ~torch.isfinite(computed.outputs).all(1)
    if not wrong.any():
        return
    slot = int(computed.nodes[wrong][0])
    new = {slot: key for (_, key), slot in changes.added.items()}
    node = new[slot] if slot in new else world.ids[world.slots.kind_of(slot)].id(slot)
    raise InputError(
        f"the prediction of node {node!r} would not be a finite number: are features or weights "
        "far larger than those that the model was trained on?"
    )
