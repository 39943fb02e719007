"""Splits of a graph that has one of its own are of the same kind as its own."""

from __future__ import annotations

import torch

from lab.league.splits import deal_again, rotate_parts
from vrgcn import Graph


def test_dealt_nodes_keep_the_sizes_and_the_classes_of_the_training_nodes() -> None:
    labels = torch.arange(90) % 3
    own = {"train": torch.arange(6), "val": torch.arange(20, 40), "test": torch.arange(40, 70)}
    graph = Graph([], torch.ones(90, 1), labels).with_splits(own)
    assert deal_again(graph, 0) is graph
    first, second = deal_again(graph, 1), deal_again(graph, 2)
    for dealt in (first, second):
        assert [len(dealt.split(name)) for name in own] == [6, 20, 30]
        assert labels[dealt.train].bincount().tolist() == [2, 2, 2]
        parts = torch.cat([dealt.train, dealt.val, dealt.test])
        assert parts.sort()[0].tolist() == torch.cat(list(own.values())).sort()[0].tolist()
    assert first.train.tolist() != second.train.tolist()
    assert deal_again(graph, 1).train.tolist() == first.train.tolist()


def test_connected_parts_take_each_others_roles() -> None:
    """Three rings of 50, 60 and 70 nodes, and a single node that stays a test node."""
    starts, sizes = (0, 50, 110), (50, 60, 70)
    rings = [torch.arange(size) + start for start, size in zip(starts, sizes, strict=True)]
    ends = torch.cat([torch.stack([ring, ring.roll(1)]) for ring in rings], dim=1)
    alone = torch.tensor([180])
    graph = Graph(
        ends,
        torch.ones(181, 1),
        torch.zeros(181, dtype=torch.long),
        train=rings[0],
        val=rings[1],
        test=torch.cat([rings[2], alone]),
        undirected=True,
    )
    kept, turned = rotate_parts(graph, 0), rotate_parts(graph, 1)
    for name in ("train", "val", "test"):
        assert torch.equal(kept.split(name), graph.split(name))
    assert torch.equal(turned.test, torch.cat([rings[0], alone]))
    assert torch.equal(turned.train, rings[1])
    assert torch.equal(turned.val, rings[2])
