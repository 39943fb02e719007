"""Features of degrees are made again as the import makes them, of the edges that are left."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from vrgcn import Graph, split_pairs
from vrgcn.targets.degree_features import degree_features, has_degree_features


@pytest.mark.parametrize("directed", [False, True])
def test_features_of_the_same_edges_are_those_of_the_import(directed: bool) -> None:
    rng = np.random.default_rng(1)
    edges = pd.DataFrame(rng.integers(200, size=(900, 2)), columns=["source", "target"])
    graph = Graph.from_pandas(None, edges, directed=directed)
    assert has_degree_features(graph)
    assert torch.equal(degree_features(graph, graph.adjacency), graph.features)
    split = split_pairs(graph)
    assert torch.equal(split.features, degree_features(graph, split.adjacency))
    assert not torch.equal(split.features, graph.features)


def test_features_of_the_users_own_stay() -> None:
    graph = Graph(torch.randint(9, (2, 30)), torch.randn(9, 2))
    assert not has_degree_features(graph)
    assert torch.equal(split_pairs(graph).features, graph.features)
