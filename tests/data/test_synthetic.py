"""Community graphs, that a seed fixes every bit, and graphs by name with their cache."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

import vrgcn.data
from tests.messages import refused
from vrgcn.data import DATASETS, Dataset, cache_folder, load_dataset
from vrgcn.data.synthetic import (
    COMMUNITIES,
    REDDIT_LIKE,
    REDDIT_LIKE_STRONG,
    CommunitySpec,
    community_graph,
)
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import mean

SMALL = replace(
    REDDIT_LIKE, nodes=6_000, pairs=150_000, classes=7, width=16, train=3_900, val=600, test=1_400
)


@pytest.fixture(scope="module")
def small() -> Graph:
    return community_graph(SMALL, seed=0)


def test_communities_has_the_promised_size() -> None:
    graph = load_dataset("communities")
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (20_000, 1_000_000, 64)
    assert graph.num_classes == 16
    assert [len(ids) for ids in (graph.train, graph.val, graph.test)] == [12_000, 3_000, 5_000]
    assert graph.features.dtype == torch.float32
    assert torch.bincount(graph.labels, minlength=16).min() > 300


def test_reddit_like_has_the_size_of_reddit() -> None:
    spec = REDDIT_LIKE  # the graph itself takes too long for a test
    assert (spec.nodes, 2 * spec.pairs, spec.width, spec.classes) == (232_965, 23_213_838, 602, 41)
    assert (spec.train, spec.val, spec.test) == (152_410, 23_699, 55_334)
    strong = REDDIT_LIKE_STRONG
    assert replace(strong, homophily=spec.homophily, signal=spec.signal) == spec
    assert strong.homophily > spec.homophily


def test_edges_are_exactly_as_many_as_asked_symmetric_and_without_loops(small: Graph) -> None:
    A = small.adjacency
    assert small.num_edges == 2 * SMALL.pairs
    assert torch.equal(A.transposed.indptr, A.indptr)
    assert torch.equal(A.transposed.indices, A.indices)
    assert not (A.indices == A.row_of_entry).any()
    assert not small.weighted


def test_degrees_have_a_heavy_tail(small: Graph) -> None:
    degree = small.adjacency.counts.double()
    assert degree.median() < 0.6 * degree.mean()
    assert degree.max() > 15 * degree.mean()
    # A density of weight**-2 has P(degree > d) ~ 1/d: twice the degree, half as many nodes. Sixteen
    # times the median is rare but there, where an exponential tail would have e**-11 of the nodes.
    above = [(degree > factor * degree.median()).double().mean().item() for factor in (2, 4, 8, 16)]
    for near, far in pairwise(above):
        assert 1.5 < near / far < 3


def test_edges_stay_inside_a_community_as_often_as_asked(small: Graph) -> None:
    sources, targets = small.edge_index()
    inside = (small.labels[sources] == small.labels[targets]).double().mean()
    # The other edges go anywhere, and so into the own community in proportion to its edges. Merging
    # repeated edges, which are mostly inside, costs a little.
    degree = small.adjacency.counts.double()
    share = torch.zeros(7, dtype=torch.float64).index_add_(0, small.labels, degree) / degree.sum()
    expected = SMALL.homophily + (1 - SMALL.homophily) * (share**2).sum()
    assert expected - 0.08 < inside < expected + 0.02


def test_splits_are_disjoint_and_spare_nodes_belong_to_none(small: Graph) -> None:
    splits = torch.cat([small.train, small.val, small.test])
    assert [len(ids) for ids in (small.train, small.val, small.test)] == [3_900, 600, 1_400]
    assert len(torch.unique(splits)) == 5_900
    assert (small.labels >= 0).all()


def test_node_ids_do_not_tell_the_community(small: Graph) -> None:
    same = (small.labels[1:] == small.labels[:-1]).double().mean()
    share = torch.bincount(small.labels).double() / small.num_nodes
    assert abs(same - (share**2).sum()) < 0.03  # 5 standard deviations of 5,999 comparisons


def test_the_two_sides_of_a_community_cancel_in_the_neighbourhood_average() -> None:
    # Without noise to speak of: own features are `contrast` long, averages lose them, and the
    # average of the hidden activation |x| keeps them.
    spec = replace(SMALL, signal=0.0, contrast=1e3, homophily=1.0, pairs=60_000)
    graph = community_graph(spec, seed=0)
    P = mean(graph)
    popular = graph.adjacency.counts > 100
    own = graph.features[popular].norm(dim=1).mean()
    averaged = (P @ graph.features)[popular].norm(dim=1).mean()
    hidden = (P @ graph.features.abs())[popular].norm(dim=1).mean()
    assert own == pytest.approx(1e3, rel=0.01)
    assert averaged < 0.15 * own
    assert hidden == pytest.approx(1e3, rel=0.01)


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_graph(small: Graph) -> None:
    torch.manual_seed(1)  # global generators have no part in it
    again, other = community_graph(SMALL, seed=0), community_graph(SMALL, seed=1)
    for name in ("features", "labels", "train", "val", "test"):
        assert torch.equal(getattr(small, name), getattr(again, name))
        assert not torch.equal(getattr(small, name), getattr(other, name))
    assert torch.equal(small.adjacency.indices, again.adjacency.indices)
    assert torch.equal(small.adjacency.indptr, again.adjacency.indptr)
    assert not torch.equal(small.adjacency.indices, other.adjacency.indices)


def test_an_empty_split_is_left_out() -> None:
    graph = community_graph(replace(SMALL, val=0), seed=0)
    assert [len(ids) for ids in (graph.train, graph.val, graph.test)] == [3_900, 0, 1_400]


@pytest.mark.parametrize(
    "change",
    [
        {"train": 6_000},
        {"homophily": 1.5},
        {"tail": 1.0},
        {"spread": 0.5},
    ],
)
def test_impossible_specs_are_refused(change: dict[str, float]) -> None:
    with refused():
        replace(SMALL, **change)


def test_more_edges_than_fit_are_refused() -> None:
    sizes = {"nodes": 60, "pairs": 2_000, "train": 20, "val": 20, "test": 20}
    spec: CommunitySpec = replace(COMMUNITIES, **sizes)
    with refused():
        community_graph(spec)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that the cached dataset `slow` was made with, in order."""
    seeds: list[int] = []

    def make(seed: int) -> Graph:
        seeds.append(seed)
        return Graph([[0], [1]], torch.full((2, 1), float(seed)))

    table = {"slow": Dataset(make, "a slow one", cached=True, version=3)}
    monkeypatch.setattr(vrgcn.data, "DATASETS", table)
    return seeds


def test_an_unknown_name_lists_the_names() -> None:
    with refused():
        load_dataset("corra")


def test_communities_is_made_anew_and_reddit_like_is_cached() -> None:
    assert not DATASETS["communities"].cached
    assert DATASETS["reddit-like"].cached


def test_a_cached_dataset_is_made_once_for_each_seed(made: list[int], tmp_path: Path) -> None:
    values = [load_dataset("slow", seed, cache=tmp_path).features[0, 0] for seed in (0, 5, 0, 5)]
    assert values == [0, 5, 0, 5]
    assert made == [0, 5]
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "slow-seed0-v3-store1",
        "slow-seed5-v3-store1",
    ]


def test_a_new_version_is_made_anew(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_dataset("slow", cache=tmp_path)
    newer = vrgcn.data.DATASETS["slow"]._replace(version=4)
    monkeypatch.setitem(vrgcn.data.DATASETS, "slow", newer)
    load_dataset("slow", cache=tmp_path)
    assert made == [0, 0]


def test_two_processes_may_make_the_same_graph(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = vrgcn.data.DATASETS["slow"]

    def make_while_another_does(seed: int) -> Graph:
        monkeypatch.setitem(vrgcn.data.DATASETS, "slow", dataset)
        load_dataset("slow", seed, cache=tmp_path)
        return dataset.make(seed)

    slower = dataset._replace(make=make_while_another_does)
    monkeypatch.setitem(vrgcn.data.DATASETS, "slow", slower)
    assert load_dataset("slow", 2, cache=tmp_path).features[0, 0] == 2
    assert made == [2, 2]


def test_the_cache_is_where_the_environment_says(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VRGCN_CACHE", str(tmp_path / "chosen"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    load_dataset("slow")
    assert (tmp_path / "chosen" / "slow-seed0-v3-store1").is_dir()
    monkeypatch.delenv("VRGCN_CACHE")
    assert cache_folder() == tmp_path / "xdg" / "vrgcn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / "home" / ".cache" / "vrgcn"


def test_listing_the_names_does_not_import_torch() -> None:
    program = "import sys, vrgcn.data; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
