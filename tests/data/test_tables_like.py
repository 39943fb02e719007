"""Tomorrow's tables become a graph that yesterday's model can predict on."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.messages import refused
from vrgcn.data.store import load_graph
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.graph.validation import SPLITS

pytestmark = pytest.mark.usefixtures("told_as_flags")

NODES = (
    "who;age;city;born;tags;bio;kind;split\n"
    "a;30;Rome;2001-02-03;x|y;the cat sat on a mat today;good;train\n"
    "b;;Oslo;1999-02-03;y;a dog ran over the mat today;bad;val\n"
    "c;50;Rome;2000-02-03;x|y;my cat and my dog sat down;good;test\n"
    "d;40;Oslo;2000-02-04;x;the bird sat on a cat today;;\n"
)
EDGES = "from,to,since\na,b,1\nb,c,2\nc,d,3\n"
OPTIONS = {
    "id": "who",
    "label": ("kind",),
    "source": "from",
    "target": "to",
    "column": ("bio=text:2",),
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def imported(out: str, nodes: str | None, edges: str = EDGES, **options):
    Path(f"{out}-n.csv").write_text(nodes or "")
    Path(f"{out}-e.csv").write_text(edges)
    path = None if nodes is None else Path(f"{out}-n.csv")
    summary = import_tables(
        ImportSpec(nodes=path, edges=Path(f"{out}-e.csv"), out=Path(out), **options)
    )
    return load_graph(out), summary


def like(nodes: str | None, edges: str = EDGES, **options):
    return imported("tomorrow", nodes, edges, like=Path("mine"), **options)


def test_the_same_tables_become_the_same_graph_without_a_flag():
    mine, _ = imported("mine", NODES, **OPTIONS)
    again, _ = like(NODES)
    assert again.names.features == mine.names.features
    assert again.features.tolist() == mine.features.tolist()
    assert again.labels.tolist() == mine.labels.tolist()
    assert again.val.tolist() == mine.val.tolist()
    assert again.edge_index().tolist() == mine.edge_index().tolist()


def test_columns_may_come_in_another_order_and_with_others_and_without_labels():
    mine, _ = imported("mine", NODES, **OPTIONS)
    table = [line.split(";") for line in NODES.splitlines()]
    shuffled = [[row[i] for i in (5, 0, 4, 3, 2, 1, 7)] + ["9"] for row in table]
    shuffled[0][-1] = "new"
    graph, summary = like("\n".join(map(";".join, shuffled)) + "\n")
    assert graph.features.tolist() == mine.features.tolist()
    assert graph.names.classes == ["bad", "good"]
    assert graph.num_classes == 2
    assert graph.labels is None
    assert len(graph.train) == 0
    assert "ignored column: 'new'" in str(summary)
    assert not summary.warnings


def test_words_for_unknown_are_no_mistake_where_tomorrow_has_no_labels():
    imported("mine", NODES, **OPTIONS, missing=("?",))
    rows = [line.rsplit(";", 2)[0] for line in NODES.splitlines()]
    graph, _ = like("\n".join(rows) + "\n")
    assert graph.labels is None


def test_values_are_encoded_as_yesterday_whatever_is_new():
    mine, _ = imported("mine", NODES, **OPTIONS)
    rows = (
        "who;age;city;born;tags;bio;kind;split\nz;;Lima;;y|q;zebra;ugly;train\ny;7;;;;;bad;test\n"
    )
    graph, summary = like(rows, "from,to\nz,y\n")
    names = mine.names.features
    assert graph.names.features == names
    row = dict(zip(names, graph.features[0].tolist(), strict=True))
    assert row["age"] == 40  # yesterday's mean
    assert row["age.missing"] == 1
    assert [row["city=Oslo"], row["city=Rome"]] == [0, 0]
    assert [row["tags=x"], row["tags=y"]] == [0, 1]
    place = names.index("born.seconds")
    assert row["born.seconds"] == pytest.approx(mine.features[:, place].mean().item(), rel=1e-6)
    assert [row["bio~0"], row["bio~1"]] == [0, 0]
    assert graph.labels.tolist() == [-1, 0]
    assert graph.names.classes == ["bad", "good"]
    assert (graph.train.tolist(), graph.test.tolist()) == ([], [1])
    text = str(summary)
    assert "column 'kind': 1 label of classes that the graph of --like does not have" in text
    assert "column 'city': 1 value of categories that were not there before count as none" in text
    assert "column 'born': 2 missing values, of which there were none before, filled" in text


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string(), pa.date32()])
def test_dates_are_read_alike_whatever_type_tomorrows_column_has(kind):
    nodes = "who;year\na;2001\nb;1999\nc;2000\nd;2024\n"
    mine, _ = imported("mine", nodes, "from,to\na,b\n", column=("year=date:%Y",))
    years = pa.array([2001, 1999, 2000, 2024])
    if pa.types.is_date(kind):
        years = pa.array([date(year, 1, 1) for year in years.to_pylist()])
    pq.write_table(pa.table({"who": ["a", "b", "c", "d"], "year": years.cast(kind)}), "n.parquet")
    Path("e.csv").write_text("from,to\na,b\n")
    spec = ImportSpec(
        nodes=Path("n.parquet"), edges=Path("e.csv"), like=Path("mine"), out=Path("tomorrow")
    )
    import_tables(spec)
    assert load_graph("tomorrow").features.tolist() == mine.features.tolist()


def test_columns_of_other_types_than_can_be_read_are_told():
    imported("mine", "who;x;city\na;1;Rome\nb;2;Oslo\nc;3;Rome\nd;4;Oslo\n")
    times = pa.array([1, 2], pa.timestamp("us"))
    pq.write_table(pa.table({"who": ["a", "b"], "x": times, "city": [["R"], ["O"]]}), "n.parquet")
    spec = ImportSpec(
        nodes=Path("n.parquet"), edges=Path("mine-e.csv"), like=Path("mine"), out=Path("tomorrow")
    )
    with refused() as caught:
        import_tables(spec)
    assert str(caught.value).splitlines() == [
        "n.parquet: column 'x' holds timestamp[us], which cannot be read as number, as the "
        "features of mine were made of it",
        "n.parquet: column 'city' holds list<element: string>, which cannot be read as category, "
        "as the features of mine were made of it",
    ]


def test_a_number_that_is_no_date_is_told_where_dates_were():
    imported("mine", "who;born\na;2001-01-01\nb;1999-01-01\n", "from,to\na,b\n")
    table = pa.table({"who": ["a", "b"], "born": [20010101, 7]})
    pq.write_table(table, "n.parquet")
    spec = ImportSpec(
        nodes=Path("n.parquet"), edges=Path("mine-e.csv"), like=Path("mine"), out=Path("tomorrow")
    )
    with refused():
        import_tables(spec)


@pytest.mark.parametrize(("column", "cells"), [("city", ("Rome", "Oslo")), ("tags", ("x|y", "y"))])
def test_a_gap_among_categories_that_had_none_is_told(column, cells):
    rows = "".join(f"{who};{cells[i % 2]}\n" for i, who in enumerate("abcd"))
    mine, _ = imported("mine", f"who;{column}\n{rows}")
    again, summary = like(f"who;{column}\n{rows}".replace(f"b;{cells[1]}", "b;"))
    assert again.features[1].tolist() == [0, 0]
    assert again.features[2:].tolist() == mine.features[2:].tolist()
    assert summary.warnings == [
        f"tomorrow-n.csv: column {column!r}: 1 missing value, of which there were none before, "
        "counts as no category"
    ]


def test_rare_categories_of_tomorrow_are_others_where_there_were_others():
    nodes = "id,c\n" + "".join(f"{i},{c}\n" for i, c in enumerate("aaabbbcd"))
    imported("mine", nodes, "source,target\n0,1\n", max_categories=2)
    graph, summary = like("id,c\n0,zzz\n1,a\n", "source,target\n0,1\n")
    assert graph.names.features == ["c=a", "c=b", "c=(other)"]
    assert graph.features.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert not summary.warnings


def test_nodes_that_tomorrows_table_lacks_get_yesterdays_means():
    edges = EDGES + "d,new,4\n"
    mine, _ = imported("mine", NODES, edges, unknown_nodes="add", **OPTIONS)
    assert mine.names.features[-1] == "(not in the nodes table)"
    other = "who;age;city;born;tags;bio\nq;99;Oslo;2020-01-01;x;cat\n"
    graph, _ = like(other, "from,to\nq,unheard\n")
    assert graph.names.nodes.to_pylist() == ["q", "unheard"]
    assert graph.features[1].tolist() == mine.features[4].tolist()
    assert graph.features[:, -1].tolist() == [0, 1]


def test_the_recipe_is_json_and_safetensors_and_can_be_used_again_and_again():
    imported("mine", NODES, **OPTIONS)
    like(NODES)
    assert (
        json.loads(Path("mine/import.json").read_text())["tables"][0]["columns"][1]["kind"]
        == "category"
    )
    for name in ("import.json", "import.safetensors"):
        assert (Path("mine") / name).read_bytes() == (Path("tomorrow") / name).read_bytes()


def test_features_from_the_edges_and_from_a_file_are_made_again():
    edges = "source,target\na,b\nb,c\n"
    mine, _ = imported("mine", None, edges, directed=True)
    graph, _ = like(None, edges)
    assert graph.features.tolist() == mine.features.tolist()
    np.save("x.npy", np.eye(3))
    imported("filed", None, edges, features_file=Path("x.npy"))
    import_tables(
        ImportSpec(
            edges=Path("mine-e.csv"), like=Path("filed"), out=Path("z"), features_file=Path("x.npy")
        )
    )
    assert load_graph("z").features.tolist() == np.eye(3).tolist()
    np.save("y.npy", np.ones((3, 2)))
    with refused():
        import_tables(
            ImportSpec(
                edges=Path("mine-e.csv"),
                like=Path("filed"),
                out=Path("w"),
                features_file=Path("y.npy"),
            )
        )


def test_a_file_of_features_is_filled_as_before_and_nodes_it_lacks_get_yesterdays_means():
    np.save("x.npy", np.array([[1.0], [np.nan], [4.0]]))
    edges = "from,to\na,b\nb,c\nc,z\n"
    options = {"fill": ("7",), "unknown_nodes": "add", "features_file": Path("x.npy")}
    mine, _ = imported("mine", "who\na\nb\nc\n", edges, **options)
    assert mine.features.tolist() == [[1, 0], [7, 0], [4, 0], [4, 1]]
    np.save("y.npy", np.array([[np.nan], [100.0], [200.0]]))
    again, _ = like("who\na\nb\nc\n", edges, features_file=Path("y.npy"))
    assert again.features.tolist() == [[7, 0], [100, 0], [200, 0], [4, 1]]
    options = {"features_file": Path("y.npy"), "fill": ("8",), "like": Path("mine")}
    anew, _ = imported("anew", "who\na\nb\nc\n", edges, **options)
    assert anew.features[0].tolist() == [8, 0]
    np.save("y.npy", np.ones((3, 2)))
    with refused():
        imported("other", "who\na\nb\nc\n", edges, like="mine", features_file=Path("y.npy"))


def test_numbers_to_be_predicted_stay_numbers():
    nodes = "id,x,price\na,1,5\nb,2,6\n"
    edges = "source,target,weight\na,b,2\n"
    imported("mine", nodes, edges, label=("price",), task="regression", drop=("weight",))
    graph, _ = like("id,x\na,1\nb,2\n", edges)
    assert (graph.task, graph.labels, graph.weighted) == ("regression", None, False)
    Path("tomorrow").rename("first")
    graph, _ = like(nodes, edges)
    assert graph.labels.tolist() == [5, 6]


def test_a_label_may_be_called_weight_and_may_be_dropped_tomorrow():
    nodes = "id,x,weight\na,1,u\nb,2,v\n"
    imported("mine", nodes, "source,target\na,b\n", label=("weight",))
    graph, _ = like(nodes, "source,target,weight\na,b,7\n")
    assert graph.labels.tolist() == [0, 1]
    assert not graph.weighted
    Path("tomorrow").rename("first")
    graph, _ = like(nodes, "source,target\na,b\n", drop=("weight",))
    assert graph.labels is None
    assert graph.names.classes == ["u", "v"]


def test_a_feature_called_label_is_no_label_where_tomorrow_has_none():
    edges = "source,target\na,b\n"
    mine, _ = imported("mine", "id,label,topic\na,3,u\nb,4,v\n", edges, label=("topic",))
    graph, _ = like("id,label\na,3\nb,4\n", edges)
    assert graph.features.tolist() == mine.features.tolist() == [[3], [4]]
    assert graph.labels is None
    assert graph.names.classes == ["u", "v"]


def test_features_stay_though_tomorrow_drops_their_columns():
    nodes = "id,f_1,f_2,label\na,1,3,u\nb,2,4,v\n"
    imported("mine", nodes, "source,target\na,b\n")
    graph, _ = like(nodes, "source,target\na,b\n", drop=("f_*",))
    assert graph.features.tolist() == [[1, 3], [2, 4]]


def test_one_of_several_label_columns_that_is_not_there_is_told():
    nodes = "who;x;is_a;is_b;is_c\na;1;1;0;0\nb;2;0;1;1\nc;3;;;\nd;4;0;0;0\n"
    imported("mine", nodes, label=("is_*",))
    graph, summary = like("who;x;is_a;is_c\na;1;1;0\nb;2;0;1\nc;3;;\nd;4;0;0\n")
    assert graph.labels is None
    assert summary.warnings == [
        "tomorrow-n.csv: without 'is_b', 1 label column of 3 that mine has, the others are "
        "ignored and no node is labelled: 'is_a', 'is_c'"
    ]
    Path("other").mkdir()
    _, summary = imported("other/none", "who;x\na;1\nb;2\nc;3\nd;4\n", like=Path("mine"))
    assert summary.warnings == []


@pytest.mark.parametrize("label", [("is_a", "is_c"), ("is_[ac]",)])
def test_label_columns_that_leave_a_class_open_are_refused(label):
    nodes = "who;x;is_a;is_b;is_c\na;1;1;0;0\nb;2;0;1;1\nc;3;;;\nd;4;0;0;0\n"
    imported("mine", nodes, label=("is_*",))
    with refused() as caught:
        like(nodes, label=label)
    assert str(caught.value) == (
        "--label: mine has the classes 'is_a', 'is_b', 'is_c', and of tomorrow-n.csv --label names "
        "'is_a', 'is_c', without 'is_b'; name a column for each class, or leave --label out"
    )
    graph, _ = like(nodes, label=("is_c", "is_b", "is_a"))
    assert graph.names.classes == ["is_a", "is_b", "is_c"]
    assert graph.labels[:2].tolist() == [[1, 0, 0], [0, 1, 1]]


def test_labels_of_another_task_are_refused():
    edges, nodes = "source,target\na,b\n", "id,x,is_a,is_b\na,1,0,1\nb,2,1,1\n"
    imported("mine", nodes, edges, label=("is_a", "is_b"))
    with refused() as caught:
        like(nodes, edges, label=("is_a",))
    assert str(caught.value) == (
        "--label: mine has several classes per node, and 'is_a' of tomorrow-n.csv would be one "
        "class per node; its label columns are 'is_a', 'is_b'"
    )
    imported("one", "id,x,kind\na,1,u\nb,2,v\n", edges, label=("kind",))
    with refused():
        imported("two", nodes, edges, label=("is_a", "is_b"), like=Path("one"))


def test_labels_may_come_tomorrow_where_there_were_none():
    edges = "source,target\na,b\n"
    imported("mine", "id,x\na,1\nb,2\n", edges)
    graph, _ = like("id,x,p,q\na,1,0,1\nb,2,1,1\n", edges, label=("p", "q"))
    assert graph.labels.tolist() == [[0, 1], [1, 1]]


def test_a_split_that_is_asked_for_needs_labels_tomorrow_too():
    imported("mine", NODES, **OPTIONS)
    nodes = NODES.replace(";kind;split", ";sort;part")
    with refused():
        like(nodes, split="part")


def test_a_split_may_be_dropped_tomorrow():
    imported("mine", NODES, **OPTIONS)
    graph, _ = like(NODES, drop=("split",))
    assert graph.labelled.tolist() == [True, True, True, False]
    assert [len(graph.split(name)) for name in SPLITS] == [0, 0, 0]


@pytest.mark.parametrize(("before", "after"), [(",", "."), (".", ","), (None, ",")])
def test_another_decimal_holds_for_features_and_from_then_on(before, after):
    def written(decimal: str | None) -> str:
        text = "id;x;v;label\na;1.234;1.5|2.5;u\nb;1.234;3.5|4.125;u\n"
        return text.replace(".", decimal or ".")

    edges = "source,target\na,b\n"
    mine, _ = imported("mine", written(before), edges, decimal=before)
    assert mine.features.tolist() == [
        pytest.approx([1.234, 1.5, 2.5]),
        pytest.approx([1.234, 3.5, 4.125]),
    ]
    graph, _ = like(written(after), edges, decimal=after)
    assert graph.features.tolist() == mine.features.tolist()
    third, _ = imported("third", written(after), edges, like=Path("tomorrow"))
    assert third.features.tolist() == mine.features.tolist()


def test_edges_without_weights_stay_without_though_tomorrows_table_has_some():
    nodes = "id,weight\na,1\nb,2\n"
    imported("mine", nodes, "source,target\na,b\n")
    graph, summary = like(nodes, "source,target,weight\na,b,7\n")
    assert not graph.weighted
    assert graph.features.tolist() == [[1], [2]]
    told = "tomorrow-e.csv: ignored column: 'weight', since mine has no weights"
    assert summary.warnings == [told]


@pytest.mark.parametrize(
    ("nodes", "options"),
    [
        (
            "who;age\na;1\n",
            {},
        ),
        (None, {}),
        (NODES, {"features_file": Path("x.npy")}),
    ],
)
def test_tables_that_do_not_fit_are_refused(nodes, options):
    imported("mine", NODES, **OPTIONS)
    with refused():
        like(nodes, **options)
    assert not Path("tomorrow").exists()


def test_a_graph_that_was_not_imported_cannot_be_imitated():
    with refused(FileNotFoundError):
        like(NODES)
    Path("mine").mkdir()
    with refused(FileNotFoundError):
        like(NODES)
    Path("mine").rmdir()
    imported("mine", NODES, **OPTIONS)
    file = Path("mine/import.json")
    whole = file.read_text()
    for text, message in (
        ("{", "is not valid JSON"),
        ("[]", "does not say format 'vrgcn-import'"),
        ('{"format": "vrgcn-import", "version": 99}', "has version 99; this vrgcn reads 1"),
        (whole.replace('"Rome"', '"Roma"'), "is damaged, or was changed by hand"),
    ):
        file.write_text(text)
        with refused() as caught:
            like(NODES)
        assert message in str(caught.value)
    file.write_text(whole)
    arrays = Path("mine/import.safetensors")
    data = bytearray(arrays.read_bytes())
    data[-1] ^= 1
    arrays.write_bytes(data)
    with refused():
        like(NODES)
