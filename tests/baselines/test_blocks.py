"""Baselines take features in blocks as they take the matrix that the blocks stand for."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.problems import small
from vrgcn.baselines import RECIPES, quick
from vrgcn.baselines.problem import Problem
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import num_entries
from vrgcn.inference.predict import predict
from vrgcn.tasks.metrics import METRICS


def graph(tags: int) -> Graph:
    """Numbers that say a little, and many tags of which the first three tell the class."""
    plain = small()
    assert plain.labels is not None
    generator = torch.Generator().manual_seed(1)
    noise = (torch.rand(plain.num_nodes, tags, generator=generator) < 0.01).float()
    noise[:, :3] = torch.eye(3)[plain.labels]
    return plain.with_features(Blocks.beside([plain.features, noise.to_sparse_csr()]))


@pytest.mark.parametrize(
    ("name", "tags"),
    [*((name, 700) for name in RECIPES), ("trees", 20)],  # 20: without an SVD
)
def test_every_baseline_is_fitted_to_blocks(name: str, tags: int) -> None:
    blocks = graph(tags)
    assert blocks.labels is not None
    problem = Problem.of(blocks, METRICS["accuracy"])
    model = RECIPES[name].fit(problem)
    outputs = predict(model, blocks)
    dense = predict(model, blocks.with_features(blocks.features.to_dense()))
    assert torch.allclose(outputs, dense, atol=1e-4)
    right = (outputs.argmax(1) == blocks.labels)[blocks.test].float().mean()
    assert right > (0.95 if "linear" in name else 0.6)


def test_the_work_of_a_quick_baseline_counts_what_is_stored() -> None:
    blocks = graph(700)
    assert num_entries(blocks.features) < 0.03 * blocks.features.numel()
    dense = blocks.with_features(blocks.features.to_dense())
    assert quick._work(blocks, 0, 3) < 0.03 * quick._work(dense, 0, 3)
