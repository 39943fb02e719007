"""Graphs that are generated in pieces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.messages import refused
from vrgcn import load_graph
from vrgcn.data import generate
from vrgcn.data.generate import generate_graph
from vrgcn.data.generate_spec import GenerateSpec
from vrgcn.data.store import verify_graph
from vrgcn.graph.propagation import is_symmetric

SPEC = GenerateSpec(nodes=3000, degree=12, features=8, classes=4, community=100)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("generated") / "graph"
    generate_graph(SPEC, path)
    return path


def test_it_is_a_whole_graph_of_the_size_asked_for(folder):
    verify_graph(folder)
    graph = load_graph(folder)
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (3000, 8, 4)
    assert 0.8 * 12 < graph.num_edges / 3000 <= 12
    assert is_symmetric(graph.adjacency)
    assert not (graph.adjacency.indices == graph.adjacency.row_of_entry).any()
    assert len(graph.train) == pytest.approx(1800, abs=150)
    assert len(graph.val) == pytest.approx(300, abs=80)


def test_neighbours_share_a_class_as_often_as_homophily_says(folder):
    graph = load_graph(folder)
    assert graph.labels is not None
    rows, columns = graph.adjacency.row_of_entry, graph.adjacency.indices
    same = (graph.labels[rows] == graph.labels[columns]).double().mean()
    # Inside communities always, elsewhere by chance: about a quarter.
    assert float(same) == pytest.approx(0.8 + 0.2 / 4, abs=0.05)


def test_the_same_description_gives_the_same_bytes_and_another_seed_others(folder, tmp_path):
    generate_graph(SPEC, tmp_path / "again")
    other = GenerateSpec(nodes=3000, degree=12, features=8, classes=4, community=100, seed=1)
    generate_graph(other, tmp_path / "other")
    for file in folder.glob("*.npy"):
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    for name in ("indices_0.npy", "features_0.npy", "labels.npy", "train.npy"):
        assert (folder / name).read_bytes() != (tmp_path / "other" / name).read_bytes()


def test_communities_lie_together_where_their_order_is_asked_for(folder, tmp_path):
    generate_graph(replace(SPEC, order="communities"), tmp_path / "ordered")
    inside = []
    for graph in (load_graph(folder), load_graph(tmp_path / "ordered")):
        rows, columns = graph.adjacency.row_of_entry, graph.adjacency.indices
        inside.append(float((rows // 100 == columns // 100).double().mean()))
    assert inside[0] < 0.06
    assert inside[1] == pytest.approx(0.8, abs=0.03)
    assert graph.labels is not None
    assert (graph.labels.reshape(30, 100) == graph.labels[::100, None]).all()


def test_many_pieces_make_a_graph_like_one_piece(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "PIECE", 1000)
    told: list[float] = []
    generate_graph(SPEC, tmp_path / "pieces", told.append)
    graph = load_graph(tmp_path / "pieces")
    assert graph.num_edges == pytest.approx(load_graph(folder).num_edges, rel=0.03)
    assert told == sorted(told)
    assert told[-1] == 1
    assert len(told) > 30


def test_features_are_noise_around_two_centres_of_the_class(folder):
    graph = load_graph(folder)
    assert graph.labels is not None
    for label in range(4):
        x = graph.features[graph.labels == label]
        # Length 1 of what both centres share, and 2.5² + 8 of the noise and what sets them apart.
        assert float(x.mean(0).norm()) == pytest.approx(1, abs=0.4)
        assert float(x.square().sum(1).mean()) == pytest.approx(1 + 2.5**2 + 8, rel=0.1)


def test_features_may_be_kept_in_half_precision(folder, tmp_path):
    spec = GenerateSpec(
        nodes=3000, degree=12, features=8, classes=4, community=100, feature_dtype="float16"
    )
    generate_graph(spec, tmp_path / "half")
    half, full = load_graph(tmp_path / "half"), load_graph(folder)
    assert half.features.dtype == torch.float16
    assert torch.equal(half.features, full.features.half())


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 1},
        {"degree": 60.0},
        {"homophily": 1.5},
        {"train": 0.9},
        {"classes": 0},
        {"order": "alphabetical"},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with refused():
        GenerateSpec(**({"nodes": 100, "val": 0.2} | wrong))


def test_an_interrupted_generation_leaves_nothing(tmp_path):
    def stop(done: float) -> None:
        if done > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_graph(SPEC, tmp_path / "graph", stop)
    assert not list(tmp_path.iterdir())


def test_draws_follow_the_weights():
    total = np.array([0.0, 1.0, 4.0, 10.0])
    points = np.array([0.0, 0.99, 1.0, 3.9, 4.0, 10.0])
    assert generate._places(total, points).tolist() == [0, 0, 1, 1, 2, 2]
