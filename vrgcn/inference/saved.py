"""Saved models: chains of stages, and all that a prediction needs of them in one safetensors file.

Weights and feature scaling are tensors; architecture, propagation and names are JSON in the file's
metadata, with a checksum of all of it. Loading reads tensors and JSON, never pickled code. A model
of one's own is made anew by the class or the function that the user names (own_models.py).

Features and labels of a graph are matched with a saved model by the names of columns and classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
import torch
from torch import Tensor, nn

from vrgcn.engine.setup import note_propagation, propagation_of
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.graph.scaling import Scaling, TrainedOn, check_scaled, find_trained_on, note_trained_on
from vrgcn.graph.sparse import select_columns
from vrgcn.inference import MODEL
from vrgcn.inference.calibration import Calibration
from vrgcn.inference.exact import SAVED, read_exact, written_exact
from vrgcn.inference.model_file import read_saved, write_saved
from vrgcn.inference.node_tables import on_nodes
from vrgcn.inference.own_models import Factory
from vrgcn.inference.smoothing import Smoothing
from vrgcn.inference.stage import RowStage, Stage
from vrgcn.inference.stages import Source
from vrgcn.inference.sweeps import Outputs, sweep_module
from vrgcn.models.node_table import node_tables
from vrgcn.models.plugins import made_by
from vrgcn.models.relational import num_columns
from vrgcn.tasks import FLAGGED, find_task, flagged_task


@dataclass(frozen=True)
class SavedModel:
    """A chain of stages that makes outputs, and what its inputs and outputs mean.

    The first stage, `exact`, is one trained model; `Average` is of several.

    propagation: the name of its propagation matrix; None: what a model of one's own says itself
    scaling: what is done to the features first
    multilabel: several classes per node (outputs above 0), or one (the largest)
    classes: the classes' names, in the order of the outputs; None if they have none
    features: the feature columns' names, in order; None if they have none
    regression: one number per node, in the unit of the labels, in place of classes
    own_matrix: whether it was trained by a propagation that no name stands for, to be given again
    nodes: ids of the nodes that its node tables have rows of; None: their numbers
    own_task: the task of another package that it was trained for; None: one of vrgcn's own
    stages: after the first, in their order: what changes the outputs of the stage before
    """

    name: ClassVar[str] = "exact"  # of the first stage, in files

    model: nn.Module
    propagation: str | None = None
    scaling: Scaling = field(default_factory=Scaling)
    multilabel: bool = False
    classes: list[str] | None = None
    features: list[str] | None = None
    regression: bool = False
    own_matrix: bool = False
    nodes: pa.Array | None = None
    own_task: str | None = None
    stages: tuple[Stage, ...] = ()

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
            own_matrix=trained_on.own_matrix,
            nodes=trained_on.nodes if node_tables(model) else None,
            **_meaning(trained_on),
        )

    @classmethod
    def of_chain(
        cls, where: str, settings: dict[str, Any], tensors: dict[str, Tensor], source: Source
    ) -> SavedModel:
        """The first stage of a file. where: the file, for errors"""
        fields = read_exact(where, settings, tensors, source)
        saved = SavedModel(**fields, **_meaning(source))
        note_trained_on(
            saved.model,
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
            note_propagation(saved.model, saved.propagation)
        return saved

    def written(self, folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The settings and tensors of the first stage in a file. folder: that the file is in"""
        return written_exact(self)

    @property
    def parts(self) -> Mapping[str, tuple[float, SavedModel]]:
        """Weight and model of each that it is an average of, by name; none of a single model."""
        return {}

    def check_single(self, why: str) -> None:
        """Raise if it is an average of several models.

        why: that will not do; ends with the advice to name a single one
        """

    def then(self, stage: Stage) -> Self:
        """The chain with one more stage at its end."""
        return replace(self, stages=(*self.stages, stage))

    def before(self, kind: type[Stage]) -> Self:
        """The part of the chain before its first stage of a kind; all of it if it has none."""
        places = [index for index, stage in enumerate(self.stages) if isinstance(stage, kind)]
        return replace(self, stages=self.stages[: places[0]]) if places else self

    @property
    def smoothing(self) -> Smoothing | None:
        """The stage that corrects and smooths outputs; None if there is none."""
        return next((stage for stage in self.stages if isinstance(stage, Smoothing)), None)

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of the predictions: the last stage; None if that is another."""
        last = self.stages[-1] if self.stages else None
        return last if isinstance(last, Calibration) else None

    @property
    def whole(self) -> Stage | None:
        """The first stage that needs the whole graph in one process; None if none does."""
        return next((stage for stage in self.stages if not isinstance(stage, RowStage)), None)

    def sweeps(
        self,
        graph: Graph,
        *,
        propagation: PropagationLike | None = None,
        directory: Path | None = None,
        on_chunk: Callable[[int], None] | None = None,
    ) -> Outputs:
        """The outputs of the last stage, a chunk at a time; arguments as in `predict`."""
        return self.staged(self.first(graph, propagation, directory, on_chunk), directory)

    def first(
        self,
        graph: Graph,
        propagation: PropagationLike | None,
        directory: Path | None,
        on_chunk: Callable[[int], None] | None,
    ) -> Outputs:
        """The outputs of the first stage."""
        graph = fit_features(self, graph, None if directory is None else directory / "features.bin")
        return sweep_module(
            on_nodes(self.model, self.nodes, graph),
            graph,
            propagation=self.propagation if propagation is None else propagation,
            directory=directory,
            on_chunk=on_chunk,
        )

    def staged(self, outputs: Outputs, directory: Path | None = None) -> Outputs:
        """The outputs of the last stage, from those of the first."""
        for stage in self.stages:
            outputs = stage.on(outputs, find_task(self.task), directory)
        return outputs

    def row_outputs(self, outputs: Tensor) -> Tensor:
        """Outputs of the first stage (nodes, width) after the stages that change each row by
        itself, up to the first that needs the whole graph."""
        for stage in self.stages:
            if not isinstance(stage, RowStage):
                break
            outputs = stage.rows(outputs, find_task(self.task))
        return outputs

    @property
    def num_features(self) -> int | None:
        """Number of feature columns that the model takes; None if it is not known."""
        names, mean = self.features, self.scaling.mean
        known = None if names is None else len(names)
        known = len(mean) if known is None and mean is not None else known
        if type(self.model) not in SAVED.values():
            return self._argument("in_features", known)
        arguments: Any = self.model.arguments
        return num_columns(arguments)

    @property
    def num_classes(self) -> int | None:
        """Number of classes that the model knows; None if it is not known."""
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

    def prepare(self, graph: Graph, scaled: Path | None = None) -> Graph:
        """Return the graph with its feature columns in the model's order and scale.

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
    write_saved(model if isinstance(model, SavedModel) else SavedModel.of(model), Path(path))


def load_model(path: str | Path, model: Factory | None = None) -> SavedModel:
    """The model of a file or of the folder of a run, in evaluation mode.

    model: of a model of one's own, what makes it: its class or a function, as such or as a text
        "module:name", called with the arguments that the file has (`model.arguments` as it was
        saved) or with none; or a model, which is given the weights
    """
    path = Path(path)
    return read_saved(path / MODEL if path.is_dir() else path, model)


def _meaning(told: TrainedOn | Source) -> dict[str, Any]:
    """The fields of a `SavedModel` that say what its outputs mean."""
    return {
        "multilabel": told.task == "multilabel",
        "classes": told.classes,
        "features": told.features,
        "regression": told.task == "regression",
        "own_task": None if told.task in FLAGGED else told.task,
    }


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
