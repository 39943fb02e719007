"""Networks for triples: without layers, and with the nodes' own rows added to their messages."""

from __future__ import annotations

import pytest
import torch

from tests.targets.test_triple_split import knowledge, store, triples_of
from vrgcn.costs.order import build_for
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict
from vrgcn.models.config import ModelConfig
from vrgcn.models.relational import RelationalModel
from vrgcn.pairs.heads import has_head
from vrgcn.pairs.model import PairModel
from vrgcn.runs.fit import fit
from vrgcn.targets.pair_split import split_pairs
from vrgcn.targets.triple_split import split_triples
from vrgcn.training.config import TrainConfig


def network(graph: Graph, **settings: object) -> RelationalModel:
    config = ModelConfig(model="graphsage", hidden=6, dropout=0.0, **settings)  # type: ignore[arg-type]
    built = build_for(config, graph, 6, seed=0)
    assert isinstance(built, RelationalModel)
    return built.eval()


def outputs(model: RelationalModel, graph: Graph) -> torch.Tensor:
    return predict(model, graph, kind="all")


def test_without_layers_embeddings_are_learned_rows_and_features_times_weights() -> None:
    graph = split_triples(store())
    model = network(graph, layers=0)
    assert model.encoder is not None
    items = graph.features.to_dense()[20:] @ model.encoder.weight
    (rows,) = (table.rows for table in model.rows)
    assert torch.allclose(outputs(model, graph), torch.cat([rows, items]), atol=1e-6)
    one = knowledge()
    rows_alone = network(split_triples(one), layers=0, bases=3)
    assert torch.equal(outputs(rows_alone, split_triples(one)), rows_alone.rows[0].rows)


def test_skip_adds_the_rows_of_nodes_to_the_messages_of_the_last_layer() -> None:
    graph = split_triples(knowledge())
    plain, skipping = (network(graph, layers=1, bases=2, skip=skip) for skip in (False, True))
    skipping.load_state_dict(plain.state_dict())
    wanted = outputs(plain, graph) + plain.rows[0].rows
    assert torch.allclose(outputs(skipping, graph), wanted, atol=1e-6)


@pytest.mark.parametrize("layers", [0, 1])
def test_pairs_of_one_relation_train_with_these_networks_too(layers: int) -> None:
    graph = split_pairs(store(), "user-bought-item")
    assert graph.pairs is not None
    encoder = network(graph, layers=layers, skip=True)
    model = PairModel.around(encoder, "dot", graph.pairs, 0)
    assert has_head(model, graph) == bool(layers)
    result = fit(model, graph, TrainConfig(epochs=2, batch_size=32, estimator="exact"))
    assert result.curve[-1].loss < result.curve[0].loss


def test_the_epoch_that_is_kept_has_the_best_filtered_mrr() -> None:
    graph = split_triples(knowledge(), (0.6, 0.2, 0.2))
    model = PairModel.around(network(graph, layers=0), "complex", triples_of(graph), 0)
    config = TrainConfig(epochs=4, batch_size=32, negatives=20, estimator="exact")
    result = fit(model, graph, config)
    assert result.metric.title == "MRR"
    best = max(point.val for point in result.curve if point.val is not None)
    assert result.val == best
