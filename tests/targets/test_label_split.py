"""Splits drawn anew: their shares, in every class, and from a seed alone."""

from __future__ import annotations

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph
from vrgcn.targets.label_split import random_split

RATIO = (0.6, 0.2, 0.2)


def graph(labels: torch.Tensor, **given) -> Graph:
    features = torch.randn(len(labels), 2, generator=torch.Generator().manual_seed(0))
    return Graph([[0, 1], [1, 2]], features, labels, **given)


def parts(split: Graph) -> list[torch.Tensor]:
    return [split.train, split.val, split.test]


def test_each_class_is_split_in_the_ratio_and_unknown_nodes_are_left_out() -> None:
    labels = torch.tensor([0] * 50 + [1] * 10 + [-1] * 7)
    given = graph(labels, train=[0], val=[1])
    split = random_split(given, RATIO)
    assert [len(p) for p in parts(split)] == [36, 12, 12]
    for ids, ones in zip(parts(split), (6, 2, 2), strict=True):
        assert int((labels[ids] == 1).sum()) == ones
    everything = torch.cat(parts(split)).sort().values
    assert torch.equal(everything, torch.arange(60))
    assert split.adjacency is given.adjacency
    assert [len(p) for p in parts(given)] == [1, 1, 0]  # the one that was given is as it was


def test_the_seed_alone_decides() -> None:
    given = graph(torch.arange(200) % 4)
    one, same, other = (random_split(given, RATIO, seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(parts(one), parts(same), strict=True))
    assert not torch.equal(one.train, other.train)


def test_numbers_are_split_evenly_over_their_size() -> None:
    labels = torch.linspace(0, 1, 200).double()
    split = random_split(graph(labels, task="regression"), RATIO)
    assert [len(p) for p in parts(split)] == [120, 40, 40]
    assert all(abs(labels[ids].mean() - 0.5) < 0.05 for ids in parts(split))


def test_several_classes_per_node_are_split_as_one() -> None:
    labels = torch.randint(2, (100, 5), generator=torch.Generator().manual_seed(0))
    split = random_split(graph(labels), RATIO)
    assert [len(p) for p in parts(split)] == [60, 20, 20]


def test_a_graph_without_labels_is_refused() -> None:
    with refused():
        random_split(Graph([], torch.zeros(5, 2)), RATIO)


@pytest.mark.parametrize(
    "ratio",
    [
        (0.5, 0.5),
        (),
        0.6,
        "abc",
        (0.6, "a", 0.2),
        (0.5, 0.6, 0.1),
        (1.5, -0.3, -0.2),
        (0.0, 0.5, 0.5),
        (float("nan"), 0.5, 0.5),
    ],
)
def test_shares_that_are_none_are_refused(ratio: object) -> None:
    with refused():
        random_split(graph(torch.arange(20) % 2), ratio)
