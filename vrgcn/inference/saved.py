"""Saved models: one safetensors file with all that a prediction needs.

Weights and feature scaling are tensors; architecture, propagation and names are JSON in the file's
metadata, with a checksum of all of it. Loading reads tensors and JSON, never pickled code. A model
of one's own is made anew by the class or the function that the user names (own_models.py).

Features and labels of a graph are matched with a saved model by the names of columns and classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from vrgcn.engine.setup import note_propagation, propagation_of
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PROPAGATIONS, PropagationLike
from vrgcn.graph.scaling import Scaling
from vrgcn.graph.sparse import select_columns
from vrgcn.graph.trained_on import TrainedOn, check_scaled, find_trained_on, note_trained_on
from vrgcn.inference import AVERAGE, MODEL
from vrgcn.inference.calibration import Calibration
from vrgcn.inference.model_file import (
    FORMAT,
    SAVED,
    VERSION,
    Description,
    build_saved,
    calibration_of,
    read_model_file,
    smoothing_of,
    weights_of,
    write_model_file,
)
from vrgcn.inference.node_tables import id_tensors, ids_of_tensors
from vrgcn.inference.own_models import Factory, describe_own, make_own
from vrgcn.inference.smoothing import Smoothing
from vrgcn.models.node_table import node_tables
from vrgcn.models.plugins import made_by
from vrgcn.models.relational import num_columns
from vrgcn.tasks import FLAGGED, find_task, flagged_task


@dataclass(frozen=True)
class SavedModel:
    """A trained model and what its inputs and outputs mean.

    propagation: the name of its propagation matrix; None: what a model of one's own says itself
    scaling: what is done to the features first
    multilabel: several classes per node (outputs above 0), or one (the largest)
    classes: the classes' names, in the order of the outputs; None where they have none
    features: the feature columns' names, in order; None where they have none
    regression: one number per node, in the unit of the labels, in place of classes
    own_matrix: whether it was trained by a propagation that no name stands for, to be given again
    nodes: ids of the nodes that its node tables have rows of; None: their numbers
    smoothing: what its outputs are corrected and smoothed by; None: they are taken as they are
    calibration: what its outputs are divided by, and what limits prediction sets; None: the model
        is not calibrated
    own_task: the task of another package that it was trained for; None: one of vrgcn's own
    """

    model: nn.Module
    propagation: str | None = None
    scaling: Scaling = field(default_factory=Scaling)
    multilabel: bool = False
    classes: list[str] | None = None
    features: list[str] | None = None
    regression: bool = False
    own_matrix: bool = False
    nodes: pa.Array | None = None
    smoothing: Smoothing | None = None
    calibration: Calibration | None = None
    own_task: str | None = None

    @property
    def task(self) -> str:
        """The task that the model was trained for, as `Graph.task` names it."""
        flagged = flagged_task(multilabel=self.multilabel, regression=self.regression)
        return self.own_task or flagged

    @staticmethod
    def of(model: nn.Module) -> SavedModel:
        """Return a model as `fit` left it, with its graph's scaling and names; an untrained model
        gets unscaled features and classes without names."""
        trained_on = find_trained_on(model) or TrainedOn(Scaling(), "classes")
        rule = None if trained_on.own_matrix else propagation_of(model)
        return SavedModel(
            model,
            rule if isinstance(rule, str) else None,
            trained_on.scaling,
            trained_on.task == "multilabel",
            trained_on.classes,
            trained_on.features,
            trained_on.task == "regression",
            trained_on.own_matrix,
            trained_on.nodes if node_tables(model) else None,
            own_task=None if trained_on.task in FLAGGED else trained_on.task,
        )

    @property
    def num_features(self) -> int | None:
        """How many feature columns the model takes; None where nothing tells."""
        names, mean = self.features, self.scaling.mean
        known = None if names is None else len(names)
        known = len(mean) if known is None and mean is not None else known
        if type(self.model) not in SAVED.values():
            return self._argument("in_features", known)
        arguments: Any = self.model.arguments
        return num_columns(arguments)

    @property
    def num_classes(self) -> int | None:
        """How many classes the model knows; None where nothing tells."""
        return self._argument("classes", None if self.classes is None else len(self.classes))

    def predict(
        self,
        graph: Graph,
        nodes: Any = None,
        *,
        propagation: PropagationLike | None = None,
        directory: Path | None = None,
        on_chunk: Callable[[int], None] | None = None,
    ) -> Tensor:
        """`predict(self, graph, ...)`: exact outputs for a graph as it was loaded, (nodes,
        classes), before the softmax."""
        from vrgcn.inference.predict import predict

        return predict(
            self, graph, nodes, propagation=propagation, directory=directory, on_chunk=on_chunk
        )

    def calibrated(self, outputs: Tensor) -> Tensor:
        """The model's own outputs (nodes, width) as they are predicted: by its temperature."""
        return outputs if self.calibration is None else self.calibration.outputs(outputs)

    def prepare(self, graph: Graph, scaled: Path | None = None) -> Graph:
        """The graph as the model takes it, its feature columns in the model's order and scale.

        scaled: a file for the scaled features; None: memory
        """
        return fit_features(self, graph, scaled)

    def _argument(self, name: str, otherwise: int | None) -> int | None:
        plugin = made_by(self.model)
        if plugin is not None:
            return int(plugin.arguments[name])
        if type(self.model) not in SAVED.values():
            return otherwise
        arguments: Any = self.model.arguments
        return int(arguments[name])


def save_model(model: nn.Module | SavedModel, path: str | Path) -> None:
    """Write a model, with what it was trained on, to a file: all of it or nothing.

    model: one that `fit` trained, or a SavedModel that says otherwise what it was trained on
    """
    if not isinstance(model, nn.Module | SavedModel):
        raise TypeError(f"save_model(model, path): {model!r} is not a model")
    saved = model if isinstance(model, SavedModel) else SavedModel.of(model)
    if isinstance(saved.model, nn.ModuleList):
        raise TypeError(
            "save_model(model, path): an average of models is kept in a folder: save_average"
        )
    own = type(saved.model) not in SAVED.values()
    itself = own or saved.own_matrix
    if saved.propagation not in PROPAGATIONS and not (itself and saved.propagation is None):
        raise InputError(f"propagation {saved.propagation!r} is none of {', '.join(PROPAGATIONS)}")
    description = {
        "format": FORMAT,
        "version": VERSION,
        **(describe_own(saved.model) if own else _describe(saved.model)),
        "propagation": saved.propagation,
        "scaling": saved.scaling.kind,
        "multilabel": saved.multilabel,
        "regression": saved.regression,
        "own_matrix": saved.own_matrix,
        "classes": saved.classes,
        "features": saved.features,
        "smoothing": None if saved.smoothing is None else saved.smoothing.settings,
        "calibration": None if saved.calibration is None else saved.calibration.settings,
        "task": saved.own_task,
    }
    tensors = {f"model.{name}": value for name, value in saved.model.state_dict().items()}
    if saved.scaling.mean is not None and saved.scaling.deviation is not None:
        tensors["scaling.mean"] = saved.scaling.mean
        tensors["scaling.deviation"] = saved.scaling.deviation
    if saved.scaling.groups is not None:
        tensors["scaling.groups"] = saved.scaling.groups
    tensors |= id_tensors(saved.nodes)
    if saved.smoothing is not None:
        tensors |= saved.smoothing.tensors
    if saved.calibration is not None:
        tensors |= saved.calibration.tensors
    write_model_file(Path(path), description, tensors)


def load_model(path: str | Path, model: Factory | None = None) -> SavedModel:
    """The model of a file or of the folder of a run, in evaluation mode; of a folder with an
    average of models an `Average`, which predicts like any other.

    model: of a model of one's own, what makes it: its class or a function, as such or as a text
        "module:name", called with the arguments that the file has (`model.arguments` as it was
        saved) or with none; or a model, which is given the weights
    """
    path = Path(path)
    if path.is_dir():
        if (path / AVERAGE).is_file():
            from vrgcn.inference.average import load_average

            return load_average(path)
        path = path / MODEL
    description, tensors = read_model_file(path)
    made = _make(path, description, tensors, model)
    saved = SavedModel(
        made.eval(),
        description["propagation"],
        Scaling(
            description["scaling"],
            *(tensors.get(f"scaling.{name}") for name in ("mean", "deviation", "groups")),
        ),
        description["multilabel"],
        description["classes"],
        description["features"],
        description["regression"],
        description["own_matrix"],
        ids_of_tensors(path, tensors),
        smoothing_of(path, description, tensors),
        calibration_of(path, description, tensors),
        description["task"],
    )
    note_trained_on(
        made,
        TrainedOn(
            saved.scaling,
            saved.task,
            saved.classes,
            saved.features,
            saved.own_matrix,
            saved.nodes,
        ),
    )
    if saved.propagation is not None:
        note_propagation(made, saved.propagation)
    return saved


def _describe(model: nn.Module) -> dict[str, Any]:
    names = {kind: name for name, kind in SAVED.items()}
    return {"model": names[type(model)], "arguments": model.arguments}  # type: ignore[index]


def _make(
    path: Path, description: Description, tensors: dict[str, Tensor], factory: Factory | None
) -> nn.Module:
    """The model that the file describes, with its weights in their precision."""
    if description["model"] is None:
        made = make_own(path, description, factory)
        _fill(path, made, weights_of(tensors))
        return made
    if factory is not None:
        raise InputError(
            f"{path} holds {description['model']}, one of vrgcn's models: load it without model="
        )
    return build_saved(path, description, tensors)


def _fill(path: Path, model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Load the weights of the file into a custom model, in their precision."""
    dtypes = {weights[name].dtype for name, _ in model.named_parameters() if name in weights}
    if len(dtypes) == 1:
        model.to(dtypes.pop())
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        kind = type(model).__name__
        raise InputError(f"{path}: its weights are not those of this {kind}: {error}") from None


def fit_features(saved: SavedModel, graph: Graph, scaled: Path | None = None) -> Graph:
    """The graph with features in the model's order and scale; an error where they do not agree."""
    if graph.scaling is not None:
        check_scaled(saved.model, graph)
        return graph
    wanted = saved.num_features
    names = graph.names.features
    if saved.features is not None and names is not None and saved.features != names:
        missing = [name for name in saved.features if name not in set(names)]
        if missing:
            raise InputError(
                f"the graph lacks {len(missing)} of the {wanted} feature columns that the model "
                f"was trained on, first: {missing[0]!r}; `vrgcn import --like` makes them of tables"
            )
        place = {name: column for column, name in enumerate(names)}
        columns = torch.tensor([place[name] for name in saved.features])
        # Under the model's names from here on: who is given this graph must not move its columns
        # once more.
        graph = graph.replace(
            features=select_columns(graph.features, columns),
            names=replace(graph.names, features=saved.features),
        )
    if wanted is not None and graph.num_features != wanted:
        raise InputError(
            f"the model was trained on {wanted} feature columns, and the graph has "
            f"{graph.num_features}"
        )
    return saved.scaling.apply_to(graph, scaled)


def model_labels(saved: SavedModel, graph: Graph) -> Tensor:
    """The graph's labels, its classes counted as the model counts them."""
    if graph.labels is None:
        raise InputError("the graph has no labels to compare with")
    if graph.task != saved.task:
        raise InputError(
            f"the model was trained for {find_task(saved.task).label}, and the graph has "
            f"{find_task(graph.task).label}"
        )
    task = find_task(graph.task)
    if not task.has_classes:
        return graph.labels
    theirs, ours = graph.names.classes, saved.classes
    if theirs is None or ours is None or theirs == ours:
        if saved.num_classes is not None and graph.num_classes != saved.num_classes:
            raise InputError(
                f"the model knows {saved.num_classes} classes, and the graph has "
                f"{graph.num_classes}"
            )
        return graph.labels
    unknown = [name for name in theirs if name not in set(ours)]
    if unknown:
        raise InputError(f"the model does not know the class {unknown[0]!r} of the graph")
    place = torch.tensor([ours.index(name) for name in theirs])
    return task.renumbered(graph.labels, place, len(ours))
