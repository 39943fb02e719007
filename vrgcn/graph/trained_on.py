"""The graph and scaling that a model was trained on, recorded on the model itself.

A model that was trained on scaled features silently gives wrong answers for unscaled ones. So `fit`
and `load_model` record on a model what they gave it, and code that combines a model and a graph
compares them (`check_scaled`).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from torch import nn

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling

_ATTRIBUTE = "trained_on"


@dataclass(frozen=True, eq=False)
class TrainedOn:
    """scaling: what was done to the features first
    task: what the labels are, `Graph.task`
    classes, features: the names of classes and feature columns; None where they have none
    own_matrix: whether the propagation was neither a name nor the model's own choice
    nodes: ids of the nodes, for models that have a row for each; None: their numbers
    """

    scaling: Scaling
    task: str
    classes: list[str] | None = None
    features: list[str] | None = None
    own_matrix: bool = False
    nodes: pa.Array | None = None

    @staticmethod
    def of(graph: Graph, *, own_matrix: bool = False) -> TrainedOn:
        """The note for a model that is trained on this graph as it is."""
        names, scaling = graph.names, graph.scaling or Scaling()
        return TrainedOn(
            scaling, graph.task, names.classes, names.features, own_matrix, names.unique()
        )


def note_trained_on(model: nn.Module, trained_on: TrainedOn) -> None:
    """From now on the model says so of itself. Nothing of it is in the state dict."""
    setattr(model, _ATTRIBUTE, trained_on)


def find_trained_on(model: nn.Module) -> TrainedOn | None:
    """The note on a model; None for a model that was never trained."""
    noted: TrainedOn | None = getattr(model, _ATTRIBUTE, None)
    return noted


def check_scaled(model: nn.Module, graph: Graph) -> None:
    """Refuse a graph whose features are not scaled as those were that the model learned from, or
    are other columns."""
    trained_on = find_trained_on(model)
    if trained_on is None:
        return
    if trained_on.scaling.same(graph.scaling or Scaling()):
        _check_columns(trained_on.features, graph.names.features)
        return
    if graph.scaling is None:
        raise InputError(
            f"the model was trained on scaled features ({trained_on.scaling.kind}), and those of "
            "this graph are as they are. Predict with the saved model, which scales them itself: "
            "predict(load_model(path), graph); or scale them first: "
            "graph = load_model(path).prepare(graph)"
        )
    raise InputError(
        f"the features of this graph are scaled ({graph.scaling.kind}) in another way than those "
        f"that the model was trained on ({trained_on.scaling.kind}): give the graph as it was "
        "before it was scaled"
    )


def _check_columns(ours: list[str] | None, theirs: list[str] | None) -> None:
    """Refuse columns that are known to be others, or in another order."""
    if ours is None or theirs is None or ours == theirs:
        return
    place = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    if place is None:
        first = f"{len(theirs)} of them, and the model {len(ours)}"
    else:
        first = f"column {place} is {theirs[place]!r}, and that of the model {ours[place]!r}"
    raise InputError(
        f"the feature columns of this graph are not those that the model was trained on: {first}. "
        "A saved model puts columns in its order: predict(SavedModel.of(model), graph), of a graph "
        "that is not scaled yet"
    )
