"""Minibatches of pairs: what they keep in tables."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.theory.test_pairs import kinds_model
from vrgcn import Graph, TrainConfig, fit, split_pairs


def test_a_minibatch_without_items_writes_a_checkpoint_and_resumes_to_the_same_bits(
    tmp_path: Path,
) -> None:
    """Users of a minibatch without items have no shared negative."""
    users = torch.arange(60)
    graph = split_pairs(
        Graph.from_kinds(
            {"user": torch.randn(60, 3, generator=torch.Generator().manual_seed(0)), "item": 5},
            {("user", "liked", "item"): torch.stack([users.repeat(2), torch.arange(120) % 5])},
        ),
        "user-liked-item",
    )
    settings = {
        **{"pair_batches": "nodes", "negative_sampling": "shared", "negatives": 4},
        **{"loss": "softmax", "batch_size": 4, "estimator": "two-way", "diagnostics": 0},
    }
    whole, parted = (kinds_model(graph, "lightgcn", "cosine").float() for _ in range(2))
    fit(whole, graph, TrainConfig(epochs=3, **settings))
    for epochs in (2, 3):
        config = TrainConfig(epochs=epochs, checkpoint_every="1", **settings)
        given = {"checkpoints": tmp_path / "run"} if epochs == 2 else {"resume": tmp_path / "run"}
        fit(parted, graph, config, **given)
    for one, other in zip(whole.parameters(), parted.parameters(), strict=True):
        assert torch.equal(one, other)
