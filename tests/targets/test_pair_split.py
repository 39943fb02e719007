"""Splits of edges: shares, seeds, and no leak from validation and test pairs into messages."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.messages import refused
from tests.theory.problems import random_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import EDGES, Pairs
from vrgcn.graph.propagation import build_propagation
from vrgcn.graph.scaling import scale_graph
from vrgcn.targets.pair_split import RULES, split_pairs
from vrgcn.targets.spec import PAIR_RATIO


def undirected_graph(nodes: int = 80, edges: int = 300) -> Graph:
    generator = torch.Generator().manual_seed(1)
    ends = torch.randint(nodes, (2, edges), generator=generator)
    labels = torch.arange(nodes) % 3
    return Graph(ends, torch.randn(nodes, 4, generator=generator), labels, undirected=True)


def pairs_of(graph: Graph) -> Pairs:
    assert graph.pairs is not None
    return graph.pairs


def as_set(pairs: Tensor) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in pairs.tolist()}


def test_every_edge_is_in_one_split_and_shares_are_those_of_the_ratio() -> None:
    graph = undirected_graph()
    pairs = pairs_of(split_pairs(graph))
    edges = {(min(e), max(e)) for e in as_set(graph.edge_index().t()) if e[0] != e[1]}
    parts = [as_set(pairs.split(name)) for name in ("train", "val", "test")]
    assert set.union(*parts) == edges
    assert sum(map(len, parts)) == len(edges)
    assert not pairs.directed
    assert [len(part) for part in parts[1:]] == [
        int(share * len(edges)) for share in PAIR_RATIO[1:]
    ]


@pytest.mark.parametrize("make", [undirected_graph, random_graph])
def test_validation_and_test_pairs_and_their_reverses_are_in_no_propagation_matrix(make) -> None:
    whole = make()
    graph = split_pairs(whole)
    pairs = pairs_of(graph)
    for rule in ("gcn", "mean"):
        P = build_propagation(rule, graph).to_dense()
        assert (build_propagation(rule, whole).to_dense() != 0).sum() > (P != 0).sum()
        for name in ("val", "test"):
            u, v = pairs.split(name).t()
            assert not P[u, v].any()
            assert not P[v, u].any()
        u, v = pairs.train.t()
        assert P[v, u].all()  # the target averages the source


def test_both_directions_of_a_directed_edge_are_in_one_split() -> None:
    pairs = pairs_of(split_pairs(random_graph()))
    assert pairs.directed
    train, val, test = (as_set(pairs.split(name)) for name in ("train", "val", "test"))
    both = {(u, v) for u, v in train | val | test if (v, u) in train | val | test}
    assert both
    for part in (train, val, test):
        assert all((v, u) in part for u, v in both & part)


def test_negatives_for_scores_are_no_pairs_of_any_split() -> None:
    for graph in (split_pairs(undirected_graph()), split_pairs(random_graph())):
        pairs = pairs_of(graph)
        known = set.union(*(as_set(pairs.split(name)) for name in ("train", "val", "test")))
        if not pairs.directed:
            known |= {(v, u) for u, v in known}
        for name in ("val", "test"):
            negatives = pairs.negatives[name]
            assert len(negatives) == len(pairs.split(name))
            assert not as_set(negatives) & known
            assert (negatives[:, 0] != negatives[:, 1]).all()


def test_the_seed_alone_decides_the_split() -> None:
    first, again, other = (pairs_of(split_pairs(undirected_graph(), seed=s)) for s in (3, 3, 4))
    for name in ("train", "val", "test"):
        assert torch.equal(first.split(name), again.split(name))
        assert as_set(first.split(name)) != as_set(other.split(name))
    assert torch.equal(first.negatives["test"], again.negatives["test"])


def test_the_graph_has_no_labels_and_keeps_its_pairs_when_it_is_scaled() -> None:
    graph = split_pairs(undirected_graph())
    assert graph.labels is None
    assert scale_graph(graph, "standard")[0].pairs is graph.pairs
    assert pairs_of(graph).rules == RULES
    assert "pairs of edges: train" in repr(graph)


def test_loops_are_no_pairs_and_stay_in_the_graph() -> None:
    edges = torch.tensor([[0, 1, 2, 3, 3], [1, 2, 3, 0, 3]])
    graph = split_pairs(Graph(edges, torch.eye(4), undirected=True), ratio=(0.5, 0.25, 0.25))
    pairs = pairs_of(graph)
    assert (3, 3) in as_set(graph.edge_index().t())
    assert (3, 3) not in as_set(torch.cat([pairs.train, pairs.val, pairs.test]))


def test_weights_of_training_edges_are_kept() -> None:
    whole = random_graph()
    graph = split_pairs(whole)
    u, v = pairs_of(graph).train.t()
    given, kept = (g.adjacency.to_torch().to_dense() for g in (whole, graph))
    assert torch.equal(kept[v, u], given[v, u])


def test_edges_that_cannot_be_split_are_refused() -> None:
    graph = undirected_graph()
    with refused():
        split_pairs(graph, "user-bought-item")
    with refused():
        split_pairs(Graph(torch.empty(2, 0, dtype=torch.int64), torch.eye(3)))
    full = torch.combinations(torch.arange(5)).t()
    with refused():
        split_pairs(Graph(full, torch.eye(5), undirected=True))
    with refused():
        split_pairs(Graph(torch.tensor([[0, 1], [1, 2]]), torch.eye(3)), ratio=(0.4, 0.3, 0.2))
    assert EDGES == "edges"
