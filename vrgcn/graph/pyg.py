"""To and from PyG's `Data`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import in_blocks
from vrgcn.graph.validation import SPLITS, as_tensor
from vrgcn.tasks import DEFAULT, find_task


def graph_from_pyg(data: Any, task: str | None = None) -> Graph:
    """A Graph of `Data` with x and edge_index, and where present y, masks and edge weights.

    Edge weights are `edge_weight`, or else `edge_attr` if it has one number per edge. Masks hold
    true and false, or 0 and 1; a mask without a node leaves its split out. Whole numbers in y are
    classes, unless `task` is "regression".
    """
    if hasattr(data, "edge_types"):
        from vrgcn.graph.hetero import graph_from_hetero

        return graph_from_hetero(data, task)
    if getattr(data, "x", None) is None:
        raise InputError("data.x is missing: a graph needs node features (nodes, width)")
    return Graph(
        edge_index_of(data),
        data.x,
        labels_of(data, task),
        edge_weight=edge_weight_of(data),
        train=mask_of(data, "train_mask"),
        val=mask_of(data, "val_mask"),
        test=mask_of(data, "test_mask"),
        task=task,
    )


def graph_to_pyg(graph: Graph) -> Any:
    """`Data` with x, edge_index, y, a mask for each split, and edge_weight if weighted."""
    from torch_geometric.data import Data

    if graph.kinds.named:
        from vrgcn.graph.hetero import graph_to_hetero

        return graph_to_hetero(graph)
    # Of dense and sparse columns PyG knows one matrix.
    x = graph.features.to_sparse_csr() if in_blocks(graph.features) else graph.features
    data = Data(x=x, edge_index=graph.edge_index(), y=graph.labels)
    if graph.weighted:
        data.edge_weight = graph.adjacency.values
    for name in SPLITS:
        if len(graph.split(name)):
            mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
            mask[graph.split(name)] = True
            data[f"{name}_mask"] = mask
    return data


def edge_index_of(data: Any) -> Tensor:
    edge_index = getattr(data, "edge_index", None)
    if isinstance(edge_index, Tensor):
        return edge_index.as_subclass(Tensor)
    raise InputError(
        "data.edge_index is missing: vrgcn reads (2, edges) tensors, not adj_t; leave the "
        "transform ToSparseTensor out"
    )


def edge_weight_of(data: Any) -> Tensor | None:
    weight = getattr(data, "edge_weight", None)
    if weight is not None:
        return weight
    attributes = getattr(data, "edge_attr", None)
    if attributes is None:
        return None
    if attributes.dim() == 2 and attributes.shape[1] == 1:
        attributes = attributes[:, 0]
    if attributes.dim() != 1:
        raise InputError(
            f"data.edge_attr has shape {tuple(attributes.shape)}, and an edge has one weight: set "
            "data.edge_weight, or data.edge_attr = None to leave it out"
        )
    return attributes


def labels_of(data: Any, task: str | None) -> Tensor | None:
    y = getattr(data, "y", None)
    return None if y is None else find_task(task or DEFAULT).from_pyg(y)


def mask_of(data: Any, name: str) -> Tensor | None:
    """Return a split's mask as (nodes,) bool, from true and false, or 0 and 1 of any type, as in
    older PyG.

    Node numbers are not accepted: [0, 1] for two nodes could not be told from a mask.
    """
    given = getattr(data, name, None)
    if given is None:
        return None
    mask = as_tensor(given, f"data.{name}")
    x = getattr(data, "x", None)  # node types of HeteroData may lack it
    nodes = data.num_nodes if x is None else len(x)
    if mask.dim() == 2 and mask.shape[1] == 1:
        mask = mask[:, 0]
    if mask.dim() == 2:
        raise InputError(
            f"data.{name} holds {mask.shape[1]} splits, one a column: choose one, "
            f"data.{name} = data.{name}[:, 0]"
        )
    if mask.shape != (nodes,):
        raise InputError(
            f"data.{name} must have one value per node, ({nodes},), not {tuple(mask.shape)}"
            f"{_FROM_NUMBERS}"
        )
    wrong = ((mask != 0) & (mask != 1)).nonzero()
    if len(wrong):
        node = int(wrong[0, 0])
        raise InputError(
            f"data.{name} is a mask, true or false or 0 or 1 for each node, and node {node} has "
            f"{mask[node].item()}{_FROM_NUMBERS}"
        )
    return mask == 1 if mask.any() else None


_FROM_NUMBERS = (
    "; if it holds node numbers, make it a mask: mask = torch.zeros(nodes, dtype=torch.bool); "
    "mask[numbers] = True"
)
