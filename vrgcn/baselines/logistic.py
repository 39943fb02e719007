"""Linear baselines: logistic regression of one class or of several, ridge regression of numbers.

    outputs = X W0 + P (X W1 + P X W2) + log(1 + degree) d + b

P is the mean over the neighbours. In this order of products nothing wider than the outputs is
propagated, so X may be wide and sparse. X are the features as they are given, whether they are
there (0 or 1), or in rows of length 1; columns have the size that they are given, or one that makes
the penalty the same for all (of sparse ones: weaker for rare ones). The form that is the best on
the validation nodes is taken (solving.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from vrgcn.baselines.baseline import Baseline, beside_means, mean_and_degree, times
from vrgcn.baselines.hop_inputs import column_weights, mostly_zero
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.relation_inputs import reads_relations
from vrgcn.baselines.relation_linear import fit_relation_linear
from vrgcn.baselines.solving import Outputs, System, fit_best
from vrgcn.files.kinds import COUNT, POSITIVE, one_of
from vrgcn.graph.forms import FORMS, Form, formed
from vrgcn.graph.sparse import (
    CSR,
    first_rows,
    is_dense,
    is_sparse,
    num_entries,
    select_rows,
    stored,
)

_LARGEST = 1 << 28  # numbers in [X, P X, P P X] that are kept in memory
_PROBES = 16  # random columns by which the size of P P X is estimated where it is not kept


class Logistic(Baseline):
    """hops: how often neighbours are averaged; 0: only a node's own features; form: of X"""

    kinds: ClassVar = {
        "in_features": POSITIVE,
        "classes": POSITIVE,
        "hops": COUNT,
        "form": one_of(*FORMS),
    }
    weights: Tensor
    degree: Tensor
    bias: Tensor

    def __init__(self, in_features: int, classes: int, hops: int, form: Form = "given") -> None:
        super().__init__(in_features=in_features, classes=classes, hops=hops, form=form)
        self.make("weights", hops + 1, in_features, classes)
        self.make("degree", classes)
        self.make("bias", classes)

    def forward(self, x: Tensor, propagate: Callable[[Tensor], Tensor]) -> Tensor:
        x = formed(x, self.arguments["form"])
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


def fit_logistic(problem: Problem, hops: int, forms: Sequence[Form] | None = None) -> Baseline:
    """The linear model of a problem. Statistics of features are those of the training nodes.

    In a graph of several kinds each relation has weights of its own (relation_linear.py).
    forms: to choose from; None: all that the features may have
    """
    problem.check_features()
    if reads_relations(problem.graph):
        return fit_relation_linear(problem, hops)
    x = problem.graph.features
    size = x.shape[0] * x.shape[1] * (hops + 1)
    system = _kept if is_dense(x) and size <= _LARGEST else _by_products
    plain: Form = "given" if forms is None else forms[0]
    return fit_best(
        problem,
        [
            *(
                partial(system, problem, hops, form, evened=True)
                for form in (_forms(x) if forms is None else forms)
            ),
            partial(system, problem, hops, plain, evened=False),
        ],
    )


def _forms(x: Tensor) -> tuple[Form, ...]:
    """The forms that rows may have: of columns that are mostly not 0 as they are given alone."""
    if is_dense(x) and not mostly_zero(x):
        return ("given",)
    values = stored(x)[-1] if is_sparse(x) else x[x != 0] if is_dense(x) else None
    binary = values is not None and bool((values == 1).all())
    return tuple(form for form in FORMS if form != "binary" or not binary)


def _model(
    problem: Problem, hops: int, form: Form, weights: Tensor, degree: Tensor, bias: Tensor
) -> Logistic:
    model = Logistic(problem.graph.num_features, problem.outputs, hops, form)
    problem.criterion().prepare(model)
    model.fill("weights", weights)
    model.fill("degree", degree)
    model.fill("bias", bias)
    return model


def _kept(problem: Problem, hops: int, form: Form, *, evened: bool) -> System:
    """[X, P X, P P X, log(1 + degree)] in memory, each column standardised; columns that are mostly
    0 are weighted instead, as sparse ones are. Not `evened`: each block of columns has one size."""
    graph = problem.graph
    width = graph.num_features
    with torch.no_grad():
        x = formed(graph.features.to(graph.dtype), form)
        inputs = beside_means(x, problem.propagate, hops)
        train, val = inputs[graph.train], inputs[graph.val]
        mean = train.double().mean(0)
        squares = (train.double() - mean).square().mean(0)
        deviation = squares.sqrt()
        constant = deviation <= 1e-7 * mean.abs().clamp(min=1e-30)
        deviation[constant] = 1.0
        if mostly_zero(x) or not evened:
            weights = column_weights(x).double().sqrt() if evened else torch.ones(width).double()
            for block in range(hops + 1):
                columns = slice(block * width, (block + 1) * width)
                size = (squares[columns] * weights.square()).sum().sqrt()
                deviation[columns] = size.clamp(min=1e-12) / weights.clamp(min=1e-6)
        mean, deviation = mean.to(train), deviation.to(train)
        train, val = (train - mean) / deviation, (val - mean) / deviation

    def of(rows: Tensor) -> Outputs:
        return lambda weights, bias: rows @ weights + bias

    def model(weights: Tensor, bias: Tensor) -> Logistic:
        weights = weights / deviation[:, None]
        own = (hops + 1) * width  # a last row is of the degree
        degree = weights[own] if hops else torch.zeros_like(bias)
        shaped = weights[:own].reshape(hops + 1, width, -1)
        return _model(problem, hops, form, shaped, degree, bias - mean @ weights)

    start = train.new_zeros(train.shape[1], problem.outputs)
    return System(of(train), of(val), start, train.numel(), model)


def _by_products(problem: Problem, hops: int, form: Form, *, evened: bool) -> System:
    """Without ever making P X, which of sparse features is dense. Rare columns weigh more if
    `evened` (`column_weights`); rows of X, P X and P P X are each made of mean square 1 over the
    training nodes."""
    graph = problem.graph
    x, nodes = formed(graph.features.to(graph.dtype), form), torch.cat([graph.train, graph.val])
    columns = column_weights(x).sqrt() if evened else torch.ones(x.shape[1], dtype=graph.dtype)
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
    return System(
        lambda weights, bias: all_outputs(weights, bias)[:count],
        lambda weights, bias: all_outputs(weights, bias)[count:],
        torch.zeros((hops + 1) * row + problem.outputs, dtype=graph.dtype),
        (hops + 1) * entries + hops * graph.num_edges,
        lambda weights, bias: _model(problem, hops, form, *split(weights), bias),
    )


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
