"""Uniform sampling at hubs: many draws in linear time, and the same draws as ever."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from vrgcn.engine.samplers import uniform as module
from vrgcn.engine.samplers.uniform import uniform
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation, build_propagation


def hubs(leaves: int, count: int = 2) -> Propagation:
    """`count` nodes that each average all others of `leaves`, half of them, a third, ..."""
    sources = [torch.arange(count, count + leaves // (hub + 1)) for hub in range(count)]
    targets = [torch.full((len(s),), hub) for hub, s in enumerate(sources)]
    edges = torch.stack([torch.cat(sources), torch.cat(targets)])
    return build_propagation("mean", Graph(edges, torch.ones(count + leaves, 1)))


def drawn(P: Propagation, targets: torch.Tensor, fanout: int, seed: int = 0) -> list[list[int]]:
    edges = uniform(P, targets, fanout, torch.Generator().manual_seed(seed)).edges
    return [part.tolist() for part in edges.indices.split(edges.counts.tolist())]


@pytest.mark.parametrize("fanout", [2, 7, 32, 33, 60, 99, 100, 101, 500])
def test_marking_finds_what_comparing_finds(fanout: int, monkeypatch: pytest.MonkeyPatch) -> None:
    P = hubs(200, 5)
    targets = torch.tensor([0, 1, 2, 3, 4, 7, 0])  # node 7 averages nobody
    found = []
    for compared in (0, 10_000):
        monkeypatch.setattr(module, "_COMPARED", compared)
        found.append(drawn(P, targets, fanout))
    assert found[0] == found[1]
    degrees = P.degrees(targets).tolist()
    assert [len(row) for row in found[0]] == [min(fanout, degree) for degree in degrees]
    assert all(len(set(row)) == len(row) for row in found[0])


def test_every_neighbour_of_a_hub_is_drawn_as_often() -> None:
    fanout, degree, rounds = 60, 100, 1000
    counts = torch.zeros(degree)
    P = hubs(degree, 1)
    for seed in range(rounds):
        (row,) = drawn(P, torch.tensor([0]), fanout, seed)
        counts[torch.tensor(row) - 1] += 1
    share = fanout / degree
    # One neighbour in 100 is outside five deviations once in 20,000 tests.
    assert (counts / rounds - share).abs().max() < 5 * (share * (1 - share) / rounds) ** 0.5


class Counting(TorchDispatchMode):
    """Counts the numbers that all operations together put into new tensors."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        answer = function(*args, **(kwargs or {}))
        if not any(result.alias_info for result in function._schema.returns):  # no views
            tensors = (part for part in tree_leaves(answer) if isinstance(part, torch.Tensor))
            self.numbers += sum(tensor.numel() for tensor in tensors)
        return answer


def test_the_work_at_a_hub_is_linear_in_the_fan_out() -> None:
    """Counted, not timed: numbers that are computed, which for 4,000 draws of 64 hubs were 512
    million of comparisons alone."""
    P = hubs(40_000, 64)
    numbers = {}
    for fanout in (250, 500):
        with Counting() as counting:
            uniform(P, torch.arange(64), fanout, torch.Generator().manual_seed(0))
        numbers[fanout] = counting.numbers
    P = hubs(9000, 64)
    with Counting() as counting:
        edges = uniform(P, torch.arange(64), 4000, torch.Generator().manual_seed(0)).edges
    assert edges.num_entries == int(P.degrees(torch.arange(64)).clamp(max=4000).sum())
    assert counting.numbers < 100 * 64 * 4000
    assert numbers[500] < 2.5 * numbers[250]
