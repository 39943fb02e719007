"""Exact prediction of any nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.propagation import PropagationLike
from vrgcn.graph.validation import check_finite_rows, check_nodes
from vrgcn.inference.saved import SavedModel
from vrgcn.inference.sweeps import Outputs, sweep_module

_ROWS = 65_536  # outputs that are checked at a time


def predict(
    model: nn.Module | SavedModel,
    graph: Graph,
    nodes: Any = None,
    *,
    kind: str | None = None,
    propagation: PropagationLike | None = None,
    directory: Path | None = None,
    on_chunk: Callable[[int], None] | None = None,
) -> Tensor:
    """The model's exact outputs: (nodes, classes), one row for each node asked for, in that order.

    model: a saved model, as `load_model` gives it, for a graph as it was loaded; or a bare one for
        a graph whose features are as it was trained on them, else it is refused
    nodes: numbers; all nodes if None
    kind: of the nodes, in a graph of several kinds, where `nodes` are numbers within it; None: the
        kind that has labels
    propagation: as in training; if None, the model's own (`model.propagation`), else "gcn"
    directory: keep the tables and the outputs in files there instead of in memory
    on_chunk: called with the number of nodes after each chunk of each sweep
    """
    sweeps = exact_sweeps(
        model, graph, propagation=propagation, directory=directory, on_chunk=on_chunk
    )
    asked = asked_nodes(graph, nodes, kind)
    outputs = sweeps.outputs(asked)
    check_all_outputs(sweeps, asked, outputs)
    return outputs


def asked_nodes(graph: Graph, nodes: Any = None, kind: str | None = None) -> Tensor | None:
    """Numbers among all nodes of those that a prediction is asked for; None: all.

    nodes, kind: as in `predict`; kind "all" stands for the nodes of all kinds
    """
    kinds = graph.kinds
    if not kinds.named or (kind == "all" and "all" not in kinds.sizes):
        if not kinds.named and kind not in (None, "all"):
            raise InputError(f"the graph has no kinds of nodes, and {kind!r} is asked for")
        return None if nodes is None else check_nodes(nodes, graph.num_nodes)
    kind = kind or kinds.target
    if kind is None:
        raise InputError(f"say which kind of nodes: kind= one of {', '.join(kinds.names)}, or all")
    if nodes is None:
        return kinds.nodes(kind)
    return check_nodes(nodes, len(kinds.range(kind))) + kinds.range(kind).start


def check_all_outputs(
    sweeps: Outputs,
    nodes: Tensor | None,
    outputs: Tensor,
    what: str = "prediction",
) -> None:
    """`check_outputs` of as many as there may be, some at a time. nodes: None for all"""
    graph = sweeps.graph
    nodes = torch.arange(graph.num_nodes) if nodes is None else nodes
    for some, theirs in zip(nodes.split(_ROWS), outputs.split(_ROWS), strict=True):
        check_outputs(graph, some, theirs, what=what)


def check_outputs(
    graph: Graph,
    nodes: Tensor,
    outputs: Tensor,
    names: Names | None = None,
    what: str = "prediction",
) -> None:
    """Refuse outputs (nodes, classes) that are no numbers: they would be a class all the same.

    names: of the nodes, if not the graph's
    what: they are, for the error
    """
    wrong = ~torch.isfinite(outputs).all(1)
    if not wrong.any():
        return
    node = (names or graph.names).node_ids(nodes[wrong][:1].numpy())[0].as_py()
    text = f"the {what} of node {node!r} is not a finite number"
    try:
        check_finite_rows(graph.features)
    except InputError as error:
        raise InputError(f"{text}: scaled as the model takes them, {error}") from None
    raise InputError(
        f"{text}: a product or a sum overflows; are the features of the node, or of its "
        "neighbours, far larger than those that the model was trained on?"
    )


def exact_sweeps(
    model: nn.Module | SavedModel,
    graph: Graph,
    *,
    propagation: PropagationLike | None = None,
    directory: Path | None = None,
    on_chunk: Callable[[int], None] | None = None,
) -> Outputs:
    """The sweeps that `predict` uses, for outputs that are wanted a chunk at a time."""
    if isinstance(model, SavedModel):
        return model.sweeps(graph, propagation=propagation, directory=directory, on_chunk=on_chunk)
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"predict(model, graph): {model!r} is no model; load_model(path) gives one from a file"
        )
    return sweep_module(
        model, graph, propagation=propagation, directory=directory, on_chunk=on_chunk
    )
