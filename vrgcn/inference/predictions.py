"""Predictions under the user's own ids and classes, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from vrgcn.data.id_columns import IdColumns
from vrgcn.data.predictions import PredictionRows
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.inference.calibration import Calibration
from vrgcn.inference.predict import asked_nodes, predict
from vrgcn.inference.regions import find_region
from vrgcn.inference.saved import SavedModel
from vrgcn.tasks import find_task
from vrgcn.tasks.task import Task

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Predictions:
    """Exact predictions for nodes.

    nodes: (rows,) their numbers
    outputs: (rows, classes), exact, before the softmax; of numbers (rows, 1)
    names: of nodes; classes: their names, None for numbers
    task: as `Graph.task` names it
    calibration: of the model, for prediction sets and intervals; None if it has none
    """

    nodes: Tensor
    outputs: Tensor
    names: Names
    classes: list[str] | None
    task: str
    calibration: Calibration | None = None

    @property
    def probabilities(self) -> Tensor:
        """(rows, classes)."""
        return self._task.probabilities(self.outputs)

    def to_arrow(self, top: int | None = None, coverage: float | None = None) -> pa.Table:
        """`id`, `label` and `p_CLASS` for each class, as `vrgcn predict` writes them; of numbers
        `id` and `prediction`. Of two classes the label goes by the model's threshold.

        top: return only this many of the most probable classes: `label_1`, `p_1`, ...
        coverage: add prediction sets or intervals that hold the label with this probability: `set`,
            or `low` and `high`
        """
        classes = self.classes or []
        self._task.check_top(top, len(classes))
        ids = IdColumns.about(self.names, self.nodes)
        region = None if coverage is None else find_region(self._task, self.calibration, coverage)
        rows = PredictionRows(ids, self._task, classes, top, region, self.threshold)
        return pa.Table.from_batches([rows.batch(self.nodes, self.outputs)])

    def to_pandas(self, top: int | None = None, coverage: float | None = None) -> pandas.DataFrame:
        """The same as a DataFrame whose index are the ids."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install 'vrgcn[pandas]'") from None
        frame: pandas.DataFrame = self.to_arrow(top, coverage).to_pandas()
        return frame.set_index(["kind", "id"] if "kind" in frame.columns[:1] else "id")

    def to_polars(self, top: int | None = None, coverage: float | None = None) -> Any:
        """The same as a DataFrame of polars, with the ids in a column."""
        try:
            import polars
        except ImportError:
            raise ImportError("to_polars needs polars: pip install 'vrgcn[polars]'") from None
        return polars.from_arrow(self.to_arrow(top, coverage))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Arrow's PyCapsule protocol: `polars.DataFrame(predictions)` and
        `pyarrow.table(predictions)` read the columns of `to_arrow`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @property
    def threshold(self) -> float | None:
        """Probability of the second of two classes from which on it is the label, as the model was
        calibrated; None: the label is the more probable class."""
        return None if self.calibration is None else self.calibration.threshold

    @property
    def labels(self) -> list[str] | None:
        """The names of the predicted classes, (rows,); None for numbers. Several classes of a node
        are joined as `to_arrow` joins them."""
        if self.classes is None:
            return None
        labels: list[str] = self.to_arrow().column("label").to_pylist()
        return labels

    @property
    def multilabel(self) -> bool:
        """True if a node may have several classes."""
        return self._task.several

    @property
    def _task(self) -> Task:
        return find_task(self.task)

    def __len__(self) -> int:
        return len(self.nodes)


def predictions(
    model: nn.Module | SavedModel,
    graph: Graph,
    nodes: Any = None,
    *,
    kind: str | None = None,
    **given: Any,
) -> Predictions:
    """The predictions of `predict`, with the names of nodes and classes.

    nodes, kind, given: as in `predict`
    """
    saved = model if isinstance(model, SavedModel) else SavedModel.of(model)
    outputs = predict(model, graph, nodes, kind=kind, **given)
    asked = asked_nodes(graph, nodes, kind)
    asked = torch.arange(graph.num_nodes) if asked is None else asked
    classes = None
    if find_task(saved.task).has_classes:
        classes = saved.classes or [str(i) for i in range(outputs.shape[1])]
    return Predictions(asked, outputs, graph.names, classes, saved.task, saved.calibration)
