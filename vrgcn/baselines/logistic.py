"""Linear baselines: logistic regression of one class or of several, ridge regression of numbers.

    outputs = X W0 + P (X W1 + P X W2) + log(1 + degree) d + b

P is the mean over the neighbours. In this order of products nothing wider than the outputs is
propagated, so X may be wide and sparse. The fit is by L-BFGS with a squared penalty, whose strength
is the best on the validation nodes of a few, the strongest first, each begun where the one before
ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.optim import LBFGS

from vrgcn.baselines.baseline import Baseline, beside_means, mean_and_degree, times
from vrgcn.baselines.hop_inputs import column_weights, mostly_zero
from vrgcn.baselines.problem import Problem
from vrgcn.files.kinds import COUNT, POSITIVE
from vrgcn.graph.sparse import CSR, first_rows, is_dense, is_sparse, num_entries, select_rows
from vrgcn.models.optimizers import uncompiled

_STRENGTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_WORSE = 2  # strengths without a better score after which weaker ones are not tried
_STEPS = 60  # steps of L-BFGS with each strength
_WORK = 4e11  # multiplications at most: fewer steps where each takes many
_LARGEST = 1 << 28  # numbers in [X, P X, P P X] that are kept in memory
_PROBES = 16  # random columns by which the size of P P X is estimated where it is not kept

Outputs = Callable[[Tensor, Tensor], Tensor]  # maps weights and bias to outputs


class Logistic(Baseline):
    """hops: how often neighbours are averaged; 0: a node's own features alone"""

    kinds: ClassVar = {"in_features": POSITIVE, "classes": POSITIVE, "hops": COUNT}
    weights: Tensor
    degree: Tensor
    bias: Tensor

    def __init__(self, in_features: int, classes: int, hops: int) -> None:
        super().__init__(in_features=in_features, classes=classes, hops=hops)
        self.make("weights", hops + 1, in_features, classes)
        self.make("degree", classes)
        self.make("bias", classes)

    def forward(self, x: Tensor, propagate: Callable[[Tensor], Tensor]) -> Tensor:
        h = linear_hops(x, propagate, self.weights, self.degree) + self.bias
        scaled: Tensor = self.output_scale(h)
        return scaled


def linear_hops(
    x: Tensor | CSR, propagate: Callable[[Tensor], Tensor], weights: Tensor, degree: Tensor
) -> Tensor:
    """X W0 + P (X W1 + P X W2) + log(1 + degree) d for three weights; X W0 for one.

    x: (level 0, features); a CSR is of all nodes, and so are all levels
    weights: (hops + 1, features, outputs); degree: (outputs,)
    """
    *others, last = weights
    h = times(x, last)
    for number, own in enumerate(reversed(others), start=1):
        mean, degrees = mean_and_degree(h, propagate)
        x = first_rows(x, len(mean)) if isinstance(x, Tensor) else x
        h = times(x, own) + mean
        if number == len(others):
            h = h + degrees.log1p() * degree
    return h


def fit_logistic(problem: Problem, hops: int) -> Logistic:
    """The linear model of a problem. Statistics of features are those of the training nodes."""
    problem.check_features()
    graph = problem.graph
    model = Logistic(graph.num_features, problem.outputs, hops)
    problem.criterion().prepare(model)
    size = graph.num_nodes * graph.num_features * (hops + 1)
    kept = is_dense(graph.features) and size <= _LARGEST
    (_fit_kept if kept else _fit_by_products)(problem, model)
    return model


def _fit_kept(problem: Problem, model: Logistic) -> None:
    """Fit with [X, P X, P P X, log(1 + degree)] in memory, each column standardised; columns that
    are mostly 0 are weighted instead, as sparse ones are."""
    graph, hops = problem.graph, model.arguments["hops"]
    with torch.no_grad():
        x = graph.features.to(graph.dtype)
        inputs = beside_means(x, problem.propagate, hops)
        train, val = inputs[graph.train], inputs[graph.val]
        mean = train.double().mean(0)
        squares = (train.double() - mean).square().mean(0)
        deviation = squares.sqrt()
        constant = deviation <= 1e-7 * mean.abs().clamp(min=1e-30)
        deviation[constant] = 1.0
        if mostly_zero(x):
            weights = column_weights(x).double().sqrt()
            for block in range(hops + 1):
                columns = slice(block * len(weights), (block + 1) * len(weights))
                size = (squares[columns] * weights.square()).sum().sqrt()
                deviation[columns] = size.clamp(min=1e-12) / weights.clamp(min=1e-6)
        mean, deviation = mean.to(train), deviation.to(train)
        train, val = (train - mean) / deviation, (val - mean) / deviation

    def of(rows: Tensor) -> Outputs:
        return lambda weights, bias: rows @ weights + bias

    start = train.new_zeros(train.shape[1], problem.outputs)
    weights, bias = solve(problem, model, of(train), of(val), start, train.numel())
    weights = weights / deviation[:, None]
    bias = bias - mean @ weights
    own = (hops + 1) * graph.num_features  # a last row is of the degree
    model.fill("weights", weights[:own].reshape(hops + 1, graph.num_features, -1))
    model.fill("degree", weights[own] if hops else torch.zeros_like(bias))
    model.fill("bias", bias)


def _fit_by_products(problem: Problem, model: Logistic) -> None:
    """Fit without ever making P X, which of sparse features is dense. Rare columns weigh more
    (`column_weights`); rows of X, P X and P P X are each made of mean square 1 over the training
    nodes."""
    graph, hops = problem.graph, model.arguments["hops"]
    x, nodes = graph.features.to(graph.dtype), torch.cat([graph.train, graph.val])
    columns = column_weights(x).sqrt()
    sizes = _mean_squares(problem, x, columns, hops).sqrt().clamp(min=1e-12)
    if not hops:
        x, nodes = select_rows(x, nodes), torch.arange(len(nodes))
    rows = CSR.from_torch(x) if is_sparse(x) else x
    row = problem.outputs * graph.num_features

    def split(weights: Tensor) -> tuple[Tensor, Tensor]:
        scaled = weights[: (hops + 1) * row].view(hops + 1, graph.num_features, -1)
        return scaled * columns[:, None] / sizes[:, None, None], weights[(hops + 1) * row :]

    def all_outputs(weights: Tensor, bias: Tensor) -> Tensor:
        return linear_hops(rows, problem.propagate, *split(weights))[nodes] + bias

    count = len(graph.train)
    entries = rows.num_entries if isinstance(rows, CSR) else num_entries(rows)
    work = (hops + 1) * entries + hops * graph.num_edges
    weights, bias = solve(
        problem,
        model,
        lambda weights, bias: all_outputs(weights, bias)[:count],
        lambda weights, bias: all_outputs(weights, bias)[count:],
        torch.zeros((hops + 1) * row + problem.outputs, dtype=graph.dtype),
        work,
    )
    scaled, degree = split(weights)
    model.fill("weights", scaled)
    model.fill("degree", degree)
    model.fill("bias", bias)


def _mean_squares(problem: Problem, x: Tensor, columns: Tensor, hops: int) -> Tensor:
    """(hops + 1,): mean of the squared lengths of training rows of X, P X, P P X, by random signs:
    of a row r, the mean of (r · signs)² is its squared length.

    columns: (features,) weights of columns
    """
    generator = torch.Generator().manual_seed(problem.seed)
    signs = torch.randint(0, 2, (x.shape[1], _PROBES), generator=generator).to(x.dtype) * 2 - 1
    rows = times(x, signs * columns[:, None])
    train, squares = problem.graph.train, []
    for hop in range(hops + 1):
        rows = mean_and_degree(rows, problem.propagate)[0] if hop else rows
        squares.append(rows[train].square().mean())
    return torch.stack(squares)


def solve(
    problem: Problem,
    model: Baseline,
    train: Outputs,
    val: Outputs,
    start: Tensor,
    work: int,
    strengths: Sequence[float] = _STRENGTHS,
) -> tuple[Tensor, Tensor]:
    """Weights and bias with the strength that is the best on the validation nodes.

    train, val: outputs of the training and the validation nodes
    start: weights of 0, in their shape; work: multiplications for one column of `train`
    """
    weights = start.clone().requires_grad_()
    bias = start.new_zeros(problem.outputs).requires_grad_()
    criterion, kept, best = problem.criterion(), (weights.detach(), bias.detach()), float("nan")
    worse = 0
    steps = int(min(_STEPS, max(10, _WORK / (3 * work * problem.outputs * len(strengths)))))
    for strength in strengths:
        optimizer = uncompiled(LBFGS)(
            [weights, bias], max_iter=steps, history_size=10, line_search_fn="strong_wolfe"
        )

        def closure(optimizer: LBFGS = optimizer, strength: float = strength) -> Tensor:
            optimizer.zero_grad()
            losses = criterion(model.output_scale(train(weights, bias)), problem.labels)
            loss = losses.mean() + strength / 2 * weights.square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        with torch.no_grad():
            score = problem.score(model.output_scale(val(weights, bias)))
        worse += 1
        if problem.better(score, best):
            best, kept, worse = score, (weights.detach().clone(), bias.detach().clone()), 0
        if worse >= _WORSE or problem.over():
            break
    return kept
