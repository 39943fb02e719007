"""Runs as models of MLflow: what `mlflow.pyfunc.load_model`, and `mlflow models serve`, load.

MLflow imports this module by its name and calls `_load_pyfunc`: nothing is pickled.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vrgcn.data.any_frame import library_of, like_given, read_frame
from vrgcn.files.mistakes import InputError
from vrgcn.runs.folder import CHECKPOINTS, GRAPH
from vrgcn.runs.run import Run, graph_source, load_run, open_run_graph

if TYPE_CHECKING:
    from vrgcn.graph.graph import Graph

_RUN = "run"
_ID = "id"


class RunModel:
    """Exact predictions for nodes of a run's own graph."""

    def __init__(self, run: Run, graph: Graph) -> None:
        self._run = run
        self._graph = graph

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Return a table with `id`, `label` and probabilities, or `prediction`, a row for each row
        of the input, in the library that it came in.

        model_input: a table with a column `id`
        params: `top`, as in `Predictions.to_arrow`
        """
        frame = read_frame("model_input", model_input)
        if _ID not in frame.names:
            raise InputError(f"the input needs a column {_ID!r}, ids of nodes, not {frame.names}")
        graph = self._graph
        nodes = graph.names.places(frame.listed(_ID), "model_input", graph.num_nodes)
        first = graph.kinds.range(graph.kinds.target).start if graph.kinds.target else 0
        made = self._run.predictions(graph, nodes - first)
        table: pa.Table = made.to_arrow(**(params or {}))
        return like_given(table, library_of(model_input))


def save_mlflow(run: Run, path: str | Path) -> None:
    """See `Run.save_mlflow`."""
    try:
        import mlflow.pyfunc
    except ImportError:
        raise ImportError("models of MLflow need mlflow: pip install 'vrgcn[mlflow]'") from None
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        _copy(run, data)
        mlflow.pyfunc.save_model(
            path=str(path),
            loader_module=__name__,
            data_path=str(data),
            pip_requirements=["vrgcn"],
        )


def _copy(run: Run, data: Path) -> None:
    """Copy a run without its checkpoints, and the graph that it was trained on."""
    left = shutil.ignore_patterns(CHECKPOINTS, GRAPH, "tensorboard", ".*")
    shutil.copytree(run.folder, data / _RUN, ignore=left)
    _, folder, _ = graph_source(run.config)
    if folder is not None:
        shutil.copytree(folder, data / GRAPH, ignore=shutil.ignore_patterns("derived"))


def _load_pyfunc(data_path: str) -> RunModel:
    """Load what `save_mlflow` wrote; MLflow calls this."""
    data = Path(data_path)
    run = load_run(data / _RUN)
    graph = data / GRAPH if (data / GRAPH).is_dir() else None
    return RunModel(run, open_run_graph(run, graph=graph, scored=False, scaled=False).graph)
