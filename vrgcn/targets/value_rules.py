"""Values of pairs, such as ratings: their scores, and simple rules."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.value_decoders import ValueDecoder
from vrgcn.targets.ranking import EmbeddedEdges
from vrgcn.tasks.metrics import METRICS, LabelMetric

OF_NUMBERS = ("rmse", "mae")
OF_CLASSES = ("accuracy",)
_DAMPING = 5.0  # edges that speak for no bias at all
_ROUNDS = 20  # of fitting biases of sources and targets in turn


class EmbeddedValues(EmbeddedEdges):
    """Values by a decoder and the embeddings of all nodes, within the range of training values."""

    def score(self, pairs: Tensor) -> Tensor:
        assert isinstance(self.decoder, ValueDecoder)
        found = super().score(pairs)
        if not len(pairs) and self.decoder.classes:
            return found.new_zeros(0, self.decoder.classes)
        return self.decoder.within(found)


class ValueScorer(Protocol):
    """Says the value of pairs."""

    def score(self, pairs: Tensor) -> Tensor:
        """(pairs,) numbers, or (pairs, classes) scores, of (pairs, 2)."""


def value_metrics(pairs: Pairs) -> dict[str, LabelMetric]:
    """The scores of a predicted column, by name."""
    assert pairs.target is not None
    return {name: METRICS[name] for name in (OF_CLASSES if pairs.target.classes else OF_NUMBERS)}


def score_values(scorer: ValueScorer, pairs: Pairs, split: str) -> dict[str, float]:
    """The scores of a split's values by name."""
    found = scorer.score(pairs.split(split)).cpu()
    outputs = found if found.dim() == 2 else found[:, None]
    values = pairs.values[split]
    return {name: metric.compute(outputs, values) for name, metric in value_metrics(pairs).items()}


class GlobalMean:
    """The mean of all training values."""

    def __init__(self, pairs: Pairs) -> None:
        self.mean = float(pairs.values["train"].mean())

    def score(self, pairs: Tensor) -> Tensor:
        return torch.full((len(pairs),), self.mean, dtype=torch.float64)


class EndMean:
    """The mean value of a node's training pairs; of a node without any, the mean of all.

    end: 0 for the source, 1 for the target
    """

    def __init__(self, pairs: Pairs, end: int) -> None:
        values, nodes = pairs.values["train"], pairs.train[:, end]
        sums = torch.zeros(pairs.num_nodes, dtype=torch.float64).index_add_(0, nodes, values)
        counts = torch.bincount(nodes, minlength=pairs.num_nodes)
        usual = float(values.mean())
        self.means = torch.where(counts > 0, sums / counts.clamp(min=1), usual)
        self.end = end

    def score(self, pairs: Tensor) -> Tensor:
        return self.means[pairs[:, self.end]]


class Biases:
    """The mean, a bias of the source and one of the target: least squares, damped, in turns."""

    def __init__(self, pairs: Pairs) -> None:
        values = pairs.values["train"]
        self.mean = float(values.mean())
        counts = [torch.bincount(ends, minlength=pairs.num_nodes) for ends in pairs.train.t()]
        self.biases = [torch.zeros(pairs.num_nodes, dtype=torch.float64) for _ in range(2)]
        rest = values - self.mean
        for _ in range(_ROUNDS):
            for end in range(2):
                nodes, others = pairs.train[:, end], pairs.train[:, 1 - end]
                left = rest - self.biases[1 - end][others]
                sums = torch.zeros_like(self.biases[end]).index_add_(0, nodes, left)
                self.biases[end] = sums / (counts[end] + _DAMPING)

    def score(self, pairs: Tensor) -> Tensor:
        return self.mean + self.biases[0][pairs[:, 0]] + self.biases[1][pairs[:, 1]]


class MostFrequent:
    """The class that most training pairs have; of a node's pairs, if an end is given.

    end: 0 for the source, 1 for the target; None for all pairs
    """

    def __init__(self, pairs: Pairs, end: int | None = None) -> None:
        assert pairs.target is not None
        classes, values = len(pairs.target.classes), pairs.values["train"]
        all_counts = torch.bincount(values, minlength=classes).double()
        nodes = pairs.num_nodes if end is not None else 1
        ends = pairs.train[:, end] if end is not None else torch.zeros_like(values)
        counts = torch.bincount(ends * classes + values, minlength=nodes * classes)
        # Ties, and nodes without pairs, go by what is frequent among all.
        self.counts = counts.view(nodes, classes) + all_counts / (2 * all_counts.sum())
        self.end = end

    def score(self, pairs: Tensor) -> Tensor:
        ends = pairs[:, self.end] if self.end is not None else torch.zeros_like(pairs[:, 0])
        return self.counts[ends]


def value_rules(pairs: Pairs) -> dict[str, ValueScorer]:
    """The simple rules of a predicted column, by name. They see only training pairs."""
    assert pairs.target is not None
    source, target = pairs.kinds
    if source == target:
        source, target = "source", "target"
    if pairs.target.classes:
        return {
            "most frequent": MostFrequent(pairs),
            f"most frequent of the {source}": MostFrequent(pairs, 0),
            f"most frequent of the {target}": MostFrequent(pairs, 1),
        }
    return {
        "mean": GlobalMean(pairs),
        f"mean of the {source}": EndMean(pairs, 0),
        f"mean of the {target}": EndMean(pairs, 1),
        f"biases of {source} and {target}": Biases(pairs),
    }
