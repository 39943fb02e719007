"""How often nodes are in training pairs: what chance alone says of a pair, for the decoder `lift`.

A softmax whose negatives count as often as they have pairs learns log p(v | u) / p(v), up to a
constant: how much more often u has v than by chance. So a ranking adds log p(v). That of the source
changes no order of its targets; with it, scores of pairs of different sources compare.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vrgcn.graph.pairs import Pairs


def log_counts(pairs: Pairs, nodes: int) -> Tensor:
    """(nodes,) log of the number of training pairs of each node; 0 for a node without any."""
    counts = torch.bincount(pairs.train.flatten(), minlength=nodes)
    return counts.clamp(min=1).float().log()


_SHARE = 0.95  # of the training pairs whose lift a cosine can express
_LARGEST = 1.0  # temperature, of relations in which nearly all pairs are linked


def usual_temperature(pairs: Pairs) -> float:
    """The temperature t at which cosine / t can express the log lift of most training pairs. By
    chance u and v would have c(u) c(v) / n of the n pairs, of pairs without a direction half of
    that; they have one."""
    logs = log_counts(pairs, pairs.num_nodes)
    u, v = pairs.train.t()
    count = len(pairs.train) * (1 if pairs.directed else 2)
    lifts = (math.log(count) - logs[u] - logs[v]).sort().values
    most = float(lifts[int(_SHARE * (len(lifts) - 1))])
    return 1 / max(most, 1 / _LARGEST)


def negative_weights(logs: Tensor, targets: range) -> Tensor:
    """(nodes,) logs of weights of negatives: their numbers of pairs, 1 on average over targets."""
    mean = logs[targets.start : targets.stop].exp().mean().log()
    return logs - mean
