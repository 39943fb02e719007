"""Edges to nodes that the table lacks, and ids that are spelled in two ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.messages import refused
from vrgcn.data.store import load_graph
from vrgcn.data.tables import ImportSpec, import_tables

pytestmark = pytest.mark.usefixtures("told_as_flags")

NODES = "id,x,city,label,split\na,1,Rome,u,train\nb,2,Oslo,v,val\nc,6,Rome,u,test\n"
EDGES = "source,target,weight\na,b,1\nz,b,2\nb,y,3\nz,z,4\nc,a,5\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def imported(nodes: str | None, edges: str, **options):
    Path("e.csv").write_text(edges)
    if nodes is not None:
        Path("n.csv").write_text(nodes)
        options["nodes"] = Path("n.csv")
    summary = import_tables(ImportSpec(edges=Path("e.csv"), out=Path("g"), **options))
    return load_graph("g"), summary


def edge_set(graph) -> set[tuple]:
    ids = graph.names.nodes.to_pylist()
    return {(ids[s], ids[t]) for s, t in graph.edge_index().T.tolist()}


def test_edges_to_unknown_nodes_are_skipped_counted_and_shown():
    graph, summary = imported(NODES, EDGES, unknown_nodes="skip", directed=True)
    assert edge_set(graph) == {("a", "b"), ("c", "a")}
    assert sorted(graph.adjacency.values.tolist()) == [1, 5]
    assert (summary.rows, summary.skipped, summary.edges) == (2, 3, 2)
    assert summary.warnings[:3] == [
        "e.csv: skipped 3 of 5 rows (60.0%)",
        "e.csv: column 'source' names a node that n.csv does not have, in 2 rows: "
        "'z' in row 2 (line 3), 'z' in row 4 (line 5)",
        "e.csv: column 'target' names a node that n.csv does not have, in 2 rows: "
        "'y' in row 3 (line 4), 'z' in row 4 (line 5)",
    ]


def test_edges_without_an_end_are_skipped_too():
    graph, summary = imported(NODES, "source,target\na,b\na,\n", unknown_nodes="skip")
    assert graph.num_edges == 2
    assert summary.skipped == 1


def test_skipping_all_edges_is_an_error():
    with refused():
        imported(NODES, "source,target\np,q\nq,a\n", unknown_nodes="skip")


def test_unknown_nodes_are_added_with_means_a_mark_and_without_labels():
    graph, summary = imported(NODES, EDGES, unknown_nodes="add", directed=True)
    assert graph.names.nodes.to_pylist() == ["a", "b", "c", "y", "z"]
    assert edge_set(graph) == {("a", "b"), ("z", "b"), ("b", "y"), ("z", "z"), ("c", "a")}
    assert graph.names.features == ["x", "city=Oslo", "city=Rome", "(not in the nodes table)"]
    np.testing.assert_allclose(graph.features[3:], [[3, 1 / 3, 2 / 3, 1]] * 2, rtol=1e-6)
    assert graph.features[:3, 3].tolist() == [0, 0, 0]
    assert graph.labels.tolist() == [0, 1, 0, -1, -1]
    assert graph.train.tolist() == [0]
    assert "e.csv: names 2 nodes that n.csv does not have, added without labels: 'y', 'z'" in (
        summary.warnings
    )
    assert not [warning for warning in summary.warnings if "same for all" in warning]


def test_a_ratio_splits_the_nodes_of_the_table_alone():
    nodes = "id,x,price\n" + "".join(f"{i},{i},{i}.5\n" for i in range(20))
    edges = "source,target\n" + "".join(f"{i},{i + 100}\n" for i in range(20))
    graph, _ = imported(
        *(nodes, edges),
        unknown_nodes="add",
        label=("price",),
        task="regression",
        ratio=(0.5, 0.25, 0.25),
    )
    assert graph.num_nodes == 40
    assert [len(graph.train), len(graph.val), len(graph.test)] == [10, 5, 5]
    assert max(graph.train.tolist()) < 20
    assert graph.labelled.sum() == 20


def test_nodes_beside_a_file_of_features_and_nodes_without_features_are_added_too():
    np.save("x.npy", np.array([[1.0], [2], [6]]))
    graph, _ = imported(NODES, EDGES, unknown_nodes="add", features_file=Path("x.npy"))
    assert graph.features.tolist() == [[1, 0], [2, 0], [6, 0], [3, 1], [3, 1]]
    Path("g").rename("h")
    graph, _ = imported("id,label\na,u\nb,v\n", "source,target\na,z\n", unknown_nodes="add")
    assert graph.names.features[0] == "log_degree"
    assert graph.num_features == 4
    assert graph.num_nodes == 3


def test_ids_in_another_spelling_are_found_as_the_error_says():
    nodes = "id,x\n34,1\nAda,2\nBob ,3\n"
    edges = "source,target\n34.0,ada\nBob,34\n"
    with refused() as caught:
        imported(nodes, edges)
    lines = str(caught.value).splitlines()
    assert "in another spelling it has some: give --tidy-ids space decimal;" in lines[0]
    assert "in another spelling it has some: give --tidy-ids case;" in lines[1]
    graph, summary = imported(nodes, edges, tidy_ids=("space", "decimal", "case"))
    assert graph.names.nodes.to_pylist() == ["34", "Ada", "Bob "]
    assert edge_set(graph) == {("34", "Ada"), ("Ada", "34"), ("Bob ", "34"), ("34", "Bob ")}
    assert not [warning for warning in summary.warnings if "differ" in warning]


def test_ids_that_differ_in_what_nobody_sees_are_told():
    _, summary = imported("id,x\nada,1\nAda,2\nbob,3\nbob ,4\n", "source,target\nada,bob\n")
    assert (
        "2 ids differ from another only in spaces around them or capital letters: 'ada' and "
        "'Ada', 'bob' and 'bob '; they are different nodes, unless you give --tidy-ids space case"
    ) in summary.warnings


def test_ids_of_edges_alone_are_looked_at_too():
    _, summary = imported(None, "source,target\n1,2\n1.0,3\n")
    assert any("1 id differs from another only in a .0 at the end" in w for w in summary.warnings)


def test_tidied_ids_are_compared_and_come_back_as_the_table_writes_them():
    nodes = "id,x\nAnn,1\nbob,2\nCy ,3\n7.0,4\n"
    edges = "source,target\nann,BOB\ncy,ANN\n7,bob\n"
    graph, summary = imported(nodes, edges, tidy_ids=("case", "space", "decimal"), directed=True)
    assert graph.names.nodes.to_pylist() == ["Ann", "bob", "Cy ", "7.0"]
    assert edge_set(graph) == {("Ann", "bob"), ("Cy ", "Ann"), ("7.0", "bob")}
    assert not any("tidy" in warning for warning in summary.warnings)


@pytest.mark.parametrize("batch", [1, 100])
def test_nodes_that_edges_alone_name_have_the_first_spelling_and_the_order_of_tidied_ids(
    monkeypatch, batch
):
    monkeypatch.setattr("vrgcn.data.tables.parquet.BATCH_ROWS", batch)
    ends = {"source": ["b", "C", "A", "c"], "target": ["B", "b", "c", "a"]}
    pq.write_table(pa.table(ends), "e.parquet")
    summary = import_tables(
        ImportSpec(edges=Path("e.parquet"), out=Path("g"), tidy_ids=("case",), directed=True)
    )
    graph = load_graph("g")
    assert graph.names.nodes.to_pylist() == ["A", "b", "C"]
    assert edge_set(graph) == {("b", "b"), ("C", "b"), ("A", "C"), ("C", "A")}
    assert summary.self_loops == 1


def test_added_nodes_have_the_first_spelling_of_the_edges():
    nodes, edges = "id,x\nAda,1\nBob,2\n", "source,target\nZoe,ada\nzoe,BOB\nyan,ZOE\n"
    graph, summary = imported(nodes, edges, tidy_ids=("case",), unknown_nodes="add")
    assert graph.names.nodes.to_pylist() == ["Ada", "Bob", "yan", "Zoe"]
    assert any("added without labels: 'yan', 'Zoe'" in warning for warning in summary.warnings)


def test_numbers_of_the_rows_of_a_features_file_stay_numbers():
    np.save("x.npy", np.ones((4, 2), np.float32))
    graph, _ = imported(
        None, "source,target\n3.0,1\n", tidy_ids=("decimal",), features_file=Path("x.npy")
    )
    assert graph.names.nodes.to_pylist() == [0, 1, 2, 3]


def test_ids_that_become_the_same_by_tidying_are_repeated():
    with refused():
        imported("id,x\nada,1\nAda,2\n", "source,target\nada,ada\n", tidy_ids=("case",))


def test_an_unknown_node_is_told_as_the_edges_write_it_and_with_all_that_finds_it():
    with refused() as caught:
        imported("id,x\nada,1\nbob,2\n", "source,target\nADA ,bob\n", tidy_ids=("case",))
    assert "'ADA ' in row 1" in str(caught.value)
    assert "give --tidy-ids case space;" in str(caught.value)


def test_all_problems_of_both_tables_are_told_at_once():
    nodes = "id,x,label,split\na,1,u,train\na,2,v,tset\ne,3,,val\nb,4,u,\nc,5,u,\nd,five,u,\n"
    with refused() as caught:
        imported(nodes, "source,target,weight\na,zz,1\na,b,heavy\nb,,\n")
    kinds = [
        *("column 'x' holds text", "column 'split' is none of"),
        "column 'id' repeats",
        *("column 'target' names a node", "column 'target' is empty"),
        *("column 'weight' holds text", "column 'weight' is missing"),
    ]
    lines = str(caught.value).splitlines()
    assert len(lines) == len(kinds)
    for kind in kinds:
        assert sum(kind in line for line in lines) == 1, kind


def test_all_columns_that_are_not_there_are_told_at_once():
    with refused() as caught:
        imported(
            NODES,
            EDGES,
            id="key",
            label=("topic",),
            split="fold",
            features=("p", "q"),
            source="from",
            weight="w",
        )
    flags = [line.split("(")[1].split(")")[0] for line in str(caught.value).splitlines()]
    expected = ["--source", "--weight", "--id", "--label", "--split", "--features", "--features"]
    assert flags == expected


def test_an_unreadable_table_does_not_hide_what_is_wrong_with_the_other(monkeypatch):
    for name in ("delimited.BLOCK", "delimited.WIDE_BLOCK"):
        monkeypatch.setattr(f"vrgcn.data.tables.{name}", 100)
    monkeypatch.setattr("vrgcn.data.tables.proposal.SAMPLE", 3)
    rows = "".join(f"{i},1\n" for i in range(100))
    with refused() as caught:
        imported(f"id,x\n{rows}b\n", "source,target,weight\na,b,much\n")
    assert "e.csv: column 'weight' holds text where numbers should be" in str(caught.value)


def test_spaces_around_names_of_columns_are_left_out_and_told():
    graph, summary = imported(" id , x ,label\na,1,u\nb,2,v\n", " source, target\na,b\n")
    assert graph.names.features == ["x"]
    assert graph.num_edges == 2
    assert "n.csv: left out the spaces around the column names 'id', 'x'" in str(summary)


def test_columns_of_edges_that_are_of_no_use_are_told():
    _, summary = imported(NODES, "source,target,since,kind\na,b,1,x\n")
    assert (
        "e.csv: ignored columns: 'since', 'kind'; an edge has a weight (--weight COLUMN) and "
        "columns that are kept (--keep COLUMN)"
    ) in str(summary)


def test_decimal_commas_in_weights_are_read_where_no_doubt_is_left():
    graph, summary = imported(NODES, "source;target;weight\na;b;1,5\n")
    assert graph.adjacency.values.tolist() == [1.5, 1.5]
    assert "e.csv: decimal commas of column 'weight' read as points" in summary.columns


def test_commas_in_weights_that_may_be_two_things_are_told_and_read_as_the_user_says():
    edges = "source;target;weight\na;b;1,500\n"
    with refused():
        imported(NODES, edges)
    graph, summary = imported(NODES, edges, decimal=",")
    assert graph.adjacency.values.tolist() == [1.5, 1.5]
    assert not any("decimal commas of" in line for line in summary.columns)


@pytest.mark.parametrize("header", ["src,dst", "from,to"])
def test_usual_names_of_the_ends_are_known_among_other_columns(header):
    graph, summary = imported(NODES, f"since,{header}\n2001,a,b\n")
    assert graph.edge_index().sort().values.tolist() == [[0, 1], [0, 1]]
    assert "ignored column: 'since'" in str(summary)


def test_ends_that_are_not_known_are_asked_for_with_an_example():
    with refused():
        imported(NODES, "von,nach wem,seit\na,b,2001\n")


def test_rows_edges_and_entries_are_each_named_once():
    edges = "source,target\na,b\nb,a\na,b\na,c\nc,c\n"
    graph, summary = imported(NODES, edges)
    assert (summary.rows, summary.edges, summary.entries) == (5, 3, 5)
    assert graph.num_edges == summary.entries
    assert str(summary).splitlines()[3:7] == [
        "nodes                  3   0 of them isolated",
        "rows                   5   in the table of edges",
        "edges                  3   different pairs of nodes; 1 row repeats another, 1 reversed, "
        "1 self-loop",
        "entries                5   in the matrix; an edge is two, a self-loop one",
    ]
