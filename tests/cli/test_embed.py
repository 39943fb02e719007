"""`vrgcn embed`, on a run that `vrgcn train` wrote."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from vrgcn import embeddings, load_model
from vrgcn.data.store import load_graph


def expected(tmp_path, layer: int = -2) -> np.ndarray:
    return embeddings(load_model("run"), load_graph(tmp_path / "graph"), layer).numpy()


def test_embeddings_come_under_the_users_ids(vrgcn, run, tmp_path):
    code, out, err = vrgcn("embed", "run", "--out", "e.parquet")
    assert code == 0, err
    table = pa.parquet.read_table(tmp_path / "e.parquet")
    width = expected(tmp_path).shape[1]
    assert f"120 nodes, {width} numbers each" in out
    assert table.column_names == ["id", *(f"e_{i}" for i in range(width))]
    assert table["id"].to_pylist() == [f"n-{i}" for i in range(120)]
    found = np.stack([table[f"e_{i}"].to_numpy() for i in range(width)], axis=1)
    assert np.allclose(found, expected(tmp_path), atol=1e-5)


def test_a_layer_of_chosen_nodes_in_a_csv_and_an_array(vrgcn, run, tmp_path):
    (tmp_path / "ids.txt").write_text("n-7\nn-3\n")
    flags = ("--nodes", "ids.txt", "--layer", -1, "--memory", "disk")
    assert vrgcn("embed", "run", "--out", "e.csv", *flags)[0] == 0
    assert vrgcn("embed", "run", "--out", "e.npy", *flags)[0] == 0
    array = np.load(tmp_path / "e.npy")
    assert array.dtype == np.float32
    assert np.allclose(array, expected(tmp_path, -1)[[7, 3]], atol=1e-5)
    table = pa.csv.read_csv(tmp_path / "e.csv")
    assert table["id"].to_pylist() == ["n-7", "n-3"]
    assert np.allclose(table["e_0"].to_numpy(), array[:, 0], atol=1e-5)


def test_what_cannot_be_is_refused_and_nothing_written(vrgcn, run, tmp_path):
    code, _, err = vrgcn("embed", "run", "--out", "e.npy", "--layer", 9)
    assert code == 1
    assert "layer 9 is none of the model's" in err
    code, _, err = vrgcn("embed", "run", "--out", "e.txt")
    assert code != 0
    assert "must end in one of .parquet, .csv, .npy" in err
    (tmp_path / "e.npy").write_text("mine")
    code, _, err = vrgcn("embed", "run", "--out", "e.npy")
    assert code != 0
    assert "exists already" in err
    assert (tmp_path / "e.npy").read_text() == "mine"
