"""Visits: every node that a gradient can reach goes back, its readers' sources forward."""

from __future__ import annotations

import pytest
import torch

from tests.messages import refused
from tests.theory.graphs import seeded
from vrgcn import GCN, Graph, MiniBatches
from vrgcn.engine.visits import Visits, all_visits, reached_visits, shuffled
from vrgcn.graph.propagation import Propagation

EVERYONE = torch.arange(7)


def over(*edges: tuple[int, int]) -> Propagation:
    """u averages v for each (u, v)."""
    dense = torch.zeros(7, 7)
    for u, v in edges:
        dense[u, v] = 1
    return Propagation.from_matrix(dense)


def trained(*nodes: int) -> torch.Tensor:
    return torch.isin(EVERYONE, torch.tensor(nodes))


CHAIN = over((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))


def test_gradients_go_as_far_as_there_are_levels_and_readers_as_far_again() -> None:
    found = reached_visits(EVERYONE, trained(0), [[CHAIN], [CHAIN]], 7)
    assert found.backward.tolist() == [0, 1, 2]
    assert found.forward.tolist() == [3, 4]
    assert found.count == 5


def test_levels_are_gone_through_from_the_output_down() -> None:
    """The upper level takes gradients from 0 to 1, the lower one from there to 2."""
    lower, upper = over((1, 2)), over((0, 1))
    assert reached_visits(EVERYONE, trained(0), [[lower], [upper]], 7).backward.tolist() == [
        0,
        1,
        2,
    ]


def test_nodes_that_are_not_visited_are_not_named() -> None:
    found = reached_visits(torch.tensor([0, 2, 4]), trained(0), [[CHAIN], [CHAIN]], 7)
    assert found.backward.tolist() == [0, 2]
    assert found.forward.tolist() == [4]


def test_where_all_are_trained_all_go_back_in_their_order() -> None:
    nodes = torch.tensor([5, 1])
    found = reached_visits(nodes, trained(1, 5), [[CHAIN]], 7)
    assert found.backward.tolist() == [5, 1]
    assert not len(found.forward)


def test_batches_part_both_kinds_and_the_smaller_ones_come_last() -> None:
    visits = Visits(torch.arange(10), torch.arange(10, 23))
    batches = visits.batches(4, seeded(0))
    for nodes, wanted in ((visits.backward, True), (visits.forward, False)):
        found = torch.cat([part for part, back in batches if back == wanted])
        assert torch.equal(found.sort().values, nodes)
    # One node left over is no minibatch of its own: a BatchNorm knows no deviation of one.
    assert [len(part) for part, _ in batches] == [4, 4, 4, 4, 2, 5]
    assert len({back for _, back in batches[:5]}) == 2


@pytest.mark.parametrize(
    ("size", "count", "one"), [(4, None, False), (5, None, True), (5, 6, False)]
)
def test_what_fits_into_one_minibatch_is_one(size: int, count: int | None, one: bool) -> None:
    visits = Visits(torch.tensor([1, 4]), torch.tensor([0, 2, 3])).fitted(size, count)
    assert visits.count == 5
    assert len(visits.batches(size, seeded(0))) == (1 if one else 2)
    assert visits.backward.tolist() == ([0, 1, 2, 3, 4] if one else [1, 4])


def test_a_minibatch_of_all_nodes_reads_no_node_that_another_was_to_compute() -> None:
    """2 is read by 1, and no gradient comes to it: with one level, from 0 to 1 alone."""
    graph = Graph([[1, 2], [0, 1]], torch.eye(3), [0, 1, 1], train=[0], undirected=False)
    model = GCN(3, 4, 2, layers=2)
    batches = MiniBatches(model, graph, estimator="two-way", nodes="all", batch_size=3)
    (batch,) = batches
    assert sorted(batch.nodes.tolist()) == [0, 1, 2]
    assert batch.needs_gradient
    assert len(batches) == 1
    assert len(MiniBatches(model, graph, estimator="two-way", nodes="all", batch_size=2)) == 2


def test_without_a_training_node_there_is_no_gradient_to_keep() -> None:
    graph = Graph(torch.tensor([[0, 1], [1, 2]]), torch.eye(3), torch.zeros(3, dtype=torch.int64))
    with refused():
        MiniBatches(GCN(3, 4, 2), graph, estimator="two-way", nodes="all")
    MiniBatches(GCN(3, 4, 2), graph, estimator="history", nodes="all")


@pytest.mark.parametrize("run", [1, 4, 7, 200])
@pytest.mark.parametrize("count", [0, 1, 5, 100])
def test_an_order_of_runs_has_every_node_once(run, count):
    nodes = torch.arange(count) * 3
    order = shuffled(nodes, run, torch.Generator().manual_seed(0))
    assert torch.equal(order.sort().values, nodes)


def test_runs_stay_together_and_begin_elsewhere_in_another_epoch():
    nodes = torch.arange(1000)
    generator = torch.Generator().manual_seed(0)
    followers = [int((shuffled(nodes, 8, generator).diff() == 1).sum()) for _ in range(5)]
    assert all(followed >= 1000 * 7 / 8 - 8 for followed in followers)
    starts = {int(shuffled(nodes, 8, generator)[0]) % 8 for _ in range(40)}
    assert len(starts) > 4


def test_minibatches_of_runs_have_the_mean_of_random_ones():
    """The mean over epochs of a minibatch's sum is the mean of all, for runs as for single nodes,
    though values follow the order of the nodes. 4,000 epochs: five standard errors are .005 with
    single nodes and .015 with runs."""
    values = torch.linspace(-1, 1, 240).double() + 3
    for run, tolerance in ((1, 0.006), (8, 0.016)):
        generator = torch.Generator().manual_seed(run)
        visits = all_visits(torch.arange(240))
        means = [
            float(values[visits.batches(60, generator, run)[0][0]].mean()) for _ in range(4000)
        ]
        assert sum(means) / len(means) == pytest.approx(3, abs=tolerance)
