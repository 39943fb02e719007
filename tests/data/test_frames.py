"""Graphs of DataFrames and NetworkX graphs: the same as an import of files of the same rows."""

from __future__ import annotations

import uuid

import networkx
import numpy as np
import pandas
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, GraphSAGE, TrainConfig, fit, load_graph, predictions
from vrgcn.data.tables import ImportSpec, import_tables

IDS = [f"p-{i}" for i in range(40)]


def frames() -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Papers by id, with numbers, categories, dates and gaps, and what they cite."""
    rng = np.random.default_rng(0)
    nodes = pandas.DataFrame(
        {
            "pages": np.where(np.arange(40) == 5, np.nan, rng.integers(4, 30, 40)),
            "venue": rng.choice(["here", "there"], 40),
            "published": pandas.date_range("2020-01-01", periods=40),
            "topic": np.where(np.arange(40) < 35, rng.choice(["maths", "art"], 40), None),
        },
        index=pandas.Index(IDS, name="paper"),
    )
    ends = rng.choice(IDS, (100, 2))
    return nodes, pandas.DataFrame(ends, columns=["source", "target"])


def same(one: Graph, other: Graph) -> None:
    assert torch.equal(one.features, other.features)
    assert torch.equal(one.adjacency.indices, other.adjacency.indices)
    assert torch.equal(one.adjacency.indptr, other.adjacency.indptr)
    assert torch.equal(one.labels, other.labels)
    for split in ("train", "val", "test"):
        assert torch.equal(one.split(split), other.split(split))
    assert one.names.nodes.equals(other.names.nodes)
    assert one.names.classes == other.names.classes
    assert one.names.features == other.names.features


def test_frames_become_what_an_import_of_the_same_rows_becomes(tmp_path):
    nodes, edges = frames()
    nodes.reset_index().to_parquet(tmp_path / "nodes.parquet")
    edges.to_csv(tmp_path / "edges.csv", index=False)
    spec = ImportSpec(
        edges=tmp_path / "edges.csv",
        nodes=tmp_path / "nodes.parquet",
        out=tmp_path / "graph",
        label=("topic",),
        ratio=(0.6, 0.2, 0.2),
        id="paper",
    )
    import_tables(spec)
    graph = Graph.from_pandas(nodes, edges, label="topic", ratio=(0.6, 0.2, 0.2))
    same(graph, load_graph(tmp_path / "graph"))
    assert graph.names.nodes.to_pylist() == IDS
    assert graph.names.classes == ["art", "maths"]
    assert int(graph.labelled.sum()) == 35
    assert any(name.startswith("venue") for name in graph.names.features)


def test_ids_are_the_index_unless_a_column_has_them():
    nodes, edges = frames()
    by_index = Graph.from_pandas(nodes, edges, label="topic")
    same(by_index, Graph.from_pandas(nodes.reset_index(), edges, id="paper", label="topic"))
    renamed = nodes.rename_axis("id").reset_index()
    same(by_index, Graph.from_pandas(renamed, edges, label="topic"))
    numbered = pandas.DataFrame({"f": [1.0, 2.0, 4.0]})
    graph = Graph.from_pandas(numbered, pandas.DataFrame({"a": [0, 1], "b": [1, 2]}))
    assert graph.names.nodes.to_pylist() == [0, 1, 2]
    assert graph.num_edges == 4


def test_ids_may_be_of_any_type():
    keys = [uuid.UUID(int=i) for i in range(3)]
    for ids in (keys, [1.0, 2.0, 3.0], [1, "a", 2.5], pandas.Categorical(list("xyz"))):
        nodes = pandas.DataFrame({"id": ids, "f": [1.0, 2.0, 4.0]})
        edges = pandas.DataFrame({"source": list(ids)[:2], "target": list(ids)[1:]})
        graph = Graph.from_pandas(nodes, edges)
        assert graph.num_edges == 4
        assert len(set(graph.names.nodes.to_pylist())) == 3


def test_predictions_join_the_frame_they_came_from():
    nodes, edges = frames()
    graph = Graph.from_pandas(nodes, edges, label="topic", ratio=(0.6, 0.2, 0.2))
    model = GraphSAGE(graph.num_features, 8, graph.num_classes)
    fit(model, graph, TrainConfig(epochs=2))
    joined = nodes.join(predictions(model, graph).to_pandas())
    assert len(joined) == 40
    assert joined["label"].isin(["art", "maths"]).all()


def test_weights_directions_and_numbers_to_predict():
    nodes = pandas.DataFrame({"f": [1.0, 2.0, 4.0], "price": [10.5, None, 30.0]}, index=list("abc"))
    edges = pandas.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "km": [2.0, 3.0]})
    graph = Graph.from_pandas(
        nodes, edges, label="price", task="regression", source="from", target="to", weight="km",
        directed=True,
    )  # fmt: skip
    assert graph.task == "regression"
    assert graph.labels.tolist()[::2] == [10.5, 30.0]
    assert graph.edge_index().tolist() == [[0, 1], [1, 2]]
    assert graph.adjacency.values.tolist() == [2.0, 3.0]


def test_other_frames_get_the_features_of_the_first(tmp_path):
    nodes, edges = frames()
    first = Graph.from_pandas(nodes, edges, label="topic", out=tmp_path / "first")
    assert torch.equal(first.features, load_graph(tmp_path / "first").features)
    few = nodes[nodes["venue"] == "here"].drop(columns="topic")
    inside = edges[edges["source"].isin(few.index) & edges["target"].isin(few.index)]
    second = Graph.from_pandas(few, inside, like=tmp_path / "first")
    assert second.names.features == first.names.features
    rows = [IDS.index(name) for name in few.index]
    assert torch.equal(second.features, first.features[rows])


def test_the_nodes_may_be_those_of_the_edges_alone():
    graph = Graph.from_pandas(None, frames()[1])
    assert "log_degree" in graph.names.features


def test_errors_name_frame_column_row_and_argument():
    nodes, edges = frames()
    with refused():
        Graph.from_pandas(nodes, edges, label="topik")
    edges.loc[7, "target"] = "p-99"
    with refused():
        Graph.from_pandas(nodes, edges)
    with refused(TypeError):
        Graph.from_pandas(nodes, edges, lable="topic")
    with refused(TypeError):
        Graph.from_pandas({}, edges)
    with refused():
        Graph.from_pandas(nodes, edges[:0])


def test_advice_is_given_in_pythons_words():
    nodes, edges = frames()
    with refused():
        Graph.from_pandas(nodes[:3], edges)
    several = pandas.DataFrame({"a b": ["x", "y"], "c": ["y", "x"], "d": [1.0, 2.0]})
    with refused():
        Graph.from_pandas(None, several)
    with refused():
        Graph.from_pandas(nodes, edges, split="topic", ratio=(0.6, 0.2, 0.2))


def test_no_flag_of_the_command_line_is_left_in_what_was_read(capsys):
    nodes, edges = frames()
    Graph.from_pandas(nodes, edges, label="topic", verbose=True)
    out = capsys.readouterr().out
    assert "give split=COLUMN or ratio=(0.6, 0.2, 0.2)" in out
    assert "--" not in out.replace("---", "")


def test_the_frames_are_left_as_they_were():
    nodes, edges = frames()
    before = nodes.copy(), edges.copy()
    Graph.from_pandas(nodes, edges, label="topic")
    pandas.testing.assert_frame_equal(nodes, before[0])
    pandas.testing.assert_frame_equal(edges, before[1])


def test_what_was_read_is_printed_when_asked_for(capsys):
    nodes, edges = frames()
    Graph.from_pandas(nodes, edges, label="topic", verbose=True)
    assert "nodes: id 'paper', label 'topic'" in capsys.readouterr().out


def club() -> networkx.Graph:
    G = networkx.karate_club_graph()
    for node in G:
        G.nodes[node]["age"] = 20 + node
    return G


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph, networkx.MultiGraph])
def test_networkx_without_nodes_is_refused_in_a_line(kind):
    with refused():
        Graph.from_networkx(kind())


def test_networkx_attributes_become_features_labels_and_weights():
    G = club()
    graph = Graph.from_networkx(G, label="club", ratio=(0.5, 0.25, 0.25))
    assert graph.names.classes == ["Mr. Hi", "Officer"]
    assert graph.names.features == ["age"]
    assert graph.features[:, 0].tolist() == [20 + node for node in G]
    dense = graph.adjacency.to_torch(torch.float32).to_dense()
    assert torch.tensor(networkx.to_numpy_array(G)).float().equal(dense)
    assert graph.names.nodes.to_pylist() == list(G)


def test_networkx_without_attributes_has_degrees_or_a_constant():
    G = networkx.path_graph(4)
    G.add_node(9)  # nobody knows it
    degrees = Graph.from_networkx(G)
    assert degrees.num_nodes == 5
    assert torch.allclose(degrees.features[:, 0].exp() - 1, torch.tensor([1.0, 2, 2, 1, 0]))
    constant = Graph.from_networkx(club(), features="constant", label="club")
    assert constant.features.tolist() == [[1.0]] * 34
    assert constant.names.features == ["constant"]
    assert Graph.from_networkx(club(), features="degree").names.features[0] == "log_degree"


def test_networkx_says_itself_whether_it_is_directed():
    G = networkx.DiGraph([("a", "b"), ("b", "c")])
    assert Graph.from_networkx(G).edge_index().tolist() == [[0, 1], [1, 2]]
    assert Graph.from_networkx(G.to_undirected()).num_edges == 4


def test_networkx_weights_that_some_edges_lack_are_1():
    G = networkx.Graph([("a", "b", {"km": 3.0}), ("b", "c")])
    graph = Graph.from_networkx(G, weight="km")
    assert sorted(graph.adjacency.values.tolist()) == [1.0, 1.0, 3.0, 3.0]
    with refused():
        Graph.from_networkx(G, weight="miles")


def test_networkx_attributes_may_have_any_name_but_not_the_same():
    graph = networkx.path_graph(3)
    networkx.set_node_attributes(graph, {n: {"id": n, "node": 7, "node id": 2 - n} for n in graph})
    made = Graph.from_networkx(graph, features=["id", "node id"])
    assert made.names.nodes.to_pylist() == [0, 1, 2]
    assert made.features.tolist() == [[0, 2], [1, 1], [2, 0]]
    networkx.set_node_attributes(graph, {n: {1: n, "1": -n} for n in graph})
    with refused():
        Graph.from_networkx(graph)


def test_networkx_nodes_that_are_written_the_same_are_refused():
    with refused():
        Graph.from_networkx(networkx.Graph([(1, "1")]))


class Opinion:
    """An object that no table can hold."""


def test_a_column_of_objects_is_an_error_that_names_it_and_none_where_it_is_dropped():
    frame = pandas.DataFrame({"id": [1, 2, 3], "x": [1.0, 2, 3], "what": [Opinion()] * 3})
    edges = pandas.DataFrame({"source": [1, 2], "target": [2, 3]})
    with refused():
        Graph.from_pandas(frame, edges)
    with refused():
        Graph.from_tables({"a": frame}, {("a", "to", "a"): edges})
    assert Graph.from_pandas(frame, edges, drop="what").names.features == ["x"]


NAMED = pandas.DataFrame({"who": ["a", "b", "c"], "x": [1.0, 2.0, 3.0], "kind": ["u", "v", "u"]})


@pytest.mark.parametrize("several", [False, True])
def test_a_frame_that_counts_its_rows_has_its_ids_where_files_have_them(several: bool) -> None:
    edges = pandas.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    if several:
        graph = Graph.from_tables({"user": NAMED}, {"user-knows-user": edges}, label="user.kind")
    else:
        graph = Graph.from_pandas(NAMED, edges, label="kind")
    assert graph.names.node_ids(np.arange(3)).to_pylist() == ["a", "b", "c"]
    assert graph.num_features == 1


def test_a_frame_that_counts_its_rows_has_them_for_ids_if_edges_count_too() -> None:
    edges = pandas.DataFrame({"source": [0, 1], "target": [1, 2]})
    graph = Graph.from_pandas(NAMED.drop(columns="who"), edges, label="kind")
    assert graph.num_nodes == 3
    assert graph.num_edges == 4
