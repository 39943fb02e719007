"""`VRGCNClassifier`: predicts one class per node, or several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_sample_weight

from vrgcn.files.mistakes import InputError
from vrgcn.inference.saved import SavedModel
from vrgcn.scikit.estimator import GraphEstimator
from vrgcn.scikit.targets import RowLabels, read_classes
from vrgcn.tasks import find_task
from vrgcn.tasks.task import Task


@dataclass(kw_only=True, eq=False, repr=False)
class VRGCNClassifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    """A scikit-learn classifier of nodes.

    class_weight: None, "balanced", or a dict from classes to their weights in the loss
    unlabeled: the value of an unknown label in y, besides None and NaN; None: no other value
    """

    __doc__ += GraphEstimator.__doc__ or ""

    class_weight: Literal["balanced"] | Mapping[Any, float] | None = None
    unlabeled: Any = -1

    classes_: ClassVar[NDArray[Any]]
    _has_classes: ClassVar[bool] = True

    def predict(self, X: Any, *, edge_index: Any = None, edge_weight: Any = None) -> NDArray[Any]:
        """Return the most probable class of each row, (rows,); for several classes per row, (rows,
        classes) of 0 and 1.

        X: as in `fit`. Without `edge_index`, rows that the model was fitted to keep the edges that
            they had then; other rows must be given theirs
        """
        outputs = self._outputs(X, edge_index, edge_weight)
        predicted = self._fitted_task().predicted(outputs).numpy()
        if predicted.ndim == 2:
            return predicted.astype(np.int64)
        chosen: NDArray[Any] = self.classes_[predicted]
        return chosen

    def predict_proba(
        self, X: Any, *, edge_index: Any = None, edge_weight: Any = None
    ) -> NDArray[np.float64]:
        """Return the probability of each class, (rows, classes), in the order of `classes_`."""
        outputs = self._outputs(X, edge_index, edge_weight)
        chances: NDArray[np.float64] = self._fitted_task().probabilities(outputs).numpy()
        return chances

    score = GraphEstimator.score  # before that of the mixin

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _fitted_task(self) -> Task:
        return find_task(SavedModel.of(self.model_).task)

    def _read_target(self, y: Any) -> RowLabels:
        return read_classes(y, self.unlabeled)

    def _encode(
        self, target: RowLabels, used: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], list[str] | None]:
        labels = np.full(target.values.shape, -1, np.int64)
        if target.several:
            labels[target.known] = target.values[target.known]
            self.classes_ = np.arange(labels.shape[1])  # type: ignore[misc]
            return labels.astype(np.float32), [str(c) for c in self.classes_]
        # Rows outside training and validation do not even contribute their classes.
        classes, codes = np.unique(target.values[used], return_inverse=True)
        labels[used] = codes
        self.classes_ = classes  # type: ignore[misc]
        return labels, [str(c) for c in classes]

    def _compare(self, actual: Any, predicted: Any, weights: Any) -> float:
        return float(accuracy_score(actual, predicted, sample_weight=weights))

    def _class_weights(self, target: RowLabels, train: NDArray[np.bool_]) -> NDArray[np.float64]:
        weights = np.ones(len(train))
        if self.class_weight is None or self.class_weight == "balanced":
            return weights
        if target.several:
            raise InputError('class_weight of several classes per row is None or "balanced"')
        weights[train] = compute_sample_weight(self.class_weight, target.values[train])
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise InputError("class_weight must be finite and not negative")
        if not weights[train].any():
            raise InputError("class_weight is zero for all classes of y: at least one must count")
        return weights

    def _extra_settings(self) -> dict[str, Any]:
        balanced = isinstance(self.class_weight, str)
        return {"class_weights": self.class_weight if balanced else "none"}
