"""Columns of lists and of many categories stay sparse from the table to the model."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch

from vrgcn import Graph
from vrgcn.cli import main
from vrgcn.data.store import load_graph
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.data.tables.feature_files import FeatureFiles
from vrgcn.graph.sparse import in_blocks, is_dense, is_sparse, sparse_columns

pytestmark = pytest.mark.usefixtures("told_as_flags")
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
ROWS, TAGS = 300, 150


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def lists(tags: int = TAGS, each: int = 4, seed: int = 0) -> list[list[str]]:
    """Every tag in some row, and `each` tags in most rows."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(tags, each).tolist() for _ in range(ROWS)]
    for tag in range(tags):
        rows[tag % ROWS].append(tag)
    return [[f"t{tag:03}" for tag in row] for row in rows]


def matrix(rows: list[list[str]], names: list[str], column: str = "tags") -> torch.Tensor:
    """The features of lists: 0 and 1 by the names of features."""
    place = {name: i for i, name in enumerate(names)}
    dense = torch.zeros(len(rows), len(names))
    for i, row in enumerate(rows):
        for tag in row:
            dense[i, place[f"{column}={tag}"]] = 1
    return dense


def write(name: str = "n", **columns: object) -> None:
    table = {"id": np.arange(len(next(iter(columns.values())))), **columns}
    pq.write_table(pa.table(table), f"{name}.parquet", row_group_size=70)
    Path("e.csv").write_text("source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(ROWS - 1)))


def imported(out: str = "g", nodes: str = "n", **options):
    spec = ImportSpec(nodes=Path(f"{nodes}.parquet"), edges=Path("e.csv"), out=Path(out), **options)
    summary = import_tables(spec)
    return load_graph(out), summary


def test_lists_of_many_tags_become_one_sparse_matrix_with_all_tags():
    rows = lists()
    write(tags=rows)
    graph, summary = imported()
    assert is_sparse(graph.features)
    assert graph.names.features == [f"tags={name}" for name in (f"t{i:03}" for i in range(TAGS))]
    assert torch.equal(graph.features.to_dense(), matrix(rows, graph.names.features))
    assert "150   150 of them sparse" in str(summary)
    assert not list(Path("g").glob("features*.npy"))


def test_numbers_stay_dense_beside_sparse_tags(monkeypatch):
    rows, age = lists(), np.linspace(20, 60, ROWS)
    write(age=age, tags=rows, city=["Rome", "Oslo", "Bonn"] * (ROWS // 3))
    widths = []
    append = FeatureFiles.append
    monkeypatch.setattr(
        FeatureFiles,
        "append",
        lambda self, some: (widths.append(some.dense.shape[1]), append(self, some)),
    )
    graph, _ = imported()
    assert set(widths) == {4}  # tags are never written out as numbers
    assert in_blocks(graph.features)
    names = graph.names.features
    assert names[:4] == ["age", "city=Bonn", "city=Oslo", "city=Rome"]
    assert [(b.column, b.width, b.sparse) for b in graph.features.blocks] == [
        (0, 4, False),
        (4, TAGS, True),
    ]
    dense = graph.features.to_dense()
    assert torch.allclose(dense[:, 0].double(), torch.from_numpy(age))
    assert torch.equal(dense[:, 1:4].sum(1), torch.ones(ROWS))
    assert torch.equal(dense[:, 4:], matrix(rows, names)[:, 4:])


def test_many_categories_are_sparse_if_they_are_asked_for():
    cells = [f"c{i % 120:03}" for i in range(ROWS)]
    write(city=cells, x=np.arange(ROWS) / 7)
    graph, _ = imported("few")
    assert is_dense(graph.features)  # 50 of them and (other)
    assert graph.num_features == 52
    graph, _ = imported("all", max_categories=200)
    assert in_blocks(graph.features)
    assert torch.equal(
        graph.features.to_dense()[:, 1:],
        matrix([[cell] for cell in cells], graph.names.features, "city")[:, 1:],
    )


@pytest.mark.parametrize(("tags", "each"), [(100, 3), (120, 30)])
def test_few_tags_and_tags_that_most_rows_have_stay_dense(tags: int, each: int):
    rows = lists(tags, each)
    write(tags=rows)
    graph, summary = imported()
    assert is_dense(graph.features)
    assert torch.equal(graph.features, matrix(rows, graph.names.features))
    assert np.array_equal(np.load("g/features_0.npy"), graph.features.numpy())
    assert "sparse" not in str(summary)


def test_a_limit_holds_for_lists_too():
    rows = lists()
    write(tags=rows)
    graph, _ = imported(max_categories=120)
    assert graph.num_features == 121
    assert graph.names.features[-1] == "tags=(other)"
    counts = graph.features.to_dense().sum(0)
    kept = {name.removeprefix("tags=") for name in graph.names.features}
    assert counts[-1] == sum(any(tag not in kept for tag in row) for row in rows)


def test_missing_lists_have_a_feature_and_empty_ones_none():
    rows = [*lists()[:-2], [], None]
    write(tags=pa.array(rows, pa.list_(pa.string())))
    graph, _ = imported()
    assert is_sparse(graph.features)
    dense = graph.features.to_dense()
    assert graph.names.features[-1] == "tags=(missing)"
    assert dense[:, -1].nonzero().tolist() == [[ROWS - 1]]
    assert dense[-2].sum() == 0


def test_a_later_table_has_the_same_columns_in_the_same_layout():
    write(age=np.arange(ROWS) / 3, tags=lists())
    mine, _ = imported("mine")
    write("m", age=[1.0, 2.0], tags=[["t003", "new"], ["t149", "t003", "t003"]])
    Path("e.csv").write_text("source,target\n0,1\n")
    later, summary = imported("later", "m", like=Path("mine"))
    assert later.names.features == mine.names.features
    assert [b.sparse for b in later.features.blocks] == [False, True]
    found = later.features.to_dense()
    assert found.sum(0).nonzero()[:, 0].tolist() == [0, 4, 150]
    assert found[:, 4].tolist() == [1, 1]
    assert any("not there before count as none: 'new'" in text for text in summary.warnings)


def test_nodes_that_only_edges_name_have_no_tags_and_the_mean_of_numbers():
    rows = lists()
    write(age=np.arange(ROWS) / 3, tags=rows)
    Path("e.csv").write_text("source,target\n0,1\n1,9999\n")
    graph, _ = imported(unknown_nodes="add")
    assert graph.num_nodes == ROWS + 1
    assert graph.names.features[:2] == ["age", "(not in the nodes table)"]
    dense = graph.features.to_dense()
    assert dense[-1, 0] == pytest.approx(np.mean(np.arange(ROWS) / 3), rel=1e-6)
    assert dense[:, 1].nonzero().tolist() == [[ROWS]]
    assert dense[-1, 2:].sum() == 0
    assert torch.equal(dense[:-1, 2:], matrix(rows, graph.names.features)[:, 2:])


def test_frames_of_pandas_stay_sparse_too():
    pandas = pytest.importorskip("pandas")
    rows = lists()
    nodes = pandas.DataFrame({"id": range(ROWS), "age": range(ROWS), "tags": rows})
    edges = pandas.DataFrame({"source": [0, 1], "target": [1, 2]})
    graph = Graph.from_pandas(nodes, edges)
    sparse = sparse_columns(graph.features)
    assert sparse is not None
    assert torch.equal(sparse.to_torch().to_dense(), matrix(rows, graph.names.features)[:, 1:])


def test_a_table_of_numbers_and_tags_is_imported_trained_on_and_predicted():
    labels = np.array(["a", "b"])[np.arange(ROWS) % 2]
    rows = [[*row, f"of {label}"] for row, label in zip(lists(), labels, strict=True)]
    write(age=np.arange(ROWS) / 3, tags=rows, label=labels)
    command = "import --nodes n.parquet --edges e.csv --out g --ratio 0.6 0.2 0.2"
    main(command.split())
    train = "train --graph g --out run --epochs 5 --hidden 16 --batch-size 32 --model mlp"
    main([*train.split(), "--dropout", "0.2"])
    assert json.loads(Path("run/result.json").read_text())["test"] > 0.95
    main(["predict", "run", "--out", "p.csv"])
    main(["import", "--like", "g", "--nodes", "n.parquet", "--edges", "e.csv", "--out", "again"])
    main(["predict", "run", "--graph", "again", "--out", "q.csv"])
    assert Path("p.csv").read_bytes() == Path("q.csv").read_bytes()


def test_a_run_on_blocks_resumes_with_the_same_bits():
    labels = np.array(["a", "b"])[np.arange(ROWS) % 2]
    write(age=np.arange(ROWS) / 3, tags=lists(), label=labels)
    imported(ratio=(0.6, 0.2, 0.2))
    train = ["train", "--hidden", "8", "--batch-size", "32", "--no-baseline", "--estimator", "cvd"]
    main([*train, "--graph", "g", "--out", "whole", "--epochs", "3"])
    main([*train, "--graph", "g", "--out", "parts", "--epochs", "2"])
    main(["train", "--resume", "parts", "--epochs", "3"])
    whole, parts = (Path(run, "model.safetensors").read_bytes() for run in ("whole", "parts"))
    assert whole == parts


@pytest.mark.parametrize(
    ("name", "width"),
    [("amazon_computers", 767), ("blogcatalog_attributed", 8_189), ("facebook_large", 4_714)],
)
def test_real_tables_keep_every_tag(name: str, width: int):
    folder = Path(os.environ.get("VRGCN_DATA") or BESIDE) / name
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}; VRGCN_DATA says where")
    spec = ImportSpec(
        nodes=folder / "nodes.parquet",
        edges=folder / "edges.parquet",
        source="src",
        target="dst",
        features=("feat_idx",),
        out=Path("g"),
    )
    import_tables(spec)
    graph = load_graph("g")
    wanted = sp.load_npz(folder / "features_csr.npz").astype(bool)
    columns = [int(name.removeprefix("feat_idx=")) for name in graph.names.features]
    assert sorted(columns) == list(range(width))
    assert is_sparse(graph.features) == (name != "amazon_computers")  # a third is not 0 there
    found = sparse_columns(graph.features)
    if found is None:
        ours = sp.csr_array(graph.features.numpy().astype(bool))
    else:
        parts = np.ones(found.num_entries, bool), found.indices.numpy(), found.indptr.numpy()
        ours = sp.csr_array(parts, shape=(found.num_rows, width))
    assert (ours != wanted[:, columns]).nnz == 0


def test_kinds_have_sparse_and_dense_blocks_and_means_of_their_edges():
    rows = lists()
    write("items", tags=rows)  # sparse columns alone
    write("users", age=np.arange(ROWS) / 3, likes=lists(seed=1))
    lines = [f"{i},{(7 * i) % ROWS},{i % 5}" for i in range(ROWS)]
    Path("b.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    tables = {"nodes": ("user=users.parquet", "item=items.parquet")}
    spec = {"edges": ("user-bought-item=b.csv",), "out": Path("g")}
    import_tables(ImportSpec(**tables, **spec))
    graph = load_graph("g")
    assert [(b.row, b.column, b.width, b.sparse) for b in graph.features.blocks] == [
        (0, 0, 2, False),
        (0, 2, TAGS, True),
        (ROWS, TAGS + 2, 1, False),
        (ROWS, TAGS + 3, TAGS, True),
    ]
    names = graph.names.features
    assert names[:2] == ["user.age", "user.rev_bought.rating"]
    assert names[TAGS + 2 : TAGS + 4] == ["item.bought.rating", "item.tags=t000"]
    tags = graph.features.to_dense()[ROWS:, TAGS + 3 :]
    own = [name.removeprefix("item.") for name in names[TAGS + 3 :]]
    assert torch.equal(tags, matrix(rows, own))
