"""Values of pairs as a target."""

from __future__ import annotations

import pytest
import torch

from vrgcn import Graph, PairModel, TrainConfig, fit, predict, split_pairs
from vrgcn.models.config import ModelConfig
from vrgcn.runs.building import build_network
from vrgcn.targets.opening import find_target
from vrgcn.targets.value_rules import EmbeddedValues, GlobalMean, score_values

RATED = ("user", "rated", "item")


def movies(*, classes: bool = False) -> Graph:
    """Ratings that are the sum of a user's and an item's hidden number."""
    generator = torch.Generator().manual_seed(0)
    user, item = torch.rand(30, generator=generator), torch.rand(20, generator=generator)
    grid = torch.cartesian_prod(torch.arange(30), torch.arange(20))
    edges = grid[torch.randperm(600, generator=generator)[:400]].t()
    values = 100 + 20 * (user[edges[0]] + item[edges[1]])
    given = [f"{int(v // 15)}" for v in values] if classes else values.tolist()
    return Graph.from_kinds(
        {"user": 30, "item": 20}, {RATED: edges}, edge_columns={RATED: {"rating": given}}
    )


def trained(graph: Graph, config: TrainConfig) -> tuple[PairModel, dict[str, float]]:
    model = build_network(
        ModelConfig(
            "graphsage",
            layers=1,
            hidden=16,
            dropout=0.0,
            layer_norm=False,
            node_embeddings=True,
            decoder="distmult",
            embedding=8,
            learned_rows=False,
        ),
        graph,
        find_target(graph, config),
        config.seed,
    )
    assert isinstance(model, PairModel)
    fit(model, graph, config)
    pairs = graph.pairs
    assert pairs is not None
    embeddings = predict(model, graph, kind="all")
    return model, score_values(EmbeddedValues(model.decoder, embeddings, pairs), pairs, "test")


@pytest.mark.parametrize("pair_batches", ["pairs", "nodes"])
def test_numbers_are_learned_far_beyond_their_mean(pair_batches: str) -> None:
    graph = split_pairs(movies(), "user-rated-item.rating", (0.7, 0.1, 0.2))
    config = TrainConfig(
        estimator="exact", epochs=30, batch_size=50, pair_batches=pair_batches, patience=0
    )
    _, scores = trained(graph, config)
    assert graph.pairs is not None
    usual = score_values(GlobalMean(graph.pairs), graph.pairs, "test")
    assert scores["rmse"] < 0.5 * usual["rmse"]


def test_classes_are_learned() -> None:
    graph = split_pairs(movies(classes=True), "user-rated-item.rating", (0.7, 0.1, 0.2))
    config = TrainConfig(estimator="exact", epochs=30, batch_size=50, patience=0)
    _, scores = trained(graph, config)
    assert scores["accuracy"] > 0.7


def test_the_usual_metric_is_the_error_and_smaller_is_better() -> None:
    graph = split_pairs(movies(), "user-rated-item.rating")
    target = find_target(graph, TrainConfig())
    assert target.metric.title == "RMSE"
    assert target.better(0.8, 0.9)
    assert target.name == "values of user-rated-item.rating, mse"
