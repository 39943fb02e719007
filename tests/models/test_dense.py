"""Sparse features that are centred in the layer that reads them: as the dense ones would be."""

from __future__ import annotations

import io

import pytest
import torch
from torch import Tensor

from vrgcn import Graph, ModelConfig, TrainConfig, fit, predict
from vrgcn.costs.order import build_for
from vrgcn.graph.blocks import Blocks
from vrgcn.models.dense import InputLinear, standardise_inputs
from vrgcn.runs.auto_settings import by_counts

NODES, WORDS = 60, 40
TRAIN = torch.arange(30)


def words(seed: int = 0) -> Tensor:
    """(nodes, words), none below zero; some words are more frequent."""
    generator = torch.Generator().manual_seed(seed)
    share = torch.linspace(0.05, 0.9, WORDS)
    x = (torch.rand(NODES, WORDS, generator=generator) < share).float()
    return x / x.sum(1, keepdim=True)


def graph_of(features: Tensor, **given: object) -> Graph:
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(NODES, (2, 150), generator=generator)
    splits = {"train": TRAIN, "val": torch.arange(30, 45), "test": torch.arange(45, NODES)}
    return Graph(edges, features, torch.arange(NODES) % 3, undirected=True, **splits, **given)  # type: ignore[arg-type]


def standardised(x: Tensor) -> Tensor:
    """By the definition: mean 0 over the training nodes, and the variances' mean 1."""
    apart = x - x[TRAIN].mean(0)
    return apart / apart[TRAIN].square().mean().sqrt()


def layer(x: Tensor, nodes: Tensor = TRAIN, width: int = WORDS) -> InputLinear:
    torch.manual_seed(3)
    made = InputLinear(width, 4)
    standardise_inputs(made, x, nodes)
    return made


def test_a_layer_reads_centred_features_and_they_stay_sparse() -> None:
    x = words()
    made = layer(x.to_sparse_csr())
    wanted = standardised(x) @ made.weight
    torch.testing.assert_close(made(x.to_sparse_csr()), wanted, atol=1e-5, rtol=1e-4)
    assert made.scale is not None
    assert made.scale.dim() == 0
    left, right = layer(x.to_sparse_csr(), width=2 * WORDS), x.to_sparse_csr()
    both = torch.cat([standardised(x), standardised(x)], 1) @ left.weight
    found = left.with_bias(sum(left.products(right, right)))  # type: ignore[arg-type]
    torch.testing.assert_close(found, both, atol=1e-5, rtol=1e-4)


def test_dense_columns_beside_sparse_ones_stay_as_they_are() -> None:
    x, numbers = words(), torch.randn(NODES, 3, generator=torch.Generator().manual_seed(5))
    both = Blocks.beside([numbers, x.to_sparse_csr()])
    made = layer(both, width=3 + WORDS)
    wanted = torch.cat([numbers, standardised(x)], 1) @ made.weight
    torch.testing.assert_close(made(both), wanted, atol=1e-5, rtol=1e-4)
    left = layer(both, width=2 * (3 + WORDS))
    found = left.with_bias(sum(left.products(both, both)))  # type: ignore[arg-type]
    wanted = torch.cat([numbers, standardised(x)] * 2, 1) @ left.weight
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_only_training_nodes_are_learned_from() -> None:
    x, other = words(), words()
    other[30:] = words(seed=9)[30:]
    one, two = (layer(each.to_sparse_csr()) for each in (x, other))
    assert one.centre is not None
    assert two.centre is not None
    assert torch.equal(one.centre, two.centre)
    torch.testing.assert_close(one.centre, x[TRAIN].mean(0))
    assert one.scale == two.scale


@pytest.mark.parametrize("features", ["dense", "empty"])
def test_other_features_are_read_as_they_are(features: str) -> None:
    x = words()
    if features == "empty":  # the training nodes have no words
        x[TRAIN] = 0
        x = x.to_sparse_csr()
    assert layer(x).centre is None


@pytest.mark.parametrize("model", ["gcn", "graphsage", "residual", "mlp"])
@pytest.mark.parametrize("order", ["always", "never"])
def test_a_trained_model_is_saved_with_its_centre(model: str, order: str) -> None:
    if model == "residual" and order == "always":
        return
    graph = graph_of(words().to_sparse_csr())
    config = ModelConfig(model=model, hidden=8, centre_features=True, transform_first=order)  # type: ignore[arg-type]
    made = build_for(config, graph, 3, seed=0)
    fit(made, graph, TrainConfig(epochs=2, batch_size=10, estimator="two-way", seed=1))
    kept = io.BytesIO()
    torch.save(made.state_dict(), kept)
    kept.seek(0)
    again = build_for(ModelConfig(**{**vars(config), "centre_features": False}), graph, 3, seed=5)
    before = predict(again, graph)
    again.load_state_dict(torch.load(kept))
    wanted = predict(made, graph)
    assert torch.equal(predict(again, graph), wanted)
    assert not torch.allclose(before, wanted)


def test_the_order_of_products_makes_no_difference() -> None:
    graph = graph_of(words().to_sparse_csr())
    outputs = []
    for order in ("always", "never"):
        config = ModelConfig(model="gcn", centre_features=True, transform_first=order)  # type: ignore[arg-type]
        made = build_for(config, graph, 3, seed=0)
        assert made.layers[0].linears[0].centre is not None  # type: ignore[index,union-attr]
        outputs.append(predict(made, graph))
    torch.testing.assert_close(*outputs, atol=1e-4, rtol=1e-4)


def test_features_are_centred_unless_labels_are_few_weights_decay_or_rows_are_learned() -> None:
    graph = graph_of(words().to_sparse_csr())
    few = graph.replace(train=torch.arange(3))

    def settled(which: Graph, learned: bool = False, **given: float) -> bool | None:
        config = ModelConfig(model="graphsage", centre_features=None, learned_rows=learned)
        return by_counts(config, TrainConfig(**given), which)[0].centre_features  # type: ignore[arg-type]

    assert settled(graph) is True
    assert settled(graph, weight_decay=0.001) is False
    assert settled(few) is False
    assert settled(graph, learned=True) is False
    asked = ModelConfig(model="graphsage", centre_features=True)
    assert by_counts(asked, TrainConfig(), few)[0].centre_features is True


def test_one_step_of_adam_moves_what_tells_nodes_apart_not_all_nodes_alike() -> None:
    """Why: with the weights' usual size, a step of 0.01 of each weight moves all nodes' rows
    together several times as far as they are apart; of centred features, by a part of it."""
    x = words().to_sparse_csr()
    moved = {}
    for name, nodes in (("as they are", TRAIN[:0]), ("centred", TRAIN)):
        made = layer(x, nodes)
        before = made(x).detach()
        with torch.no_grad():
            made.weight += 0.1
        apart = (before - before.mean(0)).square().mean().sqrt()
        moved[name] = float((made(x).detach() - before).mean(0).abs().mean() / apart)
    assert moved["as they are"] > 2
    assert moved["centred"] < 0.2 * moved["as they are"]
