"""Base of the classifier and the regressor: parameters, fitting, exact outputs.

Labels of nodes that a model must not see are kept out in one of three ways: they are not in y (with
a fixed `graph`, X names nodes, so splitting X splits nodes), they are marked unknown in y, or
`train_mask` leaves them out. Features and edges of all nodes are seen in each of them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from vrgcn.costs.order import build_for
from vrgcn.data.any_frame import is_frame, read_frame
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import scale_graph, suitable_scaling
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel
from vrgcn.models.config import DROPOUT, ModelConfig
from vrgcn.runs.config_file import build, check_known, setting_types
from vrgcn.runs.fit import fit
from vrgcn.scikit.frame_features import FrameFeatures, needs_encoding
from vrgcn.scikit.masks import as_mask, row_weights, seed_of, set_aside, split_of
from vrgcn.scikit.rows import (
    InputRows,
    check_different,
    rows_of_nodes,
    rows_of_table,
    same_features,
)
from vrgcn.scikit.targets import RowLabels, target_of_graph
from vrgcn.targets.predicted import check_used
from vrgcn.tasks import TASKS, find_task, task_of
from vrgcn.training.config import TrainConfig
from vrgcn.training.objective import build_objective
from vrgcn.training.own_loss import Weighted
from vrgcn.training.result import TrainResult


@dataclass(kw_only=True, eq=False, repr=False)
class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """graph: a fixed graph; X then contains numbers of its nodes, so splitting X splits nodes. Its
        own labels and splits are ignored
    undirected: every edge of `edge_index` was given once and counts in both directions
    model, hidden, layers, dropout: the network, as in `ModelConfig`
    estimator, fanout, epochs, batch_size, learning_rate, weight_decay, device: the training, as in
        `TrainConfig`
    settings: a dict of any other settings of `ModelConfig` and `TrainConfig`
    scaling: of the features, learned from the training nodes: "standard", "row", "blocks" or
        "none"; "auto": "standard" for dense and "row" for sparse ones, "blocks" for both
    validation_fraction: the share of the labelled nodes, drawn at random, that chooses the best
        epoch; 0: none, and the last epoch is kept
    patience: stop after this many epochs without a better validation score
    random_state: a seed, a generator of NumPy's, or None for a seed that NumPy draws
    verbose: show progress

    After `fit`: `model_` is the trained network, which `save_model` writes; `result_` the
    `TrainResult`; `n_iter_` the epochs trained; `graph_` the graph, if there were edges.
    """

    graph: Graph | None = None
    undirected: bool = False
    model: str = ModelConfig.model
    hidden: int = ModelConfig.hidden
    layers: int = ModelConfig.layers
    dropout: float = DROPOUT
    estimator: str = TrainConfig.estimator
    fanout: int | tuple[int, ...] | None = TrainConfig.fanout
    epochs: int = 100
    batch_size: int = TrainConfig.batch_size
    learning_rate: float = TrainConfig.learning_rate
    weight_decay: float = 0.0
    settings: Mapping[str, Any] | None = None
    scaling: str = "auto"
    validation_fraction: float = 0.0
    patience: int | None = None
    random_state: Any = None
    verbose: bool = False
    device: str = TrainConfig.device

    # Attributes that `fit` sets; they are no parameters.
    model_: ClassVar[nn.Module]
    result_: ClassVar[TrainResult]
    graph_: ClassVar[Graph | None]
    n_iter_: ClassVar[int]

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
        train_mask: Any = None,
        val_mask: Any = None,
    ) -> Self:
        """Train the model.

        X: (nodes, features), dense or sparse; or a DataFrame (of pandas, polars or PyArrow), whose
            categories, dates, texts and gaps are encoded as by `vrgcn import`; or a `Graph`; or,
            with a fixed graph, the numbers of the nodes that y belongs to
        y: the class or number of each row; None and NaN if unknown. None: the labels of the `Graph`
        sample_weight: (rows,) weight of each row in the loss
        edge_index: (2, edges) integer, from row to row of X; edge_weight: (edges,) their weights
        train_mask, val_mask: (rows,) bool, the rows to train on and those that choose the best
            epoch; without them the rows whose label is known, and the splits of a `Graph`, whose
            test nodes are not trained on
        """
        rows = self._rows(X, edge_index, edge_weight, reset=True)
        check_different(rows.nodes)
        target = self._read(X, y, rows)
        train, val = split_of(X, train_mask, val_mask, target.known)
        weights = row_weights(sample_weight, len(rows))
        train &= weights > 0
        seed = seed_of(self.random_state)
        if val is None:
            train, val = set_aside(train, self.validation_fraction, seed)
        if not train.any():
            raise InputError("y has no known label to train on (n_samples=0 after those unknown)")
        if self.patience and not val.any():
            raise InputError("patience needs validation nodes: give validation_fraction=0.1, say")
        model_config, train_config = self._configs(seed)
        graph, scaling_kind = self._labelled(rows, target, train, val), self.scaling
        if graph.scaling is None:
            if scaling_kind == "auto":
                scaling_kind = suitable_scaling(graph.features)
            graph, _ = scale_graph(graph, scaling_kind)
        weights = weights * self._class_weights(target, train)
        objective = build_objective(graph, train_config)
        if (weights[train] != weights[train][0]).any():
            objective = Weighted(graph, train_config, rows.spread(weights, 0.0))
        model = build_for(model_config, graph, objective.outputs, seed)
        self.result_ = fit(  # type: ignore[misc]
            model, graph, train_config, objective=objective, verbose=self.verbose
        )
        self.model_ = model  # type: ignore[misc]
        self.n_iter_ = len(self.result_.curve)  # type: ignore[misc]
        linked = self.graph is not None or rows.graph.num_edges > 0
        self.graph_ = rows.graph if linked else None  # type: ignore[misc]
        return self

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
    ) -> float:
        """Return the accuracy of classes, or R2 of numbers, on the rows whose label is known. For a
        `Graph` without y, use its test nodes, or all labelled nodes if it has none."""
        predicted = self.predict(X, edge_index=edge_index, edge_weight=edge_weight)
        target = self._target(X, y)
        check_consistent_length(predicted, target.known)
        chosen = target.known.copy()
        if isinstance(X, Graph) and y is None and len(X.test):
            chosen &= as_mask(X.test, len(chosen))
        if not chosen.any():
            raise InputError("y has no known label to compare with")
        weights = None if sample_weight is None else row_weights(sample_weight, len(chosen))[chosen]
        return self._compare(target.values[chosen], predicted[chosen], weights)

    def predict(self, X: Any, *, edge_index: Any = None, edge_weight: Any = None) -> NDArray[Any]:
        """Return predictions (rows,): see the classifier and the regressor."""
        raise NotImplementedError

    def __sklearn_clone__(self) -> Any:
        """Return a clone that shares the fixed graph, which a cross-validation would copy for each
        fold."""
        without = copy.copy(self)
        without.graph = None
        cloned = super(GraphEstimator, without).__sklearn_clone__()
        cloned.graph = self.graph
        return cloned

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _outputs(self, X: Any, edge_index: Any, edge_weight: Any) -> Tensor:
        """Return exact outputs (rows, outputs), float64."""
        check_is_fitted(self, "model_")
        rows = self._rows(X, edge_index, edge_weight, reset=False)
        return predict(SavedModel.of(self.model_), rows.graph, rows.nodes).double()

    def _rows(self, X: Any, edge_index: Any, edge_weight: Any, *, reset: bool) -> InputRows:
        """Convert X to rows.

        reset: True if X sets the number and the names of the features
        """
        if isinstance(X, Graph) or self.graph is not None:
            if edge_index is not None or edge_weight is not None:
                raise InputError("a Graph has its edges: leave edge_index and edge_weight out")
            own = X if isinstance(X, Graph) else self.graph
            assert own is not None
            if reset:
                self._note_features(own)
            if isinstance(X, Graph):
                return InputRows(X)
            return rows_of_nodes(own if reset or self.graph_ is None else self.graph_, X)
        X, listed = self._features(X, reset)
        fitted = None if reset else self.graph_
        if edge_index is None and fitted is not None:
            if not same_features(fitted, X):
                raise InputError(
                    f"these {X.shape[0]} rows are not the {fitted.num_nodes} that the model was "
                    "fitted to, whose edges it knows: give edge_index, the edges among these rows "
                    "(np.empty((2, 0), int) if there are none)"
                )
            return InputRows(fitted)
        return rows_of_table(X, edge_index, edge_weight, self.undirected, listed)

    def _features(self, X: Any, reset: bool) -> tuple[Any, list[str] | None]:
        """Return X as numbers (rows, features) and the names of the features, if they have any.
        Columns of a DataFrame that are no numbers, or have gaps, are encoded."""
        frame = read_frame("X", X) if is_frame(X) else None
        if reset:
            encoded = frame is not None and needs_encoding(frame)
            self._encoders = FrameFeatures() if encoded else None
        if self._encoders is not None:
            if frame is None:
                raise InputError("the model was fitted to a DataFrame: give one with its columns")
            validate_data(self, X, reset=reset, skip_check_array=True)
            graph = self._encoders.learn(frame) if reset else self._encoders.apply(frame)
            return graph.features, graph.names.features
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=reset)
        names = getattr(self, "feature_names_in_", None)
        return X, None if names is None else [str(name) for name in names]

    def _note_features(self, graph: Graph) -> None:
        self.n_features_in_ = graph.num_features
        if graph.names.features is not None:
            self.feature_names_in_ = np.array(graph.names.features, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _target(self, X: Any, y: Any) -> RowLabels:
        if y is not None:
            return self._read_target(y)
        if not isinstance(X, Graph):
            raise InputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        tasks = [name for name in TASKS if find_task(name).has_classes == self._has_classes]
        if X.task not in tasks:
            raise InputError(
                f"the labels of the graph are for {X.task}, and {type(self).__name__} is for "
                f"{' and '.join(tasks)}"
            )
        return target_of_graph(X)

    def _read(self, X: Any, y: Any, rows: InputRows) -> RowLabels:
        target = self._target(X, y)
        if len(target.known) != len(rows):
            raise InputError(
                f"Found input variables with inconsistent numbers of samples: X has {len(rows)} "
                f"rows and y {len(target.known)}"
            )
        return target

    def _labelled(
        self, rows: InputRows, target: RowLabels, train: NDArray[np.bool_], val: NDArray[np.bool_]
    ) -> Graph:
        """Return the graph with y as labels, and with the training and validation rows as
        splits."""
        labels, classes = self._encode(target, train | val)
        task = task_of(torch.from_numpy(labels))
        base = rows.graph
        splits = {
            name: rows.spread(mask, False).nonzero()[:, 0]
            for name, mask in (("train", train), ("val", val), ("test", np.zeros_like(train)))
        }
        return base.replace(
            labels=rows.spread(labels, task.unknown),
            num_classes=len(classes or []),
            task=task.name,
            names=replace(base.names, classes=classes),
            **splits,
        )

    def _configs(self, seed: int) -> tuple[ModelConfig, TrainConfig]:
        own = self.get_params(deep=False)
        extra = dict(self.settings or {})
        types = setting_types(ModelConfig) | setting_types(TrainConfig)
        known = {name: kind for name, kind in types.items() if name not in {*own, "seed"}}
        for name in extra:
            if name in own or name == "seed":
                instead = "random_state" if name == "seed" else name
                raise InputError(
                    f"settings: {name!r} is a parameter of its own, "
                    f"{type(self).__name__}({instead}=...)"
                )
            check_known(name, known, "settings: ")
        values = {"seed": seed, "diagnostics": 0, **self._extra_settings(), **extra, **own}
        model = build(ModelConfig, values)
        check_used(model, "labels")
        return model, build(TrainConfig, values)

    # Members that the classifier and the regressor define.

    _has_classes: ClassVar[bool]  # True if y holds classes

    def _read_target(self, y: Any) -> RowLabels:
        raise NotImplementedError

    def _encode(
        self, target: RowLabels, used: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], list[str] | None]:
        """Return labels (rows, ...) as a graph has them, and the names of classes."""
        raise NotImplementedError

    def _compare(self, actual: Any, predicted: Any, weights: Any) -> float:
        raise NotImplementedError

    def _class_weights(self, target: RowLabels, train: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.ones(len(train))

    def _extra_settings(self) -> dict[str, Any]:
        return {}
