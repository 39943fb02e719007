"""Small graphs of each task, whose neighbours tell more than a node's own features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph

TASKS = ("classes", "multilabel", "regression")


def small(
    task: str = "classes", *, nodes: int = 240, classes: int = 3, sparse: bool = False, **given: Any
) -> Graph:
    """Communities in a ring: most neighbours are of a node's own community.

    given: other labels and splits, by name
    """
    generator = torch.Generator().manual_seed(7)
    group = torch.arange(nodes) % classes
    source = torch.arange(nodes).repeat_interleave(4)
    step = classes * torch.randint(1, 15, source.shape, generator=generator)
    target = (source + step) % nodes
    features = torch.randn(nodes, 6, generator=generator)
    features[:, :classes] += 0.8 * torch.eye(classes)[group]
    if sparse:
        features = (features > 1).float().to_sparse_csr()
    order = torch.randperm(nodes, generator=generator)
    third = nodes // 3
    splits = {"train": order[:third], "val": order[third : 2 * third], "test": order[2 * third :]}
    return Graph(
        torch.stack([source, target]),
        features,
        **{"labels": labels_of(task, group), "undirected": True, "task": task, **splits} | given,
    )


def labels_of(task: str, group: Tensor) -> Tensor:
    if task == "classes":
        return group
    if task == "multilabel":
        return torch.stack([group == 0, group <= 1], dim=1).float()
    return 1000.0 + 10.0 * group.double()
