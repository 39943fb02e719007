"""Exact outputs a chunk at a time, of the nodes that are needed and no others."""

from __future__ import annotations

import pytest
import torch

from tests.theory.problems import Embedded, dense_matrix, error, exact_pass, gcn, random_graph
from vrgcn.engine.setup import set_up
from vrgcn.graph import propagation
from vrgcn.inference.sweeps import ExactSweeps

GRAPH = random_graph(degree=2)
NODES = torch.tensor([40, 3, 40, 59])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "CHUNK_COST", 700)


def neighbourhood(nodes: set[int]) -> set[int]:
    P = dense_matrix(GRAPH, "gcn")
    return nodes | {int(v) for u in nodes for v in P[u].nonzero()[:, 0]}


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_outputs_come_in_the_order_asked_and_repeats_twice(layers: int) -> None:
    model = gcn(layers)
    outputs = ExactSweeps(model, set_up(model, GRAPH)).outputs(NODES)
    assert error(outputs, exact_pass(model, GRAPH)[-1][NODES]) < 1e-12


def test_a_stream_gives_each_chunk_with_its_nodes() -> None:
    model = gcn(2)
    exact = exact_pass(model, GRAPH)[-1]
    chunks = list(ExactSweeps(model, set_up(model, GRAPH)).stream())
    assert len(chunks) > 3
    for nodes, outputs in chunks:
        assert error(outputs, exact[nodes]) < 1e-12
    assert torch.equal(torch.cat([nodes for nodes, _ in chunks]), torch.arange(60))


@pytest.mark.parametrize("embedded", [False, True])
def test_each_sweep_visits_the_neighbours_of_the_next_and_says_so(embedded: bool) -> None:
    """A model that changes the features first needs one table, and one sweep, more."""
    model = Embedded(2) if embedded else gcn(2)
    visited: list[int] = []
    sweeps = ExactSweeps(model, set_up(model, GRAPH), on_chunk=visited.append)
    chosen = torch.tensor([40, 3])
    sweeps.outputs(chosen)
    hops = [{40, 3}]
    for _ in range(2 if embedded else 1):
        hops.append(neighbourhood(hops[-1]))
    assert sum(visited) == sweeps.work(chosen) == sum(map(len, hops))
    assert sum(map(len, hops)) < 60 * len(hops)
