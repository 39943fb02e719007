"""How often nodes are in training pairs: what chance alone says of a pair, for the decoder `lift`.

A softmax whose negatives count as often as they have pairs learns log p(v | u) / p(v), up to a
constant: how much more often u has v than by chance. So a ranking adds log p(v). That of the source
changes no order of its targets; with it, scores of pairs of different sources compare.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vrgcn.graph.pairs import Pairs


def log_counts(pairs: Pairs, nodes: int) -> Tensor:
    """(nodes,) log of the number of training pairs of each node; 0 for a node without any."""
    counts = torch.bincount(pairs.train.flatten(), minlength=nodes)
    return counts.clamp(min=1).float().log()


def negative_weights(logs: Tensor, targets: range) -> Tensor:
    """(nodes,) logs of weights of negatives: their numbers of pairs, 1 on average over targets."""
    mean = logs[targets.start : targets.stop].exp().mean().log()
    return logs - mean
