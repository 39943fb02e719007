"""Adjacency matrices from edges."""

from __future__ import annotations

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.sparse import CSR, offsets


def kept_entries(A: CSR, keep: Tensor) -> CSR:
    """Part of the entries of A. keep: (entries,) bool"""
    counts = torch.bincount(A.row_of_entry[keep], minlength=A.num_rows)
    values = None if A.values is None else A.values[keep]
    return CSR(offsets(counts), A.indices[keep], values, A.columns, A.scale)


def build_adjacency(edges: Tensor, weight: Tensor | None, num_nodes: int, undirected: bool) -> CSR:
    """A from edges (2, edges): repeated ones are merged, their weights summed."""
    if undirected:
        loop = edges[0] == edges[1]
        edges = torch.cat([edges, edges[:, ~loop].flip(0)], dim=1)
        weight = None if weight is None else torch.cat([weight, weight[~loop]])
    key = edges[1] * num_nodes + edges[0]
    ascending = bool((key[1:] > key[:-1]).all())
    values = None if weight is None else weight.float()
    if not ascending and weight is None:
        key = torch.unique(key)
    elif not ascending and weight is not None:
        key, group = torch.unique(key, return_inverse=True)
        values = torch.zeros(len(key), dtype=weight.dtype).index_add_(0, group, weight).float()
        if not torch.isfinite(values).all():
            raise InputError("the weights of repeated edges sum to more than 32 bits hold")
    rows = torch.div(key, num_nodes, rounding_mode="floor")
    counts = torch.bincount(rows, minlength=num_nodes)
    return CSR(offsets(counts), key - rows * num_nodes, values, num_nodes)
