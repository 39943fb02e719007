"""`VRGCNRegressor`: predicts a number per node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from vrgcn.scikit.estimator import GraphEstimator
from vrgcn.scikit.targets import RowLabels, read_numbers


@dataclass(kw_only=True, eq=False, repr=False)
class VRGCNRegressor(RegressorMixin, GraphEstimator):  # type: ignore[misc]
    """A scikit-learn regressor of nodes; in y, NaN and None are unknown."""

    __doc__ += "\n\n    " + (GraphEstimator.__doc__ or "")

    _has_classes: ClassVar[bool] = False

    def predict(
        self, X: Any, *, edge_index: Any = None, edge_weight: Any = None
    ) -> NDArray[np.float64]:
        """Return predictions (rows,), in the unit of y.

        X: as in `fit`. Without `edge_index`, rows that the model was fitted to keep the edges that
            they had then; other rows must be given theirs
        """
        numbers: NDArray[np.float64] = self._outputs(X, edge_index, edge_weight)[:, 0].numpy()
        return numbers

    score = GraphEstimator.score  # before that of the mixin

    def _read_target(self, y: Any) -> RowLabels:
        return read_numbers(y)

    def _encode(
        self, target: RowLabels, used: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], list[str] | None]:
        return np.where(target.known, target.values, np.nan), None

    def _compare(self, actual: Any, predicted: Any, weights: Any) -> float:
        return float(r2_score(actual, predicted, sample_weight=weights))
