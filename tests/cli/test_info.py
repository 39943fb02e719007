"""`vrgcn info`, on real data and on a graph from disk."""

from __future__ import annotations

import pytest

from tests.cli.conftest import small_graph
from vrgcn.data import statistics as statistics_module
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph


def test_info_prints_table_1_and_more(vrgcn, real_data):
    code, out, _ = vrgcn("info", "pubmed", "--data-root", real_data)
    assert code == 0
    row = next(line for line in out.splitlines() if "19,717" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["19,717", "108,365", "6", "60"]
    assert "5.496 on average" in out
    assert "undirected; 0 self-loops; 0 nodes without any" in out
    assert "train 60, val 500, test 1,000" in out
    assert "80.2% of edges join nodes of the same class" in out
    assert "features" in out
    assert "39.4 MB" in out


def test_info_says_when_features_and_labels_are_not_the_published_ones(vrgcn, real_data):
    _, out, _ = vrgcn("info", "ppi-small", "--data-root", real_data)
    assert "note: real edges and split; features and labels rebuilt from gene sets" in out
    assert "121, several per node" in out


def test_info_of_a_graph_from_disk_and_of_one_too_large_to_count(
    vrgcn, tmp_path, graph_folder, monkeypatch
):
    code, out, _ = vrgcn("info", "--graph", graph_folder)
    assert code == 0
    assert "≈" not in out
    save_graph(small_graph(nodes=900), tmp_path / "large")
    monkeypatch.setattr(statistics_module, "STEPS", 1_000)
    _, out, _ = vrgcn("info", "--graph", tmp_path / "large")
    assert "≈" in out
    assert "(standard error) on average, from 100 random nodes" in out


def test_info_says_that_negative_weights_cannot_be_trained_on(vrgcn, tmp_path):
    graph = Graph(
        [[0, 1], [1, 2]], [[1.0], [2.0], [3.0]], [0, 1, 0], edge_weight=[-1, 1], train=[0]
    )
    save_graph(graph, tmp_path / "negative")
    code, out, _ = vrgcn("info", tmp_path / "negative")
    assert code == 0
    assert "vrgcn train cannot train here: 1 edge has a negative weight, first: -1 on" in out
    assert "vrgcn train takes" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a graph: the folder that"),
        (("cora", "--graph", "x"), "cora and --graph x: give one graph, not 2"),
        (("corra",), "there is no folder corra, and no data set of that name; did you mean cora?"),
        (("--dataset", "corra"), "there is no dataset 'corra'; did you mean cora?"),
        (("--graph", "nowhere"), "nowhere"),
    ],
)
def test_info_on_nothing_is_an_error_without_a_traceback(vrgcn, arguments, message):
    code, out, err = vrgcn("info", *arguments)
    assert code == 1
    assert message in err
    assert "Traceback" not in out + err


def test_verify_finds_a_flipped_bit_of_the_features(vrgcn, graph_folder):
    code, out, err = vrgcn("info", "--graph", graph_folder, "--verify")
    assert (code, err) == (0, "")
    file = graph_folder / "features_0.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert vrgcn("info", "--graph", graph_folder)[:2] == (0, out)
    code, _, err = vrgcn("info", "--graph", graph_folder, "--verify")
    assert code == 1
    assert "features_0.npy is damaged: its checksum is not the one" in err
