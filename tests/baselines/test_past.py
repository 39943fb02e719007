"""The past of a graph that is split by time: baselines know nothing of later nodes and edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph
from vrgcn.baselines import RECIPES
from vrgcn.baselines.past import past_of
from vrgcn.baselines.problem import Problem
from vrgcn.targets.label_split import split_by_time

NODES, EARLY, KNOWN = 90, 60, 75


def dated(*, other_future: bool = False) -> Graph:
    """Three classes, linked within themselves, seen in features; each node has a month of 2026.

    other_future: later nodes have other features, and all edges of later nodes are others
    """
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(NODES) % 3
    source = torch.arange(NODES).repeat_interleave(3)
    target = (source + 3 * torch.randint(1, NODES // 3, source.shape, generator=generator)) % NODES
    features = torch.randn(NODES, 6, generator=generator) + 2 * torch.eye(6)[labels]
    if other_future:
        features[EARLY:] = 7.0
        late = (source >= EARLY) | (target >= EARLY)
        target = torch.where(late, (source + 1) % NODES, target)
        late_again = (source < EARLY) & late
        target = torch.where(late_again, EARLY + source % 7, target)
    months = [1 if n < EARLY else 7 if n < KNOWN else 12 for n in range(NODES)]
    dates = np.array([f"2026-{month:02d}" for month in months], "datetime64[M]")
    graph = Graph(
        torch.stack([source, target]),
        features,
        labels,
        undirected=True,
        num_classes=3,
        node_columns={"made": dates},
    )
    return split_by_time(graph, "2026-04", "2026-08")


def test_the_past_has_neither_later_edges_nor_later_features() -> None:
    past = past_of(dated(), 0)
    ends = past.edge_index()
    assert ends.numel()
    assert int(ends.max()) < EARLY
    assert (past.features[EARLY:] == 0).all()
    assert (past.features[:EARLY] != 0).any(1).all()
    assert past.visible is None


def test_training_nodes_alone_are_in_its_splits() -> None:
    graph, past = dated(), past_of(dated(), 0)
    assert len(past.val) == 6  # a tenth
    assert sorted([*past.train.tolist(), *past.val.tolist()]) == graph.train.tolist()
    assert not len(past.test)
    assert past_of(dated(), 1).val.tolist() != past.val.tolist()


@pytest.mark.parametrize("name", ["labels", "mlp-tables", "linear-2", "link", "trees-tables"])
def test_a_baseline_is_the_same_whatever_comes_later(name: str) -> None:
    recipe = RECIPES[name]
    if not recipe.available:
        pytest.skip("needs scikit-learn or LightGBM")
    found = []
    for other_future in (False, True):
        model = recipe.fit(Problem.of(past_of(dated(other_future=other_future), 0)))
        found.append(model.state_dict())
    assert found[0].keys() == found[1].keys()
    for key, value in found[0].items():
        assert torch.equal(value, found[1][key]), key


def test_a_split_with_one_training_node_is_refused() -> None:
    graph = dated().with_splits({"train": torch.tensor([0]), "val": torch.tensor([1])})
    with refused():
        past_of(graph, 0)
