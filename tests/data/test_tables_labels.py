"""Labels and splits of imported tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrgcn.data.store import load_graph
from vrgcn.data.tables import ImportSpec, import_tables, labels
from vrgcn.data.tables.labels import ClassLabels
from vrgcn.data.tables.splits import draw_split, split_sizes
from vrgcn.graph.validation import SPLITS

pytestmark = pytest.mark.usefixtures("told_as_flags")


def imported(folder: Path, nodes: str | pa.Table, **options):
    (folder / "e.csv").write_text("source,target\na,b\n")
    path = folder / ("n.csv" if isinstance(nodes, str) else "n.parquet")
    if isinstance(nodes, str):
        path.write_text(nodes)
    else:
        pq.write_table(nodes, path)
    summary = import_tables(
        ImportSpec(nodes=path, edges=folder / "e.csv", out=folder / "g", **options)
    )
    return load_graph(folder / "g"), summary


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        (["10", "9", "-2", "1.5"], ["-2", "1.5", "9", "10"]),
        (["b", "10", "9", "a"], ["10", "9", "a", "b"]),
        (["nan", "2", "10", "1"], ["1", "10", "2", "nan"]),
    ],
)
def test_classes_are_in_natural_order_under_their_own_names(tmp_path, cells, classes):
    text = "id,x,label\n" + "".join(f"{c},1,{v}\n" for c, v in zip("abcd", cells, strict=True))
    graph, _ = imported(tmp_path, text)
    assert graph.names.classes == classes
    assert [graph.names.classes[k] for k in graph.labels.tolist()] == cells


def test_empty_labels_and_the_users_words_for_missing_are_unknown(tmp_path):
    graph, summary = imported(tmp_path, "id,x,label\na,1,\nb,2,?\nc,3,y\nd,4,-1\n",
                             missing=("?", "-1"))  # fmt: skip
    assert graph.labels.tolist() == [-1, -1, 0, -1]
    assert summary.unlabelled == 3
    assert summary.classes == {"y": 1}


def test_cells_of_spaces_are_unknown(tmp_path):
    graph, _ = imported(tmp_path, "id,x,label\na,1, \nb,2,\t\nc,3, cat\nd,4,dog\n")
    assert graph.names.classes == [" cat", "dog"]
    assert graph.labels.tolist() == [-1, -1, 0, 1]


def test_numbers_of_parquet_are_classes_and_nan_is_unknown(tmp_path):
    table = pa.table({"id": ["a", "b", "c", "d"], "x": [1, 2, 3, 4],
                      "label": pa.array([10.0, float("nan"), None, 9.0])})  # fmt: skip
    graph, _ = imported(tmp_path, table)
    assert graph.names.classes == ["9", "10"]
    assert graph.labels.tolist() == [1, -1, -1, 0]


def test_a_delimited_column_gives_several_classes(tmp_path, monkeypatch):
    monkeypatch.setattr(labels, "_CHUNK", 4)
    text = "id,x,label\na,1,red | blue\nb,2,\nc,3,|\nd,4,blue|blue\n"
    graph, summary = imported(tmp_path, text, label_delimiter="|")
    assert graph.names.classes == ["blue", "red"]
    assert graph.labels.tolist() == [[1, 1], [-1, -1], [0, 0], [1, 0]]
    assert summary.classes == {"blue": 2, "red": 1}
    assert summary.unlabelled == 1


@pytest.mark.parametrize("values", [[["2", "1"], None, [], ["2"]], [[2, 1], None, [], [2]]])
def test_a_column_of_lists_gives_several_classes(tmp_path, values):
    graph, _ = imported(tmp_path, pa.table({"id": list("abcd"), "x": [1, 2, 3, 4],
                                            "label": values}))  # fmt: skip
    assert graph.names.classes == ["1", "2"]
    assert graph.labels.tolist() == [[1, 1], [-1, -1], [0, 0], [0, 1]]


def test_a_column_for_each_class_gives_several_classes(tmp_path):
    text = "id,x,is_b,is_a\na,1,1,0\nb,2,,\nc,3,0,0\nd,4,true,1.0\n"
    graph, _ = imported(tmp_path, text, label=("is_*",))
    assert graph.names.classes == ["is_b", "is_a"]
    assert graph.labels.tolist() == [[1, 0], [-1, -1], [0, 0], [1, 1]]


def test_columns_of_parquet_may_have_a_number_for_unknown(tmp_path):
    columns = {"id": ["a", "b"], "x": [1, 2], "is_b": [-1, 1], "is_a": [-1, 0]}
    graph, _ = imported(tmp_path, pa.table(columns), label=("is_*",), missing=("-1",))
    assert graph.labels.tolist() == [[-1, -1], [1, 0]]


@pytest.mark.parametrize(("delimiter", "labels_"), [(None, [-1, -1]), ("|", [[], []])])
def test_no_label_at_all_is_reported(tmp_path, delimiter, labels_):
    text = "id,x,label\na,1,\nb,2,\n"
    graph, summary = imported(tmp_path, text, label_delimiter=delimiter)
    assert graph.labels.tolist() == labels_
    assert "no node has a label" in summary.warnings


def test_nodes_that_all_have_no_class_are_in_no_split(tmp_path):
    empty = pa.array([[], [], None], pa.list_(pa.string()))
    table = {"id": ["a", "b", "c"], "x": [1, 2, 3], "label": empty, "split": ["train", "val", ""]}
    graph, summary = imported(tmp_path, pa.table(table))
    assert "no node has a label" in summary.warnings
    assert graph.labelled.tolist() == [False, False, False]
    assert [len(graph.split(name)) for name in SPLITS] == [0, 0, 0]


def test_splits_are_read_in_every_spelling(tmp_path):
    words = ["train", "Val", " valid", "VALIDATION", "test ", "", "none", "Training", "dev"]
    words.append("testing")
    rows = "".join(f"{c},1,y,{w}\n" for c, w in zip("abcdefghij", words, strict=True))
    graph, _ = imported(tmp_path, "id,x,label,split\n" + rows, missing=("none",))
    assert [graph.split(name).tolist() for name in SPLITS] == [[0, 7], [1, 2, 3, 8], [4, 9]]


def test_a_ratio_splits_every_class_in_the_same_way(tmp_path):
    random = np.random.default_rng(0)
    cells = random.choice(["a", "b", "c", ""], 1000, p=[0.6, 0.3, 0.05, 0.05])
    text = "id,x,label\na,1,a\nb,1,b\n" + "".join(f"{i},1,{c}\n" for i, c in enumerate(cells))
    graph, summary = imported(tmp_path, text, ratio=(0.6, 0.2, 0.2), split_seed=3)
    sizes = np.bincount(graph.labels[graph.labels >= 0])
    for name, share in zip(SPLITS, (0.6, 0.2, 0.2), strict=True):
        counts = np.bincount(graph.labels[graph.split(name)], minlength=3)
        assert (abs(counts - share * sizes) <= 1).all()
    assert sum(summary.splits.values()) == sizes.sum()
    assert "0.6 0.2 0.2 class by class" in str(summary)


def one_class(codes: np.ndarray, classes: int) -> ClassLabels:
    known = codes >= 0
    names = [str(i) for i in range(classes)]
    return ClassLabels(names, known, np.flatnonzero(known), codes[known], several=False)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-1, 3), min_size=1, max_size=60),
    st.tuples(st.integers(1, 6), st.integers(0, 3), st.integers(0, 3)),
    st.integers(0, 5),
)
def test_a_drawn_split_leaves_no_class_untrained_and_takes_labelled_nodes_alone(codes, parts, seed):
    labels_ = one_class(np.array(codes), 4)
    ratio = tuple(part / 12 for part in parts)
    split = draw_split(labels_, ratio, seed)
    assert (split[~labels_.known] == -1).all()
    classes = set(codes) - {-1}
    for label in classes:
        assert (split[np.array(codes) == label] == 0).any()
    wanted = [place for place in (1, 2) if ratio[place] > 0]
    if labels_.known.sum() >= len(classes) + len(wanted):
        assert set(wanted) <= set(split.tolist())
    assert not {place for place in (1, 2) if ratio[place] == 0} & set(split.tolist())
    assert (draw_split(labels_, ratio, seed) == split).all()


@pytest.mark.parametrize(
    ("sizes", "ratio", "counts"),
    [
        ([3, 3], (0.6, 0.2, 0.2), [[2, 1, 0], [2, 0, 1]]),
        ([3], (0.6, 0.2, 0.2), [[1, 1, 1]]),
        ([2], (0.6, 0.2, 0.2), [[1, 1, 0]]),
        ([1, 1, 1], (0.6, 0.2, 0.2), [[1, 0, 0]] * 3),
        ([0, 100], (0.29, 0.31, 0.4), [[0, 0, 0], [29, 31, 40]]),
        ([10, 10], (0.5, 0.25, 0.25), [[5, 3, 2], [5, 2, 3]]),
        ([10], (0.1, 0.01, 0.0), [[1, 1, 0]]),
    ],
)
def test_small_classes_share_what_rounding_leaves(sizes, ratio, counts):
    assert split_sizes(np.array(sizes), ratio).tolist() == counts


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(20, 90), min_size=1, max_size=9), st.integers(1, 5), st.integers(1, 5))
def test_every_class_is_split_in_the_ratio_and_all_together_are(sizes, val, test):
    ratio = (1 - (val + test) / 12, val / 12, test / 12)
    counts = split_sizes(np.array(sizes), ratio)
    share = np.outer(sizes, ratio)
    assert (counts.sum(1) == sizes).all()
    assert (abs(counts - share) < 1).all()
    assert (abs((counts - share).sum(0)) <= 1).all()


def test_labels_that_look_like_measurements_are_told(tmp_path):
    rows = "".join(f"{c},1,{i + 0.25}\n" for i, c in enumerate("abcdefghijklmnop"))
    _, summary = imported(tmp_path, "id,x,label\n" + rows)
    message = (
        "the label looks continuous: 16 different numbers among 16 labels, each a class now; to "
        "predict the number, import it with --task regression"
    )
    assert message in summary.warnings


@pytest.mark.parametrize("label", ["{i}", "v{i}.5"])
def test_whole_numbers_and_names_do_not_look_like_measurements(tmp_path, label):
    rows = "".join(f"{c},1,{label.format(i=i)}\n" for i, c in enumerate("abcdefghijklmnop"))
    _, summary = imported(tmp_path, "id,x,label\n" + rows)
    assert not [warning for warning in summary.warnings if "continuous" in warning]


def test_one_class_is_counted_as_one(tmp_path):
    _, summary = imported(tmp_path, "id,x,label\na,1,u\nb,2,u\n")
    assert "\n1 class; 0 of the nodes unlabelled\n" in str(summary)


def test_another_seed_draws_another_split():
    labels_ = one_class(np.zeros(1000, np.int64), 1)
    one, other = (draw_split(labels_, (0.5, 0.25, 0.25), seed) for seed in (0, 1))
    assert 0.3 < (one == other).mean() < 0.5  # 0.25 + 0.0625 + 0.0625 = 0.375 by chance


def test_nodes_of_several_classes_are_split_at_random_and_that_is_said(tmp_path):
    text = "id,x,label\n" + "".join(f"{c},1,{c}|y\n" for c in "abcdefghij")
    graph, summary = imported(tmp_path, text, label_delimiter="|", ratio=(0.5, 0.3, 0.2))
    assert [len(graph.split(name)) for name in SPLITS] == [5, 3, 2]
    assert "at random (several classes per node)" in str(summary)


def test_a_ratio_wins_over_a_split_column_that_was_not_asked_for(tmp_path):
    text = "id,x,label,split\na,1,y,test\nb,2,y,test\n"
    graph, _ = imported(tmp_path, text, ratio=(1.0, 0.0, 0.0))
    assert graph.train.tolist() == [0, 1]


def test_classes_that_differ_in_what_nobody_sees_are_told(tmp_path):
    _, summary = imported(tmp_path, "id,x,label\na,1,Art\nb,2,art \nc,3,math\n")
    assert (
        "the classes 'Art' and 'art ' differ only in capital letters or spaces; if they are one, "
        "spell them alike"
    ) in summary.warnings


def test_a_node_without_a_label_is_left_out_of_its_split_and_told(tmp_path):
    nodes = "id,x,label,split\na,1,u,train\nb,2,,val\nc,3,,\nd,4,v,test\ne,5,,train\n"
    graph, summary = imported(tmp_path, nodes)
    assert [graph.train.tolist(), graph.val.tolist(), graph.test.tolist()] == [[0], [], [3]]
    [warning] = [w for w in summary.warnings if "without a label" in w]
    assert warning.endswith(
        "n.csv: column 'split' puts a node without a label into a split, in 2 rows: row 2 (line "
        "3), row 5 (line 6); it is left out of it"
    )
