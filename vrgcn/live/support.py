"""Models and graphs that cannot be live, refused with the reason."""

from __future__ import annotations

from torch import nn

from vrgcn.engine.forward import find_adapter
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.inference.saved import SavedModel
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
