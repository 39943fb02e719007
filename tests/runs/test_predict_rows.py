"""New rows with a time of their own: predicted as the import would have, by file or DataFrame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
import torch

from tests.graph.timed import CUSTOMERS, PATH, dated_graph
from tests.messages import refused
from vrgcn import Run, load_run, predict, train
from vrgcn.data.store import save_graph

TEST = range(70, 90)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("rows")
    save_graph(dated_graph(), folder / "graph")
    train(folder / "graph", out=folder / "run", model="graphsage", epochs=3, hidden=8, threads=1)
    return load_run(folder / "run")


def stored_rows() -> pd.DataFrame:
    """The test rows of the graph, as a table of new rows."""
    graph = dated_graph()
    span = graph.kinds.range("row")
    A = graph.relations[PATH.entity].adjacency
    who = A.indices[A.row_of_entry - span.start >= TEST.start]
    at = graph.kept["row"]["at"].values[list(TEST)].numpy()
    times = (at * 1e6).astype("int64").view("datetime64[us]")
    return pd.DataFrame({"at": times, "customer": [f"c{n}" for n in who.tolist()]})


def test_a_frame_of_rows_gets_the_predictions_of_the_same_stored_rows(trained: Run) -> None:
    rows = stored_rows()
    found = trained.predict(rows=rows)
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == ["customer", "at", "label", "p_0", "p_1"]
    assert found["customer"].tolist() == rows["customer"].tolist()
    wanted = trained.predictions(nodes=torch.tensor(list(TEST)))
    assert np.array_equal(found[["p_0", "p_1"]], wanted.probabilities)
    assert found["label"].astype(str).tolist() == wanted.labels


def test_a_file_of_rows_is_predicted_in_pieces_and_in_its_order(
    trained: Run, tmp_path: Path, vrgcn, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = stored_rows().sample(frac=1, random_state=0)
    rows.to_csv(tmp_path / "today.csv", index=False)
    monkeypatch.setattr("vrgcn.runs.predict_rows._AT_ONCE", 7)
    out = tmp_path / "next.csv"
    code, said, errors = vrgcn(
        "predict", trained.folder, "--rows", tmp_path / "today.csv", "--out", out
    )
    assert code == 0, errors
    assert "predictions of 20 rows written to" in said
    found = pyarrow.csv.read_csv(out).to_pandas()
    assert found["customer"].tolist() == rows["customer"].tolist()
    wanted = trained.predict(rows=stored_rows()).set_index("at")
    assert np.allclose(found["p_1"], wanted.loc[rows["at"], "p_1"], atol=1e-6)
    outputs = predict(trained, rows=tmp_path / "today.csv").outputs
    stored = trained.predict(nodes=torch.tensor(list(TEST)))[torch.tensor(rows.index.to_numpy())]
    torch.testing.assert_close(outputs, stored)


def test_an_unknown_entity_is_noted_and_sees_nothing(trained: Run, tmp_path: Path, vrgcn) -> None:
    rows = pd.DataFrame({"customer": ["c1", "c99"], "at": ["1970-03-01", "1970-03-01"]})
    rows.to_csv(tmp_path / "today.csv", index=False)
    code, said, errors = vrgcn(
        "predict", trained.folder, "--rows", tmp_path / "today.csv", "--out", tmp_path / "o.csv"
    )
    assert (
        "1 row names a customer in column 'customer' that the graph does not have" in said + errors
    )
    assert code == 0
    assert CUSTOMERS < 99


@pytest.mark.parametrize(
    "columns",
    [
        {"customer": ["c1"]},
        {"customer": ["c1", "c2"], "at": ["1970-03-01", None]},
        {"customer": ["c1"], "at": ["soon"]},
        {"customer": [], "at": []},
    ],
)
def test_rows_that_cannot_be_read_are_refused(trained: Run, columns: dict) -> None:
    with refused():
        trained.predict(rows=pd.DataFrame(columns))


def test_rows_exclude_nodes_and_need_a_graph_of_rows(trained: Run) -> None:
    with refused():
        predict(trained, nodes=[1], rows=stored_rows())
    with refused():
        trained.predict(dated_graph().replace(dated=None), rows=stored_rows())
