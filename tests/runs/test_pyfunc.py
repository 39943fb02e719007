"""A run as a model of MLflow predicts what the run predicts."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType

import pandas
import pyarrow as pa
import pytest

try:
    import mlflow.pyfunc
except ImportError:  # an extra, which is not in constraints.txt
    mlflow = None  # type: ignore[assignment]

import vrgcn
from tests.messages import refused
from vrgcn import Graph
from vrgcn.runs import pyfunc


@pytest.fixture
def run(tmp_path: Path) -> vrgcn.Run:
    people = pandas.DataFrame(
        {"id": [f"p{i}" for i in range(20)], "age": range(20), "drink": ["tea", "milk"] * 10}
    )
    knows = pandas.DataFrame({"source": people["id"], "target": people["id"].to_numpy()[::-1]})
    graph = Graph.from_pandas(people, knows, label="drink", ratio=(0.6, 0.2, 0.2))
    return vrgcn.train(graph, out=tmp_path / "run", epochs=1, hidden=4, model="gcn")


def check(model: pyfunc.RunModel, run: vrgcn.Run) -> None:
    wanted = run.predictions().to_pandas().loc[["p7", "p2"]].reset_index()
    asked = pandas.DataFrame({"id": ["p7", "p2"], "other": [1, 2]})
    pandas.testing.assert_frame_equal(model.predict(asked), wanted)


def test_a_saved_run_predicts_for_ids_in_the_library_they_come_in(run, tmp_path, monkeypatch):
    module = ModuleType("mlflow.pyfunc")
    saved = {}

    def save_model(path: str, **given: object) -> None:
        saved.update(given)
        shutil.copytree(str(given["data_path"]), path)

    vars(module).update(save_model=save_model)
    parent = ModuleType("mlflow")
    vars(parent).update(pyfunc=module)
    monkeypatch.setitem(sys.modules, "mlflow", parent)
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", module)
    run.save_mlflow(tmp_path / "saved")
    assert saved["loader_module"] == "vrgcn.runs.pyfunc"
    shutil.move(tmp_path / "run", tmp_path / "gone")
    wanted = vrgcn.load_run(tmp_path / "gone")
    model = pyfunc._load_pyfunc(str(tmp_path / "saved"))
    asked = pa.table({"id": ["p7", "p2"]})
    best = model.predict(asked, {"top": 1})
    assert best.column_names == ["id", "label_1", "p_1"]
    own = vrgcn.predictions(wanted.saved, vrgcn.load_graph(tmp_path / "gone" / "graph"))
    expected = own.to_pandas().loc[["p7", "p2"]].reset_index()
    pandas.testing.assert_frame_equal(model.predict(asked.to_pandas()), expected)
    for table in (pa.table({"node": ["p7"]}), pa.table({"id": ["p7", "nobody"]})):
        with refused():
            model.predict(table)


@pytest.mark.skipif(mlflow is None, reason="mlflow is not installed")
def test_mlflow_itself_loads_it(run, tmp_path):
    run.save_mlflow(tmp_path / "saved")
    check(mlflow.pyfunc.load_model(str(tmp_path / "saved")), run)


def test_without_mlflow_the_error_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install 'vrgcn\[mlflow\]'"):
        run.save_mlflow(tmp_path / "saved")
