"""A perceptron on the columns of `HopInputs` or `RelationInputs`: one hidden layer, trained for a
few seconds.

    outputs = W2 dropout(relu(norm(W1 dropout(inputs) + b1))) + b2

Trained by AdamW on minibatches of training nodes. Scores are those of weights averaged over about
one epoch; the epoch that is the best on the validation nodes is kept.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.baselines.baseline import Baseline
from vrgcn.baselines.hop_inputs import INPUTS, HopInputs
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.relation_inputs import INPUTS as RELATION_INPUTS
from vrgcn.baselines.relation_inputs import RelationInputs, fit_columns
from vrgcn.files.kinds import COUNT, POSITIVE
from vrgcn.models.optimizers import uncompiled

_HIDDEN = 256
_DROPOUT, _INPUT_DROPOUT = 0.5, 0.25
_RATE, _DECAY = 3e-3, 1e-4
_EPOCHS, _PATIENCE = 60, 10
_BATCH = (16, 256)  # nodes of a minibatch: an eighth of the training nodes within these bounds
_WORK = 1e11  # multiplications at most: fewer epochs where each takes many
_NAMES = ("first", "bias", "gain", "shift", "second", "last")


class Perceptron(Baseline):
    """hops, components, spectral, label_hops, known: see `HopInputs`; hidden: width"""

    kinds: ClassVar = {
        **dict.fromkeys(("in_features", "classes", "hidden"), POSITIVE),
        **dict.fromkeys(INPUTS, COUNT),
    }

    def __init__(self, in_features: int, classes: int, *, hidden: int, **inputs: Any) -> None:
        super().__init__(in_features=in_features, classes=classes, hidden=hidden, **inputs)
        self.inputs = self._made(in_features, classes, inputs)
        shapes = ((self.inputs.columns, hidden), *3 * ((hidden,),), (hidden, classes), (classes,))
        for name, shape in zip(_NAMES, shapes, strict=True):
            self.make(name, *shape)

    def _made(
        self, in_features: int, classes: int, inputs: dict[str, Any]
    ) -> HopInputs | RelationInputs:
        return HopInputs(in_features, classes, **inputs)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        rows = self.inputs(x, propagate)
        scaled: Tensor = self.output_scale(_outputs(rows, [getattr(self, n) for n in _NAMES]))
        return scaled


class RelationPerceptron(Perceptron):
    """kinds, narrow, relations, target, hops: see `RelationInputs`; hidden: width"""

    propagation = "mean"
    kinds: ClassVar = {
        **dict.fromkeys(("in_features", "classes", "hidden"), POSITIVE),
        **RELATION_INPUTS,
    }

    def _made(self, in_features: int, classes: int, inputs: dict[str, Any]) -> RelationInputs:
        return RelationInputs(**inputs)


def _outputs(
    rows: Tensor, weights: list[Tensor], generator: torch.Generator | None = None
) -> Tensor:
    """(rows, outputs); with dropout if there is a generator to draw it by."""
    first, bias, gain, shift, second, last = weights

    def dropped(x: Tensor, p: float) -> Tensor:
        if generator is None:
            return x
        return x * torch.empty_like(x).bernoulli_(1 - p, generator=generator) / (1 - p)

    h = torch.addmm(bias, dropped(rows, _INPUT_DROPOUT), first)
    h = F.layer_norm(h, h.shape[1:], gain, shift).relu()
    return torch.addmm(last, dropped(h, _DROPOUT), second)


def fit_perceptron(problem: Problem, hops: int = 2, *, tables: bool = False) -> Perceptron:
    """Train until the validation score has not improved for some epochs.

    tables: it reads singular vectors of the adjacency matrix and labels of neighbours too
    """
    graph = problem.graph
    columns = fit_columns(problem, hops, tables=tables)
    inputs, train, val = columns.inputs, columns.train, columns.val
    labels = problem.labels[columns.places]
    kind = RelationPerceptron if isinstance(inputs, RelationInputs) else Perceptron
    model = kind(graph.num_features, problem.outputs, hidden=_HIDDEN, **inputs.arguments)
    model.inputs = inputs
    problem.criterion().prepare(model)
    generator = torch.Generator().manual_seed(problem.seed)
    weights = [w.requires_grad_() for w in _drawn(model, train.dtype, generator)]
    size = min(_BATCH[1], max(_BATCH[0], len(train) // 8))
    steps = -(-len(train) // size)
    work = 3 * len(train) * _HIDDEN * (train.shape[1] + problem.outputs)
    epochs = int(min(_EPOCHS, max(5, _WORK / work)))
    optimizer = uncompiled(torch.optim.AdamW)(weights, lr=_RATE, weight_decay=_DECAY)
    criterion, average, step = problem.criterion(), [w.detach().clone() for w in weights], 0
    kept, best, looks = [w.clone() for w in average], float("nan"), 0
    for _ in range(epochs):
        for batch in torch.randperm(len(train), generator=generator).split(size):
            optimizer.zero_grad()
            outputs = model.output_scale(_outputs(train[batch], weights, generator))
            criterion(outputs, labels[batch]).mean().backward()
            optimizer.step()
            step += 1
            share = max(1 / max(steps, 10), 1 / (step + 1))
            with torch.no_grad():
                for mean, weight in zip(average, weights, strict=True):
                    mean.lerp_(weight, share)
        with torch.no_grad():
            score = problem.score(model.output_scale(_outputs(val, average)))
        looks += 1
        if problem.better(score, best):
            kept, best, looks = [w.clone() for w in average], score, 0
        if looks >= _PATIENCE or problem.over():
            break
    for name, tensor in zip(_NAMES, kept, strict=True):
        model.fill(name, tensor)
    return model


def _drawn(model: Perceptron, dtype: torch.dtype, generator: torch.Generator) -> list[Tensor]:
    """Weights before the first step: uniform, by the number of inputs."""
    weights = []
    for name in _NAMES:
        shape = getattr(model, name).shape
        if name in ("first", "second"):
            bound = shape[0] ** -0.5
            weights.append((2 * torch.rand(shape, generator=generator, dtype=dtype) - 1) * bound)
        else:
            weights.append(torch.full(shape, float(name == "gain"), dtype=dtype))
    return weights
