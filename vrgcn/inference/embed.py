"""Embeddings: exact activations inside a model.

Layers are counted by what the model propagates, which is what all models have in common: layer 0 is
what it gives to its first `propagate`, layer 1 what it gives to the next, and the last one are its
outputs. From the end, -1 are the outputs and -2 is what the last `propagate` averages: of GCN and
GraphSAGE the last hidden layer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import is_whole
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.inference.predict import asked_nodes, check_all_outputs, exact_sweeps
from vrgcn.inference.saved import SavedModel
from vrgcn.inference.sweeps import Outputs


def embeddings(
    model: nn.Module | SavedModel,
    graph: Graph,
    layer: int = -2,
    nodes: Any = None,
    *,
    kind: str | None = None,
    propagation: PropagationLike | None = None,
    directory: Path | None = None,
    on_chunk: Callable[[int], None] | None = None,
) -> Tensor:
    """(nodes, width): exact activations of a layer, a row for each node asked for, in that order.

    layer: counted as this file says; -2 is what the last `propagate` averages
    kind: as in `predict`; "all" for the nodes of all kinds, in their order
    model, graph, nodes, propagation, directory, on_chunk: as in `predict`
    """
    sweeps = exact_sweeps(
        model, graph, propagation=propagation, directory=directory, on_chunk=on_chunk
    )
    asked = asked_nodes(graph, nodes, kind)
    rows = sweeps.outputs(asked, find_layer(sweeps, layer))
    check_all_outputs(sweeps, asked, rows, "embedding")
    return rows


def find_layer(sweeps: Outputs, layer: int) -> int | None:
    """The level that a layer is; None for the outputs."""
    depth = sweeps.layers()
    if not is_whole(layer):
        raise InputError(f"layer must be a whole number, not {layer!r}")
    if not -depth - 1 <= layer <= depth:
        raise InputError(
            f"layer {layer} is none of the model's, which propagates {depth} times: there are 0 to "
            f"{depth}, or from the end -1, its outputs, to {-depth - 1}"
        )
    place = layer % (depth + 1)
    return None if place == depth else place
