"""Several tables from the command line: import, info, train, predict, embed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from vrgcn import embeddings, load_graph, load_model, predictions

Run = Callable[..., tuple[int, str, str]]
IMPORT = (
    *("import", "--nodes", "item=items.csv", "user=users.csv"),
    *("--edges", "user-bought-item=orders.csv", "user-follows-user=follows.csv"),
    *("--label", "user.churned", "--ratio", 0.5, 0.25, 0.25, "--out", "store"),
)


@pytest.fixture
def tables(tmp_path: Path, vrgcn: Run) -> Path:
    rng = np.random.default_rng(0)
    users = [f"{i},{rng.integers(20, 60)},{'yes' if i % 3 else 'no'}" for i in range(1, 25)]
    items = [f"{i},{rng.random():.3f}" for i in range(1, 9)]
    orders = [f"{rng.integers(1, 25)},{rng.integers(1, 9)}" for _ in range(60)]
    follows = [f"{rng.integers(1, 25)},{rng.integers(1, 25)}" for _ in range(40)]
    for name, header, rows in (
        ("users", "id,age,churned", users),
        ("items", "id,price", items),
        ("orders", "user,item", orders),
        ("follows", "source,target", follows),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *rows, ""]))
    return tmp_path


def test_predictions_are_those_of_the_labelled_kind_under_its_own_ids(
    vrgcn: Run, tables: Path
) -> None:
    code, out, err = vrgcn(*IMPORT)
    assert code == 0, err
    assert "user.age" in out
    code, out, err = vrgcn("info", "store", "--verify")
    assert code == 0, err
    assert "2 relations, each with its reverse" in out
    assert "user-follows-user" in out
    flags = ("--epochs", 2, "--no-baseline", "--out", "run")
    assert vrgcn("train", "store", *flags)[0] == 0
    code, out, err = vrgcn("predict", "run", "--out", "p.parquet")
    assert code == 0, err
    assert "24 nodes" in out
    table = pyarrow.parquet.read_table("p.parquet")
    assert table.column_names == ["id", "label", "p_no", "p_yes"]
    assert table["id"].to_pylist() == list(range(1, 25))
    graph, model = load_graph("store"), load_model("run/model.safetensors")
    wanted = predictions(model, graph).to_arrow()
    assert table["p_yes"].to_pylist() == pytest.approx(wanted["p_yes"].to_pylist(), abs=1e-6)
    # The users' numbers begin after those of the items; scores are those of the users.
    right = [graph.names.classes[i] for i in graph.labels[graph.test].tolist()]
    places = (graph.test - graph.kinds.range("user").start).tolist()
    found = [table["label"].to_pylist()[place] for place in places]
    share = sum(map(str.__eq__, right, found)) / len(right)
    assert json.loads(Path("run/result.json").read_text())["test"] == pytest.approx(share)
    code, out, err = vrgcn("evaluate", "run")
    assert code == 0, err
    scores = json.loads(Path("run/evaluation-test.json").read_text())["scores"]
    assert scores["test"] == pytest.approx(share)
    code, out, err = vrgcn("report", "run", "--out", "report.html")
    assert code == 0, err
    assert "no scores by class" not in out + err


def test_embeddings_are_those_of_one_kind_or_of_all(vrgcn: Run, tables: Path) -> None:
    vrgcn(*IMPORT)
    vrgcn("train", "store", "--epochs", 1, "--no-baseline", "--out", "run")
    assert vrgcn("embed", "run", "--out", "all.csv")[0] == 0
    every = pyarrow.csv.read_csv("all.csv")
    assert every.column_names[:2] == ["kind", "id"]
    assert every["kind"].to_pylist() == ["item"] * 8 + ["user"] * 24
    assert every["id"].to_pylist() == [*range(1, 9), *range(1, 25)]
    assert vrgcn("embed", "run", "--of", "item", "--out", "items.parquet")[0] == 0
    items = pyarrow.parquet.read_table("items.parquet")
    assert items["id"].to_pylist() == list(range(1, 9))
    graph, model = load_graph("store"), load_model("run/model.safetensors")
    wanted = embeddings(model, graph, kind="item")
    assert items["e_3"].to_pylist() == pytest.approx(wanted[:, 3].tolist(), abs=1e-6)


def test_nodes_are_chosen_by_kind_and_id(vrgcn: Run, tables: Path) -> None:
    vrgcn(*IMPORT)
    vrgcn("train", "store", "--epochs", 1, "--no-baseline", "--out", "run")
    Path("ids.txt").write_text("5\n3\n")
    assert vrgcn("predict", "run", "--nodes", "ids.txt", "--out", "p.csv")[0] == 0
    assert vrgcn("embed", "run", "--of", "item", "--nodes", "ids.txt", "--out", "e.csv")[0] == 0
    users, items = pyarrow.csv.read_csv("p.csv"), pyarrow.csv.read_csv("e.csv")
    assert users["id"].to_pylist() == items["id"].to_pylist() == [5, 3]
    graph, model = load_graph("store"), load_model("run/model.safetensors")
    wanted = predictions(model, graph, [4, 2]).to_arrow()  # the numbers of users 5 and 3
    assert users["p_yes"].to_pylist() == pytest.approx(wanted["p_yes"].to_pylist(), abs=1e-5)
    Path("ids.txt").write_text("12\n")  # a user, and no item
    code, _, err = vrgcn("embed", "run", "--of", "item", "--nodes", "ids.txt", "--out", "f.csv")
    assert code == 1
    assert "1 nodes are not in the graph of kind 'item', first: '12'" in err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--of", "itm"), "--of: there is no kind 'itm'; there are item, user; did you mean"),
        (("--of", "all", "--nodes", "users.csv"), "--nodes: ids belong to a kind; say which"),
    ],
)
def test_a_wrong_kind_is_told(flags: tuple[str, ...], told: str, vrgcn: Run, tables: Path) -> None:
    vrgcn(*IMPORT)
    vrgcn("train", "store", "--epochs", 1, "--no-baseline", "--out", "run")
    code, _, err = vrgcn("predict", "run", *flags, "--out", "p.csv")
    assert code == 1
    assert told in err
    assert not Path("p.csv").exists()


def test_a_file_of_a_kind_that_is_missing_is_told_before_anything_is_loaded(
    vrgcn: Run, tables: Path
) -> None:
    (tables / "items.csv").unlink()
    code, _, err = vrgcn(*IMPORT)
    assert code == 1
    assert "--nodes item=: there is no file items.csv" in err


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_of_a_generated_store_are_imported_to_the_same_graph(
    suffix: str, tmp_path: Path, vrgcn: Run
) -> None:
    flags = ("--nodes", 1000, "--degree", 20, "--features", 6, "--classes", 3, "--community", 100)
    code, out, err = vrgcn("generate", "--kinds", *flags, "--tables", suffix, "--out", "tables")
    assert code == 0, err
    command = out.splitlines()[-1].replace("GRAPH", "made")
    code, _, err = vrgcn(*shlex.split(command)[1:])
    assert code == 0, err
    assert vrgcn("generate", "--kinds", *flags, "--out", "graph")[0] == 0
    made, graph = load_graph("made"), load_graph("graph")
    assert made.kinds == graph.kinds
    assert torch.allclose(made.features.to_dense(), graph.features.to_dense(), atol=1e-5)
    for name, relation in graph.relations.items():
        assert torch.equal(made.relations[name].adjacency.indices, relation.adjacency.indices)
    assert made.labels is not None
    assert graph.labels is not None
    assert torch.equal(made.labels, graph.labels)
    assert torch.equal(made.train, graph.train)


@pytest.mark.parametrize("flag", ["--directed", "--undirected"])
def test_relations_have_their_direction(flag: str, vrgcn: Run, tables: Path) -> None:
    code, _, err = vrgcn(*IMPORT, flag)
    assert code == 2
    assert f"{flag}: a relation" in err
