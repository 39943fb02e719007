"""NELL at label rate 0.001, with a validation split that has labels.

PyG's masks take the 500 rows after the training rows for validation. Of those, 128 have a label;
the others' rows of the label matrix are all zero, and its argmax calls them class 0. So here:

- a label is known where its row of `ally` or `ty` has an entry, and -1 elsewhere;
- training and test nodes are the public ones (105 and 969);
- validation is `val_suggested` of `known_labels.npz` where that file lies with the raw files or in
  the folder above; without it, 500 nodes drawn with a fixed seed from those whose label is known
  and that are neither training nor test nodes. (The paper's code validates on the test nodes.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vrgcn.data.named import beside, pyg, raw_files_read
from vrgcn.data.raw_files import check_raw_files, read_pickle
from vrgcn.graph.graph import Graph
from vrgcn.graph.validation import UNLABELLED

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
            raise ValueError(f"{file} must hold val_suggested, the numbers of nodes")
        chosen = torch.from_numpy(arrays["val_suggested"].astype(np.int64).ravel())
    if not torch.isin(chosen, candidates).all() or len(chosen.unique()) != len(chosen):
        raise ValueError(
            f"{file}: val_suggested has nodes of training or test, without a known label, or twice"
        )
    return chosen


def _has_entry(matrix: Any) -> Any:
    """(rows,) whether any entry of a row of a numpy or scipy matrix is not zero."""
    return np.asarray((matrix != 0).sum(1)).ravel() > 0
