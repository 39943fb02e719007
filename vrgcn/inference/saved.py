"""Saved models: one safetensors file with all that a prediction needs.

Weights and feature scaling are tensors; architecture, propagation and names are JSON in the file's
metadata. Loading reads tensors and JSON, never pickled code.

Features and labels of a graph are matched with a saved model by the names of columns and classes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from vrgcn.files.writing import new_file
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PROPAGATIONS
from vrgcn.graph.scaling import Scaling
from vrgcn.graph.sparse import select_columns
from vrgcn.graph.validation import UNLABELLED, Task
from vrgcn.inference.model_file import FORMAT, build_saved, read_model_file
from vrgcn.models.models import MODELS, GraphModel

_LABELS: dict[Task, str] = {
    "classes": "one class per node",
    "multilabel": "several classes per node",
    "regression": "one number per node",
}


@dataclass(frozen=True)
class SavedModel:
    """A trained model and what its inputs and outputs mean.

    propagation: the name of its propagation matrix
    scaling: what is done to the features first
    multilabel: several classes per node (outputs above 0), or one (the largest)
    classes: the classes' names, in the order of the outputs; None where they have none
    features: the feature columns' names, in order; None where they have none
    regression: one number per node, in the unit of the labels, in place of classes
    """

    model: GraphModel
    propagation: str
    scaling: Scaling = field(default_factory=Scaling)
    multilabel: bool = False
    classes: list[str] | None = None
    features: list[str] | None = None
    regression: bool = False

    @property
    def task(self) -> Task:
        """What the graphs are called that the model was trained for: `Graph.task`."""
        if self.regression:
            return "regression"
        return "multilabel" if self.multilabel else "classes"


def save_model(saved: SavedModel, path: str | Path) -> None:
    """Write the model to a file, all of it or nothing."""
    path = Path(path)
    names = {kind: name for name, kind in MODELS.items()}
    model = saved.model
    if type(model) not in names:
        raise TypeError(
            f"{type(model).__name__} is not one of vrgcn's models ({', '.join(MODELS)}); save a "
            "model of your own with safetensors.torch.save_model"
        )
    if saved.propagation not in PROPAGATIONS:
        raise ValueError(f"propagation {saved.propagation!r} is none of {', '.join(PROPAGATIONS)}")
    description = {
        "format": FORMAT,
        "version": 2 if saved.regression else 1,
        "model": names[type(model)],
        "arguments": model.arguments,
        "propagation": saved.propagation,
        "scaling": saved.scaling.kind,
        "multilabel": saved.multilabel,
        "regression": saved.regression,
        "classes": saved.classes,
        "features": saved.features,
    }
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    if saved.scaling.mean is not None and saved.scaling.deviation is not None:
        tensors["scaling.mean"] = saved.scaling.mean
        tensors["scaling.deviation"] = saved.scaling.deviation
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with new_file(path) as file:
        file.write(save(tensors, metadata={FORMAT: json.dumps(description)}))


def load_model(path: str | Path) -> SavedModel:
    """The model of a file, in evaluation mode."""
    path = Path(path)
    description, tensors = read_model_file(path)
    model = build_saved(path, description, tensors)
    return SavedModel(
        model.eval(),
        description["propagation"],
        Scaling(
            description["scaling"], tensors.get("scaling.mean"), tensors.get("scaling.deviation")
        ),
        description["multilabel"],
        description["classes"],
        description["features"],
        description["regression"],
    )


def fit_features(saved: SavedModel, graph: Graph, scaled: Path | None = None) -> Graph:
    """The graph with features in the model's order and scale; an error where they do not agree."""
    wanted: int = saved.model.arguments["in_features"]
    names = graph.names.features
    if saved.features is not None and names is not None and saved.features != names:
        missing = [name for name in saved.features if name not in set(names)]
        if missing:
            raise ValueError(
                f"the graph lacks {len(missing)} of the {wanted} feature columns that the model "
                f"was trained on, first: {missing[0]!r}"
            )
        place = {name: column for column, name in enumerate(names)}
        columns = torch.tensor([place[name] for name in saved.features])
        graph = graph.with_features(select_columns(graph.features, columns))
    if graph.num_features != wanted:
        raise ValueError(
            f"the model was trained on {wanted} feature columns, and the graph has "
            f"{graph.num_features}"
        )
    return graph.with_features(saved.scaling.apply(graph.features, scaled))


def model_labels(saved: SavedModel, graph: Graph) -> Tensor:
    """The graph's labels, its classes counted as the model counts them."""
    if graph.labels is None:
        raise ValueError("the graph has no labels to compare with")
    if graph.task != saved.task:
        raise ValueError(
            f"the model was trained for {_LABELS[saved.task]}, and the graph has "
            f"{_LABELS[graph.task]}"
        )
    if saved.regression:
        return graph.labels
    theirs, ours = graph.names.classes, saved.classes
    if theirs is None or ours is None or theirs == ours:
        if graph.num_classes != saved.model.arguments["classes"]:
            raise ValueError(
                f"the model knows {saved.model.arguments['classes']} classes, and the graph has "
                f"{graph.num_classes}"
            )
        return graph.labels
    unknown = [name for name in theirs if name not in set(ours)]
    if unknown:
        raise ValueError(f"the model does not know the class {unknown[0]!r} of the graph")
    place = torch.tensor([ours.index(name) for name in theirs])
    if graph.multilabel:
        labels = torch.zeros(graph.num_nodes, len(ours))
        labels[:, place] = graph.labels
        labels[(graph.labels == UNLABELLED).all(1)] = UNLABELLED
        return labels
    return torch.where(graph.labels >= 0, place[graph.labels.clamp(min=0)], UNLABELLED)
