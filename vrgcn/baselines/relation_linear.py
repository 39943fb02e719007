"""A linear model of graphs with several kinds: each relation has weights of its own.

    outputs = [x, P_r x, log(1 + degree_r), ...] W + b          the columns of `RelationInputs`

Columns are standardised, which makes the penalty the same for all, or have the size that they are
given; the form that is better on the validation nodes is taken (solving.py).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from vrgcn.baselines.baseline import Baseline
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.relation_inputs import INPUTS, FittedRows, RelationInputs, fit_columns
from vrgcn.baselines.solving import Outputs, System, fit_best
from vrgcn.files.kinds import POSITIVE


class RelationLinear(Baseline):
    """kinds, narrow, relations, target, hops: see `RelationInputs`"""

    propagation = "mean"
    kinds: ClassVar = {**dict.fromkeys(("in_features", "classes"), POSITIVE), **INPUTS}
    weights: Tensor
    bias: Tensor

    def __init__(self, in_features: int, classes: int, **inputs: Any) -> None:
        super().__init__(in_features=in_features, classes=classes, **inputs)
        self.inputs = RelationInputs(**inputs)
        self.make("weights", self.inputs.columns, classes)
        self.make("bias", classes)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        h = self.inputs(x, propagate) @ self.weights + self.bias
        scaled: Tensor = self.output_scale(h)
        return scaled


def fit_relation_linear(problem: Problem, hops: int) -> Baseline:
    """The linear model of a problem on a graph of several kinds."""
    columns = fit_columns(problem, hops)
    problem = replace(problem, labels=problem.labels[columns.places])
    forms = [partial(_system, problem, columns, evened=evened) for evened in (True, False)]
    return fit_best(problem, forms)


def _system(problem: Problem, columns: FittedRows, *, evened: bool) -> System:
    inputs = columns.inputs
    assert isinstance(inputs, RelationInputs)
    sizes = torch.ones_like(inputs.scale) if evened else 1 / inputs.scale
    train, val = columns.train * sizes, columns.val * sizes

    def of(rows: Tensor) -> Outputs:
        return lambda weights, bias: rows @ weights + bias

    def model(weights: Tensor, bias: Tensor) -> RelationLinear:
        found = RelationLinear(problem.graph.num_features, problem.outputs, **inputs.arguments)
        problem.criterion().prepare(found)
        found.inputs = inputs
        found.fill("weights", weights * sizes[:, None])
        found.fill("bias", bias)
        return found

    start = train.new_zeros(train.shape[1], problem.outputs)
    return System(of(train), of(val), start, train.numel(), model)
