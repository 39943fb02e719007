"""Runs in several threads of one process end as each does alone."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.theory.problems import random_graph
from vrgcn import Graph, GraphSAGE, TrainConfig, fit

GRAPH = random_graph(90, 5)


class Shared(nn.Module):
    """Draws from PyTorch's default generator, which all threads share."""

    propagation = "mean"

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, propagate: Callable[[Tensor], Tensor]) -> Tensor:
        h = torch.relu(self.first(x))
        return self.last(nn.functional.dropout(propagate(h), 0.4, self.training))


MODELS = {"our dropout": lambda: GraphSAGE(5, 8, 3, dropout=0.3), "PyTorch's dropout": Shared}


def graph() -> Graph:
    third = torch.arange(30)
    edges, x = GRAPH.edge_index(), GRAPH.features.float()
    return Graph(edges, x, GRAPH.labels, train=third, val=third + 30)


@pytest.mark.parametrize("name", MODELS)
def test_two_runs_in_two_threads_end_in_the_bits_of_each_alone(name: str) -> None:
    def train(seed: int, network: nn.Module) -> list[Tensor]:
        config = TrainConfig(epochs=12, batch_size=4, diagnostics=2, seed=seed, select="last")
        return list(fit(network, graph(), config).weights.values())

    def networks() -> list[nn.Module]:
        models = []
        for seed in range(2):
            torch.manual_seed(seed)
            models.append(MODELS[name]())
        return models

    alone = [train(seed, network) for seed, network in enumerate(networks())]
    together: dict[int, list[Tensor]] = {}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # as much back and forth as can be
    try:
        threads = [
            threading.Thread(target=lambda s=seed, n=network: together.update({s: train(s, n)}))
            for seed, network in enumerate(networks())
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for seed, weights in enumerate(alone):
        assert all(torch.equal(a, b) for a, b in zip(weights, together[seed], strict=True))
