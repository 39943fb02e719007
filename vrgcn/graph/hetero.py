"""To and from PyG's `HeteroData`: node types are kinds, edge types relations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.from_kinds import split_features
from vrgcn.graph.graph import Graph
from vrgcn.graph.pyg import edge_index_of, edge_weight_of, labels_of, mask_of
from vrgcn.graph.relations import Triple, relation_name, reverse_triple
from vrgcn.graph.validation import SPLITS


def graph_from_hetero(data: Any, task: str | None = None) -> Graph:
    """A Graph of `HeteroData`. One node type has y and masks; a type without x has `num_nodes`.

    An edge type that another one's reverse would be called by, as `ToUndirected` makes them, must
    be that reverse, and is left out: every relation gets its reverse here, but those whose store
    says `one_way`, as in data["race", "before", "race"].one_way = True.
    """
    labelled = [kind for kind in data.node_types if getattr(data[kind], "y", None) is not None]
    if len(labelled) > 1:
        raise InputError(
            f"several node types have y: {', '.join(labelled)}. Labels belong to one kind: leave "
            "the others out, del data['...'].y"
        )
    target = labelled[0] if labelled else None
    features = {}
    for kind in data.node_types:
        x = getattr(data[kind], "x", None)
        count = data[kind].num_nodes if x is None else None
        if x is None and count is None:
            raise InputError(f"data[{kind!r}] has neither x nor num_nodes: set one of them")
        features[kind] = count if x is None else x
    edges = {}
    for triple in data.edge_types:
        if not _is_reverse(data, triple):
            edges[triple] = edge_index_of(data[triple]), edge_weight_of(data[triple])
    one_way = [triple for triple in edges if getattr(data[triple], "one_way", False)]
    splits: dict[str, Any] = {}
    if target is not None:
        splits = {name: mask_of(data[target], f"{name}_mask") for name in SPLITS}
    labels = {} if target is None else {target: labels_of(data[target], task)}
    return Graph.from_kinds(features, edges, labels, **splits, task=task, one_way=one_way)


def graph_to_hetero(graph: Graph) -> Any:
    """`HeteroData` with x or num_nodes of each kind, y and masks of one, and edge_index of each
    relation that was given, with `one_way` where it is; `torch_geometric.transforms.ToUndirected`
    adds the reverses."""
    from torch_geometric.data import HeteroData

    data = HeteroData()
    for kind, table in split_features(graph.kinds, graph.features).items():
        data[kind].num_nodes = graph.kinds.sizes[kind]
        if table is not None:
            data[kind].x = table
    if graph.target is not None and graph.labels is not None:
        own = graph.kinds.range(graph.target)
        data[graph.target].y = graph.labels[own.start : own.stop]
        for name in SPLITS:
            if len(graph.split(name)):
                mask = torch.zeros(len(own), dtype=torch.bool)
                mask[graph.split(name) - own.start] = True
                data[graph.target][f"{name}_mask"] = mask
    for relation in graph.given.values():
        A = relation.adjacency
        starts = [graph.kinds.range(kind).start for kind in (relation.source, relation.target)]
        ends = torch.stack([A.indices, A.row_of_entry]) - torch.tensor(starts)[:, None]
        data[relation.triple].edge_index = ends
        if A.values is not None:
            data[relation.triple].edge_weight = A.values
        if relation.one_way:
            data[relation.triple].one_way = True
    return data


def _is_reverse(data: Any, triple: Triple) -> bool:
    """Whether an edge type is the reverse of another one; an error where only its name says so."""
    others = [other for other in data.edge_types if reverse_triple(other) == triple]
    if not others:
        return False
    mine, other = edge_index_of(data[triple]), edge_index_of(data[others[0]])
    if not torch.equal(_sorted(mine.flip(0)), _sorted(other)):
        raise InputError(
            f"the edge type {relation_name(triple)!r} has the name of the reverse of "
            f"{relation_name(others[0])!r} and other edges: give it another name"
        )
    return True


def _sorted(edges: Tensor) -> Tensor:
    order = torch.argsort(edges[0] * (int(edges.max()) + 1 if edges.numel() else 1) + edges[1])
    return edges[:, order]
