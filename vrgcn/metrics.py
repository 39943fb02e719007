"""Losses and scores, for one class per node and for several."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def loss_per_node(outputs: Tensor, labels: Tensor) -> Tensor:
    """(nodes,): softmax cross-entropy for labels (nodes,), mean sigmoid cross-entropy over the
    classes for labels (nodes, classes)."""
    if labels.dim() == 1:
        return F.cross_entropy(outputs, labels, reduction="none")
    loss = F.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype), reduction="none")
    return loss.mean(1)


def score(outputs: Tensor, labels: Tensor) -> float:
    """Accuracy for labels (nodes,), micro-F1 for labels (nodes, classes)."""
    if labels.dim() == 1:
        return float((outputs.argmax(1) == labels).double().mean())
    predicted, actual = outputs > 0, labels > 0
    hits = int((predicted & actual).sum())
    total = int(predicted.sum()) + int(actual.sum())
    return 2 * hits / total if total else 0.0


def score_name(labels: Tensor) -> str:
    return "accuracy" if labels.dim() == 1 else "micro-F1"


def check_outputs(outputs: Tensor, classes: int) -> None:
    """Refuse a model whose outputs cannot be compared with the labels."""
    if outputs.dim() != 2 or outputs.shape[1] != classes:
        raise ValueError(
            f"the model's output has shape {tuple(outputs.shape)}, and the graph {classes} "
            f"classes: it must be (nodes, {classes})"
        )
