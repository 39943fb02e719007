"""Exact outputs of a graph in parts, gathered in the first process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from vrgcn import __version__
from vrgcn.data.store_arrays import read_ids
from vrgcn.distributed.group import Group
from vrgcn.distributed.halo import Halo
from vrgcn.distributed.parts import CHECKSUM, IDS, Part, read_parts
from vrgcn.distributed.sweeps import PartSweeps
from vrgcn.distributed.trainer import check_agreement, weights_digest
from vrgcn.engine.setup import set_up
from vrgcn.files.folder import FolderReplacedError, OpenFolder
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.sparse import CSR
from vrgcn.graph.validation import SPLITS
from vrgcn.inference.predict import check_outputs
from vrgcn.inference.saved import SavedModel, fit_features, model_labels

_ROWS = 65_536  # rows that are gathered at once


def part_sweeps(saved: SavedModel, part: Part, group: Group) -> PartSweeps:
    """Return sweeps for the outputs of own nodes by a saved model. Raise if processes found other
    parts or another model than the first, for example because files are being replaced."""
    saved.check_single(
        "is predicted for a graph as a whole, in one process: give that with "
        f"{setting('graph')}, or name a single model"
    )
    if saved.whole is not None:
        raise InputError(
            f"a model whose outputs are {saved.whole.words} is predicted for a graph as a whole, "
            f"in one process: give that with {setting('graph')}"
        )
    check_agreement(
        group,
        {
            "vrgcn": __version__,
            "parts": part.checksum,
            "weights": weights_digest(saved.model.state_dict()),
        },
    )
    graph = fit_features(saved, part.graph)
    setup = set_up(saved.model, graph, propagation=saved.propagation)
    return PartSweeps(saved.model, setup, Halo(part, group))


def whole_names(folder: Path, part: Part) -> Names:
    """Return the user's own names of all nodes and of the classes, for the first process; only it
    needs them."""
    ids = None
    if IDS in part.description["files"]:
        with OpenFolder(folder) as whole:
            if read_parts(whole)[CHECKSUM] != part.checksum:
                raise FolderReplacedError(
                    f"{folder} was replaced by other parts while it was read: run the command again"
                )
            if not whole.is_file(IDS):
                raise FileNotFoundError(
                    f"{folder / IDS} is not there: the machine of the first process needs it, for "
                    "the names of all nodes; copy it from where the parts were made"
                )
            ids = read_ids(whole, part.description["nodes"], IDS)
    return Names(ids, part.description["classes"], None)


def gathered_outputs(
    saved: SavedModel, sweeps: PartSweeps, part: Part, group: Group, nodes: Tensor | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield nodes by their numbers in the whole graph and their exact outputs, some at a time in
    the requested order, in the first process. Other processes take part and get nothing.

    nodes: (asked,) the same in every process; None: all
    """
    count = part.description["nodes"] if nodes is None else len(nodes)
    own = part.nodes[: part.own]
    mine = own if nodes is None else own[torch.isin(own, nodes)]
    outputs = sweeps.outputs(torch.searchsorted(own, mine))
    check_outputs(sweeps.setup.graph, mine, outputs, Names())
    for start in range(0, count, _ROWS):
        end = min(start + _ROWS, count)
        asked = torch.arange(start, end) if nodes is None else nodes[start:end]
        place = torch.searchsorted(mine, asked)
        here = mine[place.clamp(max=max(len(mine) - 1, 0))] == asked if len(mine) else asked < 0
        rows = group.gather(outputs.index_select(0, place[here]))
        places = group.gather(here.nonzero()[:, 0])
        if group.first:
            joined = torch.cat(rows).cpu()
            block = torch.empty_like(joined)
            block[torch.cat(places).cpu()] = joined
            yield asked, saved.row_outputs(block)


def evaluated_graph(
    saved: SavedModel, part: Part, group: Group
) -> tuple[Graph, Tensor, Tensor] | None:
    """Return the nodes of all splits: a graph without edges that has these nodes and their splits,
    their exact outputs, and their labels in the model's classes. In the first process; None in the
    others."""
    sweeps = part_sweeps(saved, part, group)
    known = model_labels(saved, part.graph)
    outputs, labels, splits, start = [], [], {}, 0
    for name in SPLITS:
        nodes = part.graph.split(name)
        exact = sweeps.outputs(nodes)
        check_outputs(sweeps.setup.graph, part.nodes[nodes], exact, Names())
        rows = group.gather(exact)
        mine = group.gather(known.index_select(0, nodes))
        if group.first:
            outputs.append(torch.cat(rows).cpu())
            labels.append(torch.cat(mine).cpu())
            splits[name] = torch.arange(start, start + len(outputs[-1]))
            start += len(outputs[-1])
    if not group.first:
        return None
    every, truth = saved.row_outputs(torch.cat(outputs)), torch.cat(labels)
    unconnected = Graph.from_parts(
        CSR.empty(start, start),
        torch.zeros(start, 1),
        truth,
        splits,
        part.graph.num_classes,
        task=part.graph.task,
    )
    return unconnected, every, truth
