"""Training on pairs: by both ways, to the same bits when resumed, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from tests.messages import refused
from vrgcn.graph.graph import Graph
from vrgcn.models.models import GCN
from vrgcn.pairs.batches import PARTNERS
from vrgcn.pairs.model import PairModel
from vrgcn.runs.fit import fit
from vrgcn.targets.opening import find_target
from vrgcn.targets.pair_split import split_pairs
from vrgcn.training.config import TrainConfig
from vrgcn.training.state import TrainState
from vrgcn.training.trainer import Trainer

CONFIG = TrainConfig(estimator="cvd", epochs=3, batch_size=32, seed=3)


def communities(nodes: int = 120) -> Graph:
    """Four communities whose nodes are linked within them alone, and features that hint at them."""
    generator = torch.Generator().manual_seed(0)
    source = torch.arange(nodes).repeat_interleave(4)
    target = (source + 4 * torch.randint(1, nodes // 4, source.shape, generator=generator)) % nodes
    features = torch.randn(nodes, 8, generator=generator)
    features[:, :4] += torch.eye(4)[torch.arange(nodes) % 4]
    return split_pairs(Graph(torch.stack([source, target]), features, undirected=True))


def model_of(graph: Graph, decoder: str = "dot", **settings: Any) -> PairModel:
    torch.manual_seed(0)
    settings = {"dropout": 0.0, "layer_norm": False, **settings}
    return PairModel(
        "gcn",
        decoder,
        relation="edges",
        directed=False,
        in_features=graph.num_features,
        hidden=16,
        classes=8,
        **settings,
    )


@pytest.mark.parametrize(
    ("way", "estimator", "decoder", "loss"),
    [
        ("nodes", "exact", "dot", "logistic"),
        ("nodes", "cvd", "distmult", "bpr"),
        ("nodes", "two-way", "mlp", "softmax"),
        ("pairs", "ns", "dot", "softmax"),
        ("pairs", "cvd", "mlp", "logistic"),
    ],
)
def test_communities_are_found(way: Any, estimator: str, decoder: str, loss: Any) -> None:
    graph = communities()
    config = replace(CONFIG, estimator=estimator, pair_batches=way, loss=loss, epochs=12)
    result = fit(model_of(graph, decoder), graph, config)
    assert result.metric.title == "AUC"
    assert result.test is not None
    assert result.test > 0.7  # features alone, by an untrained model: 0.6
    assert result.curve[-1].loss < result.curve[0].loss


def resumed(config: TrainConfig, steps: int, **settings: Any) -> tuple[TrainState, TrainState]:
    """The states at the end of a run, and of one that was taken up after some steps."""
    graph = communities()
    whole = Trainer(model_of(graph, **settings), graph, config, find_target(graph, config))
    taken: TrainState | None = None
    while whole.advance():
        if whole.minibatches.step == steps:
            taken = whole.state()
    assert taken is not None
    other = Trainer(model_of(graph, **settings), graph, config, find_target(graph, config))
    other.restore(taken)
    while other.advance():
        pass
    return whole.state(), other.state()


@pytest.mark.parametrize("way", ["nodes", "pairs"])
@pytest.mark.parametrize("steps", [4, 6])
def test_a_run_that_is_taken_up_between_two_steps_ends_in_the_same_bits(
    way: Any, steps: int
) -> None:
    config = replace(CONFIG, pair_batches=way, negatives=2)
    first, second = resumed(config, steps, decoder="mlp", dropout=0.3)
    for part in ("model", "histories"):
        one, other = getattr(first, part), getattr(second, part)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert [p.val for p in first.progress.curve] == [p.val for p in second.progress.curve]
    assert any(f".{PARTNERS}." in name for name in first.histories) == (way == "nodes")


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    graph = communities()
    results = [
        fit(model_of(graph), graph, replace(CONFIG, seed=seed)).weights for seed in (3, 3, 4)
    ]
    first, again, other = (torch.cat([w.flatten() for w in r.values()]) for r in results)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_collapse_is_reported() -> None:
    class Alike(PairModel):
        def forward(self, x: torch.Tensor, propagate: Any) -> torch.Tensor:
            return super().forward(x, propagate) * 1e-6 + 1

    graph = communities()
    torch.manual_seed(0)
    model = Alike(
        "gcn", relation="edges", directed=False, in_features=8, hidden=4, classes=4, dropout=0.0
    )
    notes: list[str] = []
    result = fit(model, graph, replace(CONFIG, pair_batches="pairs"), on_note=notes.append)
    assert any("the embeddings have collapsed" in note for note in notes)
    assert result.test is not None


def test_what_pairs_cannot_be_trained_with_is_refused() -> None:
    graph = communities()
    two_way = replace(CONFIG, estimator="two-way", pair_batches="pairs")
    with refused():
        fit(model_of(graph), graph, two_way)
    with refused():
        fit(GCN(8, 4, 4), graph, CONFIG)
    with refused():
        fit(model_of(graph), graph, replace(CONFIG, loss="mae"))
    with refused():
        fit(model_of(graph), graph, replace(CONFIG, metric="accuracy"))
    with refused():
        fit(model_of(graph), graph, replace(CONFIG, label_smoothing=0.1))
    numbers = torch.arange(120.0)
    labelled = Graph(
        graph.edge_index(), graph.features, numbers, task="regression", train=torch.arange(9)
    )
    with refused():
        fit(GCN(8, 4, 1), labelled, replace(CONFIG, loss="bpr"))


def test_a_model_whose_last_layers_are_not_known_trains_by_minibatches_of_pairs() -> None:
    class Own(nn.Module):
        def __init__(self, inner: PairModel) -> None:
            super().__init__()
            self.inner, self.decoder = inner, inner.decoder

        def forward(self, x: torch.Tensor, propagate: Any) -> torch.Tensor:
            embedded: torch.Tensor = self.inner(x, propagate)
            return embedded

    graph = communities()
    with refused():
        fit(Own(model_of(graph)), graph, replace(CONFIG, pair_batches="nodes"))
    result = fit(Own(model_of(graph)), graph, CONFIG)
    assert len(result.curve) == 3
