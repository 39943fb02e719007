"""Boosted trees on the columns of `HopInputs` or, of graphs with several kinds, `RelationInputs`: a
node's features, its neighbours' averages, ....

The trees are grown by LightGBM, or by scikit-learn where that is not installed, until the score on
the validation nodes has not improved for some rounds. Then they are tensors: for each node of each
tree a feature, a threshold, two branches; a leaf is its own branch. A row walks down all trees at
once, a level a step.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.baselines.baseline import Baseline
from vrgcn.baselines.boosting import (
    NEVER,
    Booster,
    Constant,
    Forest,
    LightBooster,
    ScikitBooster,
    SomeOutputs,
    joined,
    rounded_down,
)
from vrgcn.baselines.hop_inputs import INPUTS, HopInputs
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.relation_inputs import INPUTS as RELATION_INPUTS
from vrgcn.baselines.relation_inputs import RelationInputs, fit_columns
from vrgcn.files.kinds import COUNT, POSITIVE
from vrgcn.files.mistakes import InputError

_ROUNDS = 140  # maximum rounds of boosting; a round is a tree for each output
_ROUND = 20  # rounds between evaluations on the validation nodes
_PATIENCE = 2  # looks without a better score
_WORK = 3e9  # rows times columns times trees at most: fewer rounds where each takes many
_AT_ONCE = 1 << 22  # pairs of a row and a tree that walk together
_MOST_ROWS = 50_000  # that trees are grown on


class Trees(Baseline):
    """hops, components, spectral, label_hops, known: see `HopInputs`
    rounds, nodes, depth: of the forest: trees for each output, nodes of a tree, steps to its leaves
    """

    kinds: ClassVar = {
        **dict.fromkeys(("in_features", "classes", "rounds", "nodes"), POSITIVE),
        **dict.fromkeys((*INPUTS, "depth"), COUNT),
    }

    threshold: Tensor
    value: Tensor
    start: Tensor
    feature: Tensor
    branches: Tensor

    def __init__(
        self,
        in_features: int,
        classes: int,
        *,
        rounds: int,
        nodes: int,
        depth: int,
        **inputs: Any,
    ) -> None:
        super().__init__(
            in_features=in_features,
            classes=classes,
            rounds=rounds,
            nodes=nodes,
            depth=depth,
            **inputs,
        )
        self.depth = depth
        self.inputs = self._made(in_features, classes, inputs)
        shape = (rounds, classes, nodes)
        self.make("threshold", *shape)
        self.make("value", *shape)
        self.make("start", classes)
        self.register_buffer("feature", torch.zeros(shape, dtype=torch.int32))
        self.register_buffer("branches", torch.zeros((*shape, 2), dtype=torch.int32))

    def _made(
        self, in_features: int, classes: int, inputs: dict[str, Any]
    ) -> HopInputs | RelationInputs:
        return HopInputs(in_features, classes, **inputs)

    def check_tensors(self) -> None:
        for name, most in (("feature", self.inputs.columns), ("branches", self.threshold.shape[2])):
            values = getattr(self, name)
            if values.numel() and not 0 <= int(values.min()) <= int(values.max()) < most:
                raise InputError(f"{name} holds numbers outside 0..{most - 1}")

    def forward(self, x: Tensor, propagate: Callable[[Tensor], Tensor]) -> Tensor:
        rows = self.inputs(x, propagate)
        trees = self.threshold.shape[0] * self.threshold.shape[1]
        parts = rows.split(max(1, _AT_ONCE // trees))
        scores = torch.cat([self._walk(part) for part in parts]) + self.start.double()
        scaled: Tensor = self.output_scale(scores.to(rows.dtype))
        return scaled

    def _walk(self, rows: Tensor) -> Tensor:
        """(rows, width) float64: the sums of the leaves that each row comes to."""
        rounds, width, nodes = self.threshold.shape
        first = torch.arange(rounds * width, device=rows.device) * nodes
        feature, threshold = self.feature.flatten().long(), self.threshold.flatten()
        branches = (self.branches.view(-1, nodes, 2) + first[:, None, None]).flatten()
        at = first.expand(len(rows), -1)
        for _ in range(self.depth):
            right = rows.gather(1, feature[at]) > threshold[at]
            at = branches[2 * at + right]
        return self.value.flatten()[at].double().view(len(rows), rounds, width).sum(1)


class RelationTrees(Trees):
    """kinds, narrow, relations, target, hops: see `RelationInputs`; others: as in `Trees`"""

    propagation = "mean"
    kinds: ClassVar = {
        **dict.fromkeys(("in_features", "classes", "rounds", "nodes"), POSITIVE),
        **RELATION_INPUTS,
        "depth": COUNT,
    }

    def _made(self, in_features: int, classes: int, inputs: dict[str, Any]) -> RelationInputs:
        return RelationInputs(**inputs)


def fit_trees(problem: Problem, hops: int, *, tables: bool = False) -> Trees:
    """The trees of a problem, by LightGBM or scikit-learn.

    tables: they read singular vectors of the adjacency matrix and labels of neighbours too
    """
    if not tables:
        problem.check_features()
    graph = problem.graph
    columns = fit_columns(problem, hops, tables=tables)
    labels = problem.labels[columns.places]
    forest = grow(problem, columns.train, columns.val, labels)
    rounds, _, nodes = forest.feature.shape
    kind = RelationTrees if isinstance(columns.inputs, RelationInputs) else Trees
    model = kind(
        graph.num_features,
        problem.outputs,
        rounds=rounds,
        nodes=nodes,
        depth=forest.depth,
        **columns.inputs.arguments,
    )
    problem.criterion().prepare(model)
    model.inputs = columns.inputs
    model.fill("threshold", rounded_down(forest.threshold, graph.dtype))
    model.fill("value", forest.value.to(graph.dtype))
    model.fill("start", forest.start.to(graph.dtype))
    model.feature, model.branches = forest.feature.int(), forest.branches.int()
    return model


def grow(problem: Problem, train: Tensor, val: Tensor, labels: Tensor) -> Forest:
    """Trees up to the round after which the validation nodes score best.

    train, val: (nodes, columns) of training nodes and of the validation nodes
    labels: of these training nodes
    """
    some = problem.sample(labels, _MOST_ROWS)
    boosters = _boosters(problem, train[some].numpy(), labels[some])
    work = len(some) * train.shape[1] * problem.outputs
    most = int(min(_ROUNDS, max(_ROUND, _WORK / work)))
    rows, scale = val.numpy(), problem.output_scale()
    best, kept, looks = float("nan"), _ROUND, 0
    for rounds in range(_ROUND, most + 1, _ROUND):
        for booster in boosters:
            booster.grow(rounds, problem.over)
        raw = np.concatenate([booster.raw(rows) for booster in boosters], axis=1)
        score = problem.score(scale(torch.from_numpy(raw)))
        looks += 1
        if problem.better(score, best):
            best, kept, looks = score, rounds, 0
        if looks >= _PATIENCE or problem.over():
            break
    return joined([booster.forest().rounds(kept) for booster in boosters])


def _boosters(problem: Problem, rows: NDArray[Any], labels: Tensor) -> list[Booster]:
    """Return boosters that grow trees for the outputs, one after the other."""
    make = LightBooster if find_spec("lightgbm") is not None else ScikitBooster
    if not problem.task.has_classes:
        scale = problem.output_scale()
        assert scale.mean is not None
        assert scale.deviation is not None
        targets = (labels - scale.mean) / scale.deviation
        return [make(rows, targets.numpy(), 0, problem.seed, problem.loss.loss == "mae")]
    if problem.task.several:
        return [
            Constant(-NEVER if present.any() else NEVER)
            if len(present.unique()) == 1
            else make(rows, present.numpy(), 2, problem.seed)
            for present in labels.long().t()
        ]
    seen, targets = labels.unique(return_inverse=True)
    if len(seen) < 2:
        raise InputError("all training nodes are of one class: trees have nothing to tell apart")
    booster = make(rows, targets.numpy(), len(seen), problem.seed)
    return [SomeOutputs(booster, seen.tolist(), problem.outputs)]
