"""LightGCN and models with a learned row for each node, against the formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.theory.problems import FEATURES, dense_matrix, error, random_graph
from vrgcn import predict
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import build_propagation
from vrgcn.models.lightgcn import LightGCN
from vrgcn.models.models import GCN, GraphSAGE
from vrgcn.models.optimizers import RowAdam
from vrgcn.training.config import TrainConfig
from vrgcn.training.optimizer import build_optimizer

GRAPH = random_graph()
WIDTH = 6


def light(in_features: int, layers: int = 3) -> LightGCN:
    torch.manual_seed(layers)
    return LightGCN(in_features, WIDTH, nodes=GRAPH.num_nodes, layers=layers).double()


def symmetric(graph: Graph) -> Tensor:
    sources, targets = graph.edge_index()
    A = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    A[targets, sources] = graph.adjacency.weights(torch.float64)
    rows, columns = (torch.where(A.sum(n) > 0, A.sum(n), 1) for n in (1, 0))
    return A / (rows[:, None] * columns[None]).sqrt()


def test_symmetric_normalises_by_both_ends_without_loops() -> None:
    P = build_propagation("symmetric", GRAPH)
    assert error(P.to_dense(), symmetric(GRAPH)) < 1e-12


@pytest.mark.parametrize("estimator", ["exact", "cvd", "few/corrected/corrected/raw", "history"])
@pytest.mark.parametrize("layers", [1, 3])
def test_embeddings_are_the_mean_over_hops(layers: int, estimator: str) -> None:
    model = light(FEATURES, layers)
    P, E = symmetric(GRAPH), model.rows.rows
    assert model.encoder is not None
    h = [E + GRAPH.features @ model.encoder.weight]
    for _ in range(layers):
        h.append(P @ h[-1])
    wanted = torch.stack(h).mean(0).detach()
    assert error(predict(model, GRAPH), wanted) < 1e-12
    batches = MiniBatches(
        model, GRAPH, estimator=estimator, nodes="all", batch_size=13, history_dtype="float64"
    )
    for _ in range(layers):  # Theorem 1
        seen = {}
        for batch in batches:
            seen |= dict(zip(batch.nodes.tolist(), batch.run(model).detach(), strict=True))
            batch.commit()
    found = torch.stack([seen[node] for node in range(GRAPH.num_nodes)])
    assert error(found, wanted) < 1e-12


def test_a_graph_of_kinds_without_features_is_averaged_over_the_union_of_both_directions() -> None:
    users, items = torch.tensor([0, 0, 1, 2]), torch.tensor([0, 1, 1, 0])
    graph = Graph.from_kinds(
        {"user": 3, "item": 2}, {("user", "saw", "item"): torch.stack([users, items])}
    )
    model = LightGCN(graph.num_features, 4, nodes=5, layers=2)
    A = torch.zeros(5, 5)
    A[users, 3 + items] = A[3 + items, users] = 1
    root = A.sum(1).rsqrt()
    P, E = root[:, None] * A * root[None], model.rows.rows.detach()
    torch.testing.assert_close(predict(model, graph, kind="all"), (E + P @ E + P @ P @ E) / 3)


@pytest.mark.parametrize("kind", [GCN, GraphSAGE])
def test_node_embeddings_are_inputs_beside_the_features(kind: Any) -> None:
    torch.manual_seed(3)
    model = kind(
        FEATURES,
        8,
        WIDTH,
        dropout=0.0,
        layer_norm=False,
        node_embeddings=True,
        nodes=GRAPH.num_nodes,
    ).double()
    P = dense_matrix(GRAPH, kind.propagation)
    E, X = model.inputs.rows, GRAPH.features

    def gather(h: Tensor) -> Tensor:
        return P @ h if kind is GCN else torch.cat([h, P @ h], dim=1)

    first, last = (layer.linears[0].weight for layer in model.layers)
    h = torch.relu(gather(X) @ first.t() + gather(E) @ model.of_inputs.weight.t())
    wanted = (gather(h) @ last.t()).detach()
    assert error(predict(model, GRAPH), wanted) < 1e-12
    batches = MiniBatches(model, GRAPH, estimator="exact", nodes="all", batch_size=100)
    batch = batches.batch(torch.arange(GRAPH.num_nodes))
    (sparse,) = torch.autograd.grad(batch.run(model).square().sum(), [E])
    (dense,) = torch.autograd.grad((gather(h) @ last.t()).square().sum(), [E])
    assert error(sparse.to_dense(), dense) < 1e-12


def test_rows_that_are_the_input_learn_at_the_full_rate() -> None:
    optimizer = build_optimizer(light(0), TrainConfig(learning_rate=0.02))
    assert isinstance(optimizer, RowAdam)
    assert [group["lr"] for group in optimizer.param_groups] == [0.02]


@pytest.mark.parametrize("decoder", ["cosine", "lift"])
def test_a_run_with_lightgcn_is_saved_and_read_again(tmp_path: Path, decoder: str) -> None:
    from tests.pairs.test_relations import BOUGHT, store
    from vrgcn.data.store import save_graph
    from vrgcn.runs.run import load_run
    from vrgcn.runs.train import train

    save_graph(store(), tmp_path / "store")
    settings = {"model": "lightgcn", "decoder": decoder, "loss": "softmax", "embedding": 8}
    train(
        tmp_path / "store",
        predict=BOUGHT,
        out=tmp_path / "run",
        epochs=3,
        pair_batches="nodes",
        negative_sampling="shared",
        negatives=10,
        batch_size=16,
        **settings,
    )
    model: Any = load_run(tmp_path / "run").saved.model
    assert model.arguments["encoder"] == "lightgcn"
    assert model.encoder.rows.rows.shape == (64, 8)
    if decoder == "lift":
        assert model.encoder.prior.rows.max() > 0
