"""The checks that a graph's parts pass when it is made, and the errors when they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.sparse import CSR, in_blocks, is_dense, is_sparse
from vrgcn.tasks import find_task, implied_task
from vrgcn.tasks.task import is_integer

if TYPE_CHECKING:
    from vrgcn.graph.graph import Graph


# Spellings -> 0 train, 1 val, 2 test.
SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), 0),
    **dict.fromkeys(("val", "valid", "validation", "dev"), 1),
    **dict.fromkeys(("test", "testing"), 2),
}


SPLITS = ("train", "val", "test")


def as_tensor(value: Any, name: str) -> Tensor:
    """A CPU tensor of a tensor, an array or a list."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    try:
        return torch.as_tensor(np.asarray(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a tensor or an array of numbers: {error}") from None


def check_features(features: Any) -> Tensor:
    if isinstance(features, Blocks):
        return _check_blocks(features)
    if hasattr(features, "tocsr"):  # scipy
        matrix = features.tocsr(copy=True)
        matrix.sum_duplicates()
        features = torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data),
            size=matrix.shape,
            check_invariants=False,  # checked below
        )
    x = as_tensor(features, "features")
    if not isinstance(features, Tensor):
        x = x.to(torch.get_default_dtype()) if x.dtype == torch.float64 else x  # NumPy's default
    if x.layout == torch.sparse_coo and x.dim() == 2:
        x = x.to_sparse_csr()
    if x.dim() != 2:
        raise InputError(f"features must be (nodes, width), not of shape {tuple(x.shape)}")
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise TypeError(f"features must be dense or sparse CSR, not {x.layout}")
    if x.shape[0] == 0 or x.shape[1] == 0:
        raise InputError(f"features are empty: shape {tuple(x.shape)}")
    if x.is_complex() or x.dtype == torch.bool:
        raise TypeError(f"features must be real numbers, not {x.dtype}")
    if x.dtype not in (torch.float32, torch.float64):
        x = x.float()
    if is_sparse(x):
        # int64 indices once here, so that nothing later converts them.
        matrix = CSR.from_torch(x)
        _check_places(matrix)
        bad = ~torch.isfinite(x.values())
        if bad.any():
            entry = int(bad.nonzero()[0, 0])
            _raise_not_finite(
                int(bad.sum()), int(matrix.row_of_entry[entry]), int(matrix.indices[entry])
            )
        return matrix.to_torch()
    check_finite_rows(x)
    return x.contiguous()


def _check_blocks(x: Blocks) -> Tensor:
    """Features in blocks: each checked by itself, and all in different columns."""
    rows, columns = x.shape
    if not rows or not columns:
        raise InputError(f"features are empty: shape {(rows, columns)}")
    blocks = []
    for block in x.blocks:
        end, right = block.row + block.num_rows, block.column + block.width
        where = f"a block of rows {block.row} to {end} and columns {block.column} to {right}"
        if block.places is not None:
            raise InputError("blocks of a graph's features must have rows that follow each other")
        if block.row < 0 or block.column < 0 or end > rows or right > columns:
            raise InputError(f"features of shape {(rows, columns)} have {where}")
        try:
            blocks.append(Block(check_features(block.values), block.column, block.row))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}, counted in the block: {error}") from None
    for number, one in enumerate(blocks):
        for two in blocks[:number]:
            if _meet(one.row, one.num_rows, two.row, two.num_rows) and _meet(
                one.column, one.width, two.column, two.width
            ):
                raise InputError(
                    f"two blocks of the features overlap: both have row {max(one.row, two.row)}, "
                    f"column {max(one.column, two.column)}"
                )
    dtypes = {block.values.dtype for block in blocks}
    if len(dtypes) > 1:
        raise TypeError("blocks of features must have one dtype, not float32 and float64")
    return Blocks((rows, columns), blocks)


def _meet(start: int, count: int, other: int, others: int) -> bool:
    """Whether two runs of places have one in common."""
    return start < other + others and other < start + count


def check_finite_rows(x: Tensor) -> None:
    """Refuse features (nodes, width) with values in dense columns that are not finite, by the
    first."""
    if in_blocks(x):
        for block in x.blocks:
            check_finite_rows(block.values)
    if not is_dense(x):
        return
    for start in range(0, len(x), 65_536):  # in parts: no boolean copy of the whole table
        bad = ~torch.isfinite(x[start : start + 65_536])
        if bad.any():
            row, column = bad.nonzero()[0].tolist()
            _raise_not_finite(int(bad.sum()), start + row, column)


def _check_places(matrix: CSR) -> None:
    """PyTorch checks the places of a sparse tensor only when asked, and then their order too."""
    indptr, indices = matrix.indptr, matrix.indices
    if int(indptr[0]) != 0 or int(indptr[-1]) != len(indices) or (indptr.diff() < 0).any():
        raise InputError("features are not a sparse CSR matrix: crow_indices must run from 0 up")
    outside = (indices < 0) | (indices >= matrix.columns)
    if outside.any():
        raise InputError(
            f"sparse features name {int(outside.sum())} columns outside 0..{matrix.columns - 1}, "
            f"first: {int(indices[outside][0])}"
        )


def _raise_not_finite(count: int, row: int, column: int) -> None:
    raise InputError(
        f"features hold NaN or infinite values (at least {count}), first: node {row}, "
        f"column {column}; fill or drop them"
    )


def check_edges(edge_index: Any, edge_weight: Any, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    edges = as_tensor(edge_index, "edge_index")
    if edges.numel() == 0 and edges.dim() <= 2:
        edges = edges.reshape(2, -1).long()
    if edges.dim() != 2 or edges.shape[0] != 2:
        raise InputError(
            f"edge_index must be (2, edges): sources, then targets; not {tuple(edges.shape)}"
        )
    if not is_integer(edges):
        raise TypeError(f"edge_index must hold integers, not {edges.dtype}")
    edges = edges.long()
    outside = ((edges < 0) | (edges >= num_nodes)).any(0)
    if outside.any():
        first = int(outside.nonzero()[0, 0])
        raise InputError(
            f"{int(outside.sum())} edges name nodes outside 0..{num_nodes - 1}, first: "
            f"edge {first} from {int(edges[0, first])} to {int(edges[1, first])}"
        )
    if edge_weight is None:
        return edges, None
    weight = as_tensor(edge_weight, "edge_weight")
    if weight.shape != (edges.shape[1],):
        raise InputError(
            f"edge_weight must be one number per edge, ({edges.shape[1]},), "
            f"not {tuple(weight.shape)}"
        )
    if weight.is_complex() or weight.dtype == torch.bool:
        raise TypeError(f"edge_weight must be real numbers, not {weight.dtype}")
    weight = weight.double()
    bad = ~torch.isfinite(weight.float())  # they are kept in single precision
    if bad.any():
        first = int(bad.nonzero()[0, 0])
        raise InputError(
            f"{int(bad.sum())} edge weights are NaN or infinite, first: edge {first} "
            f"from {int(edges[0, first])} to {int(edges[1, first])}"
        )
    return edges, weight


def check_labels(
    labels: Any, num_classes: int | None, num_nodes: int, task: str | None = None
) -> tuple[Tensor | None, int, str]:
    """The labels as the graph keeps them, the number of classes, and the task.

    task: None if the labels' shape tells it: one class per node or several
    """
    if task is not None:
        find_task(task).check_num_classes(num_classes)
    if labels is None:
        return None, num_classes or 0, task or implied_task(None)
    y = as_tensor(labels, "labels")
    task = task or implied_task(y)
    return *find_task(task).check_labels(y, num_classes, num_nodes), task


def check_splits(splits: dict[str, Any], num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    owner = torch.full((num_nodes,), -1, dtype=torch.int8)
    checked = []
    for number, (name, given) in enumerate(splits.items()):
        ids = _split_ids(given, name, num_nodes)
        taken = owner[ids]
        if (taken >= 0).any():
            first = int((taken >= 0).nonzero()[0, 0])
            other = SPLITS[int(taken[first])]
            raise InputError(
                f"{name} and {other} overlap in {int((taken >= 0).sum())} nodes, "
                f"first: node {int(ids[first])}"
            )
        owner[ids] = number
        checked.append(ids)
    return checked[0], checked[1], checked[2]


def _split_ids(given: Any, name: str, num_nodes: int) -> Tensor:
    if given is None:
        return torch.empty(0, dtype=torch.int64)
    ids = as_tensor(given, name)
    if ids.dim() != 1:
        raise InputError(f"{name} must be one-dimensional, not of shape {tuple(ids.shape)}")
    if ids.numel() and ids.dtype == torch.bool:
        if len(ids) != num_nodes:
            raise InputError(f"{name} is a mask of {len(ids)} for {num_nodes} nodes")
        ids = ids.nonzero()[:, 0]
    if not ids.numel():
        raise InputError(f"{name} is empty; leave it out if there is none")
    if not is_integer(ids):
        raise TypeError(f"{name} must be node ids or a boolean mask, not {ids.dtype}")
    ordered = torch.unique(_inside(ids.long(), name, num_nodes))
    if len(ordered) != len(ids):
        mask = len(ids) == num_nodes and int(ordered[-1]) <= 1
        hint = f"; if it is a mask, make it boolean: {name} == 1" if mask else ""
        raise InputError(f"{name} names {len(ids) - len(ordered)} nodes more than once{hint}")
    return ordered


def check_nodes(given: Any, num_nodes: int) -> Tensor:
    """Node ids for a pass of the model, int64 in the given order."""
    ids = as_tensor(given, "nodes")
    if ids.dim() != 1 or not len(ids) or not is_integer(ids):
        raise InputError("nodes must be a list of at least one node id")
    return _inside(ids.long(), "nodes", num_nodes)


def _inside(ids: Tensor, name: str, num_nodes: int) -> Tensor:
    if int(ids.min()) < 0 or int(ids.max()) >= num_nodes:
        bad = (ids < 0) | (ids >= num_nodes)
        raise InputError(
            f"{name} names {int(bad.sum())} nodes outside 0..{num_nodes - 1}, "
            f"first: {int(ids[bad][0])}"
        )
    return ids


def check_split_labels(graph: Graph) -> None:
    """Refuse a split with nodes whose label is not known."""
    for name in SPLITS:
        ids = graph.split(name)
        if not len(ids):
            continue
        if graph.labels is None:
            raise InputError(f"there is a {name} split but there are no labels")
        unknown = ids[~graph.labelled[ids]]
        if len(unknown):
            raise InputError(
                f"{name} has {len(unknown)} nodes without a label, first: node {int(unknown[0])}; "
                "leave them out of the split"
            )
