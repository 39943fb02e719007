"""NELL at label rate 0.001, with a validation split that has labels.

PyG's masks take the 500 rows after the training rows for validation. Of those, 128 have a label;
the others' rows of the label matrix are all zero, and its argmax calls them class 0. So here:

- a label is known where its row of `ally` or `ty` has an entry, and -1 elsewhere;
- training and test nodes are the public ones (105 and 969);
- validation is `val_suggested` of `known_labels.npz` where that file lies with the raw files or in
  the folder above; without it, 500 nodes drawn with a fixed seed from those whose label is known
  and that are neither training nor test nodes. (The paper's code validates on the test nodes.)

The paper's NELL is not the published one, but can be had from it (`nell_paper`):

- A fact (e1, r, e2) is published as the two edges (e1, r1) and (e2, r2): a relation is a pair of
  nodes, and no edge joins them. The paper has that edge too, 415 in all. Without it the graph is
  bipartite, relations on the one side and entities on the other, which is how relations are found;
  the two nodes of one are neighbours in the numbering.
- No text: every node has a column of its own, but for the training and test nodes, whose rows are
  zero.
- The classes are the 105 that occur, not the 186 columns of the published label matrix.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from vrgcn.data.named import beside, pyg, raw_files_read
from vrgcn.data.raw_files import check_raw_files, read_pickle
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.tasks.task import UNLABELLED

VALIDATION = 500
SEED = 0
_PREFIX = "ind.nell.0.001."


def nell(folder: Path) -> Graph:
    """65,755 nodes with 61,278 sparse features."""
    with pyg("nell", folder) as (datasets, place):
        data = place(datasets.NELL)()[0]
    with raw_files_read("nell", folder, ()):  # PyG has read them before
        known = known_labels(folder, data.num_nodes)
    labels = torch.where(known, data.y, UNLABELLED)
    taken = data.train_mask | data.test_mask
    return Graph(
        data.edge_index,
        data.x,
        labels,
        train=data.train_mask,
        val=_validation(folder, (known & ~taken).nonzero()[:, 0]),
        test=data.test_mask,
    )


def nell_paper(folder: Path) -> Graph:
    """The paper's: 126,190 undirected edges, 64,681 columns with one entry each, 105 classes."""
    graph = nell(folder)
    assert graph.labels is not None
    first, second = relation_pairs(graph)
    taken = torch.zeros(graph.num_nodes, dtype=torch.bool)
    taken[graph.train] = taken[graph.test] = True
    known = graph.labels != UNLABELLED
    labels = graph.labels.clone()
    labels[known] = labels[known].unique(return_inverse=True)[1]
    edges = torch.cat([graph.edge_index(), torch.stack([first, second])], dim=1)
    return Graph(
        edges,
        _own_columns(~taken),
        labels,
        train=graph.train,
        val=graph.val,
        test=graph.test,
        undirected=True,
    )


def relation_pairs(graph: Graph) -> tuple[Tensor, Tensor]:
    """(relations,) and (relations,): the two nodes of each relation of the published graph."""
    relations = _second_side(graph)
    first, second = relations[::2], relations[1::2]
    if len(relations) % 2 or not torch.equal(first + 1, second):
        raise InputError(
            "the raw files of nell are not the published ones: the two nodes of each relation "
            "should follow each other in the numbering"
        )
    return first, second


def _second_side(graph: Graph) -> Tensor:
    """Ids of one side of a bipartite graph, in each component the side without its first node: the
    numbering begins with an entity.

    In the double cover every node is there twice, and an edge u - v joins u to the other v. A
    component of a bipartite graph falls into two in it, one for each side.
    """
    nodes, edges = graph.num_nodes, graph.edge_index().numpy()
    ones = np.ones(edges.shape[1], dtype=np.int8)
    cover = sp.coo_matrix((ones, (edges[0], edges[1] + nodes)), shape=(2 * nodes, 2 * nodes))
    _, part = connected_components(cover, directed=False)
    own, other = part[:nodes], part[nodes:]
    if (own == other).any():
        raise InputError(
            "the raw files of nell are not the published ones: their graph should be bipartite, "
            "relations on one side and entities on the other"
        )
    names, first = np.unique(own, return_index=True)
    first_of = np.full(part.max() + 1, nodes)  # beyond all where a side is empty
    first_of[names] = first
    return torch.from_numpy(np.flatnonzero(first_of[own] > first_of[other]))


def _own_columns(has: Tensor) -> Tensor:
    """(nodes, columns) sparse: a 1 in a column of its own for each node that `has` one."""
    rows = has.long()
    return torch.sparse_csr_tensor(
        torch.cat([rows.new_zeros(1), rows.cumsum(0)]),
        torch.arange(int(rows.sum())),
        torch.ones(int(rows.sum())),
        size=(len(has), int(rows.sum())),
    )


def known_labels(folder: Path, num_nodes: int) -> Tensor:
    """(nodes,) whether the raw files say a node's class: row i of ally is node i."""
    known = torch.zeros(num_nodes, dtype=torch.bool)
    rows = torch.from_numpy(_has_entry(read_pickle(folder / f"{_PREFIX}ally")))
    known[: len(rows)] = rows
    test = torch.from_numpy(np.loadtxt(folder / f"{_PREFIX}test.index", dtype=np.int64, ndmin=1))
    # Row i of ty is node test[i]: PyG moves it there.
    known[test] = torch.from_numpy(_has_entry(read_pickle(folder / f"{_PREFIX}ty")))
    return known


def _validation(folder: Path, candidates: Tensor) -> Tensor:
    file = beside(folder, "known_labels.npz")
    if file is None:
        generator = torch.Generator().manual_seed(SEED)
        return candidates[torch.randperm(len(candidates), generator=generator)[:VALIDATION]]
    check_raw_files(file.parent, [file.name])
    with np.load(file) as arrays:
        if "val_suggested" not in arrays or arrays["val_suggested"].dtype.kind not in "iu":
            raise InputError(f"{file} must hold val_suggested, the numbers of nodes")
        chosen = torch.from_numpy(arrays["val_suggested"].astype(np.int64).ravel())
    if not torch.isin(chosen, candidates).all() or len(chosen.unique()) != len(chosen):
        raise InputError(
            f"{file}: val_suggested has nodes of training or test, without a known label, or twice"
        )
    return chosen


def _has_entry(matrix: Any) -> Any:
    """(rows,) whether any entry of a row of a numpy or scipy matrix is not zero."""
    return np.asarray((matrix != 0).sum(1)).ravel() > 0
