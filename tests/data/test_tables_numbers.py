"""Labels of imported tables that are numbers to be predicted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.messages import refused
from vrgcn.data.store import load_graph
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.data.tables.numbers import Numbers
from vrgcn.data.tables.splits import draw_split
from vrgcn.graph.validation import SPLITS

pytestmark = pytest.mark.usefixtures("told_as_flags")

HOUSES = (
    "id,rooms,price,split\na,1,250000.5,train\nb,2,1e5,val\nc,3,,\nd,4,NaN,\ne,5,?,\nf,6,-3,test\n"
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Errors name files as they were given."""
    monkeypatch.chdir(tmp_path)


def imported(nodes: str | pa.Table, **options):
    Path("e.csv").write_text("source,target\na,b\n")
    path = Path("n.csv" if isinstance(nodes, str) else "n.parquet")
    if isinstance(nodes, str):
        path.write_text(nodes)
    else:
        pq.write_table(nodes, path)
    options = {"label": ("price",), "task": "regression", **options}
    summary = import_tables(ImportSpec(nodes=path, edges=Path("e.csv"), out=Path("g"), **options))
    return load_graph("g"), summary


def test_a_column_of_numbers_is_the_label():
    graph, summary = imported(HOUSES, missing=("?",))
    assert (graph.task, graph.num_classes, graph.names.classes) == ("regression", 0, None)
    assert graph.labels[[0, 1, 5]].tolist() == [250000.5, 1e5, -3]
    assert graph.labelled.tolist() == [True, True, False, False, False, True]
    assert [graph.split(name).tolist() for name in SPLITS] == [[0], [1], [5]]
    assert graph.features[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    text = str(summary)
    assert "label 'price' (numbers), split 'split'" in text
    assert "numbers from -3 to 250,000, mean 116,666, deviation 102,742; 3 of the nodes" in text
    assert "split     train 1, val 1, test 1" in text
    assert (summary.numbers.least, summary.numbers.greatest) == (-3, 250000.5)
    assert (summary.classes, summary.multilabel, summary.unlabelled) == (None, False, 3)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.float64(), pa.string()])
def test_parquet_columns_of_any_kind_of_number(kind):
    prices = pa.array([3, None, 7]).cast(kind)
    table = pa.table({"id": ["a", "b", "c"], "x": [1, 2, 3], "price": prices})
    graph, _ = imported(table)
    assert graph.labels.nan_to_num(-1).tolist() == [3, -1, 7]


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float32(), pa.float64(), pa.decimal128(21, 2), pa.string()]
)
def test_the_users_words_for_missing_hold_for_every_kind_of_column(kind):
    prices = pa.array([3, -1, None]).cast(kind)
    table = pa.table({"id": ["a", "b", "c"], "x": [1, 2, 3], "price": prices})
    graph, _ = imported(table, missing=("-1", "?"))
    assert graph.labelled.tolist() == [True, False, False]
    assert graph.labels[0] == 3


def test_numbers_keep_64_bits():
    graph, _ = imported("id,x,price\na,1,1700000000.25\nb,1,1700000000.5\n")
    assert graph.labels.tolist() == [1700000000.25, 1700000000.5]


def test_what_is_no_number_is_told_with_its_row():
    text = "id,x,price\na,1,3\nb,1,cheap\nc,1,\nd,1,inf\n"
    with refused() as caught:
        imported(text)
    assert str(caught.value).splitlines() == [
        "n.csv: column 'price' is a label that is no number, in 1 row: 'cheap' in row 2 (line 3); "
        "for classes leave --task regression out",
        "n.csv: column 'price' is an infinite label, in 1 row: 'inf' in row 4 (line 5); "
        "leave it empty where it is unknown",
    ]
    assert not Path("g").exists()


def test_a_ratio_splits_numbers_evenly_from_the_smallest_to_the_largest():
    values = np.random.default_rng(0).lognormal(size=1000)
    values[::10] = np.nan
    labels = Numbers(values)
    split = draw_split(labels, (0.6, 0.2, 0.2), seed=0)
    assert [int((split == code).sum()) for code in range(3)] == [540, 180, 180]
    assert (split[::10] == -1).all()
    order = np.argsort(values)[:900]
    for tenth in np.array_split(split[order], 10):
        assert np.bincount(tenth).tolist() == [54, 18, 18]
    other = draw_split(labels, (0.6, 0.2, 0.2), seed=1)
    assert 0.35 < (split == other)[order].mean() < 0.55  # 0.36 + 0.04 + 0.04 by chance


@pytest.mark.parametrize("count", [0, 1, 7, 23])
def test_a_ratio_splits_few_numbers_too(count):
    values = np.array([np.nan, *range(count)], np.float64)
    split = draw_split(Numbers(values), (0.5, 0.25, 0.25), seed=0)
    sizes = [int((split == code).sum()) for code in range(3)]
    assert split[0] == -1
    assert sum(sizes) == count
    assert all(
        abs(n - count * share) <= 1 for n, share in zip(sizes, (0.5, 0.25, 0.25), strict=True)
    )


def test_how_numbers_were_split_is_said():
    rows = "".join(f"{c},1,{i / 7}\n" for i, c in enumerate("abcdefghij"))
    graph, summary = imported("id,x,price\n" + rows, ratio=(0.6, 0.2, 0.2))
    assert [len(graph.split(name)) for name in SPLITS] == [6, 2, 2]
    assert "split 0.6 0.2 0.2 evenly over the numbers" in str(summary)
    assert not [warning for warning in summary.warnings if "label" in warning]


def test_numbers_that_teach_nothing_are_told():
    _, summary = imported("id,x,price\na,1,5\nb,2,5\n")
    assert "all labels are the same number, 5" in summary.warnings
    assert any("no nodes are set apart for training" in warning for warning in summary.warnings)


def test_no_known_number_is_told():
    _, summary = imported("id,x,price\na,1,\nb,2,\n")
    assert "no node has a label" in summary.warnings


def test_a_named_task_of_classes_is_not_doubted():
    rows = "".join(f"{c},1,{i + 0.25}\n" for i, c in enumerate("abcdefghijklmnop"))
    graph, summary = imported("id,x,price\n" + rows, task="classes")
    assert (graph.task, graph.num_classes) == ("classes", 16)
    assert not [warning for warning in summary.warnings if "continuous" in warning]


def test_one_column_of_0_and_1_may_be_one_of_several_classes():
    graph, _ = imported("id,x,price\na,1,1\nb,2,0\nc,2,\n", task="multilabel")
    assert graph.labels.tolist() == [[1], [0], [-1]]
    assert (graph.task, graph.names.classes) == ("multilabel", ["price"])


REFUSED = {
    "two columns": {"label": ("price", "x")},
    "two columns of classes": {"label": ("price", "x"), "task": "classes"},
    "delimiter": {"label_delimiter": "|"},
    "no label": {"label": ()},
    "unknown": {"task": "ranking"},
}


@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
def test_a_task_that_the_columns_cannot_serve_is_refused(options):
    with refused():
        imported("id,x,price\na,1,5\nb,2,6\n", **options)


def test_a_list_is_no_number():
    table = pa.table({"id": ["a", "b"], "x": [1, 2], "price": [[1.0], [2.0]]})
    with refused():
        imported(table)


def test_a_task_needs_a_file_of_nodes():
    with refused():
        ImportSpec(edges=Path("e.csv"), out=Path("g"), task="regression")
