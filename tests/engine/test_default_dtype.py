"""PyTorch's default type is nobody's business: the same bits under both, and a graph as it was."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch

from vrgcn import GCN, Graph, GraphSAGE, TrainConfig, fit, predict
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.graph.propagation import PROPAGATIONS, build_propagation

NODES = 60


@pytest.fixture(params=[torch.float32, torch.float64])
def default_type(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


def weighted(dtype: torch.dtype = torch.float32) -> Graph:
    """Weights, self-loops, edges given twice: all that the rules for P divide and sum."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, 400), generator=generator)
    weight = torch.rand(400, dtype=torch.float64, generator=generator)
    features = torch.randn(NODES, 6, dtype=torch.float64, generator=generator).to(dtype)
    order = torch.randperm(NODES, generator=generator)
    return Graph(
        edges,
        features,
        torch.arange(NODES) % 3,
        edge_weight=weight,
        train=order[:40],
        val=order[40:50],
        test=order[50:],
    )


def parts(graph: Graph) -> list[torch.Tensor]:
    A = graph.adjacency
    assert A.values is not None
    assert graph.labels is not None
    splits = (graph.train, graph.val, graph.test)
    return [A.indptr, A.indices, A.values, graph.features, graph.labels, *splits]


def copied(graph: Graph) -> list[torch.Tensor]:
    return [part.clone() for part in parts(graph)]


def unchanged(graph: Graph, before: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(parts(graph), before, strict=True))


@pytest.mark.parametrize("rule", PROPAGATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_making_p_twice_gives_the_same_and_leaves_the_graph_alone(
    rule: str, dtype: torch.dtype, default_type: torch.dtype
) -> None:
    graph = weighted(dtype)
    before = copied(graph)
    first = build_propagation(rule, graph).to_dense()
    second = build_propagation(rule, graph).to_dense()
    build_propagation(rule, graph.among(graph.train))
    assert torch.equal(first, second)
    assert first.dtype == dtype
    assert unchanged(graph, before)


def test_p_does_not_depend_on_the_default_type(default_type: torch.dtype) -> None:
    torch.set_default_dtype(torch.float32)
    plain = {rule: build_propagation(rule, weighted()).to_dense() for rule in PROPAGATIONS}
    torch.set_default_dtype(default_type)
    for rule, matrix in plain.items():
        assert torch.equal(build_propagation(rule, weighted()).to_dense(), matrix), rule


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", [GCN, GraphSAGE])
def test_training_and_prediction_are_the_same_to_the_last_bit(estimator: str, kind: type) -> None:
    before = torch.get_default_dtype()
    model = kind(6, 8, 3, dropout=0.2)
    found = []
    try:
        for default in (torch.float32, torch.float64):
            torch.set_default_dtype(default)
            graph = weighted()
            kept = copied(graph)
            mine = copy.deepcopy(model)
            config = TrainConfig(estimator=estimator, epochs=2, batch_size=16, diagnostics=1)
            result = fit(mine, graph, config)
            outputs = predict(mine, graph)
            assert unchanged(graph, kept)
            assert outputs.dtype == torch.float32
            found.append((outputs, [point.loss for point in result.curve]))
    finally:
        torch.set_default_dtype(before)
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
