"""Fits of linear outputs: the form of the inputs and the strength of the penalty are those that
are the best on the validation nodes.

The fit is by L-BFGS with a squared penalty, with the strongest first, each begun where the one
before ended. Every form is fitted so; where that would take long, with one strength and a few
steps, and then the best of them with all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import LBFGS

from vrgcn.baselines.baseline import Baseline
from vrgcn.baselines.problem import Problem
from vrgcn.models.optimizers import uncompiled

_STRENGTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
_FIRST = (1e-4,)  # strength by which forms are compared where each takes long
_USUAL = 5  # strengths that are tried where weaker ones gain nothing
_WORSE = 2  # strengths without a better score after which weaker ones are not tried
_STEPS, _FEW = 60, 20  # steps of L-BFGS with each strength; where forms are so compared
_PASSES = 300  # over the inputs, by a fit with all strengths
_QUICK = 6e9  # multiplications of the fits of all forms: some seconds
_WORK = 4e11  # multiplications at most: fewer steps where each takes many

Outputs = Callable[[Tensor, Tensor], Tensor]  # maps weights and bias to outputs


@dataclass(frozen=True)
class System:
    """Inputs in one form, whose outputs are linear in weights and bias.

    train, val: outputs of the training and the validation nodes
    start: weights of 0, in their shape
    work: multiplications for one column of `train`
    model: the baseline with given weights and bias
    """

    train: Outputs
    val: Outputs
    start: Tensor
    work: int
    model: Callable[[Tensor, Tensor], Baseline]


@dataclass(frozen=True)
class Solved:
    """Weights and bias, and their score on the validation nodes."""

    weights: Tensor
    bias: Tensor
    score: float


def fit_best(problem: Problem, systems: Sequence[Callable[[], System]]) -> Baseline:
    """Return the baseline of the best system.

    systems: make one each; only the best so far is kept in memory
    """
    chosen: tuple[System, Solved] | None = None
    shortened = False
    for make in systems:
        system = make()
        shortened = not compared_in_full(len(systems), system.work, problem.outputs)
        solved = solve(problem, system, *((_FIRST, _FEW) if shortened else ()))
        if chosen is None or problem.better(solved.score, chosen[1].score):
            chosen = system, solved
        if problem.over():
            break
    assert chosen is not None
    system, solved = chosen
    if shortened and not problem.over():
        solved = solve(problem, system)
    return system.model(solved.weights, solved.bias)


def compared_in_full(systems: int, work: float, outputs: int) -> bool:
    """Return True if so many forms are fitted with all strengths."""
    return systems * _PASSES * work * outputs <= _QUICK


class _OverError(Exception):
    """No time is left in the middle of a fit."""


def solve(
    problem: Problem,
    system: System,
    strengths: Sequence[float] | None = None,
    most: int = _STEPS,
) -> Solved:
    """Return the weights and bias with the best of some strengths, all of them by default.

    most: steps with each
    """
    weights = system.start.clone().requires_grad_()
    bias = system.start.new_zeros(problem.outputs).requires_grad_()
    criterion, scale = problem.criterion(), problem.output_scale()
    steps = int(min(most, max(10, _WORK / (3 * max(system.work, 1) * problem.outputs * _USUAL))))
    best, worse = None, 0
    for strength in _STRENGTHS if strengths is None else strengths:
        optimizer = uncompiled(LBFGS)(
            [weights, bias], max_iter=steps, history_size=10, line_search_fn="strong_wolfe"
        )

        def closure(optimizer: LBFGS = optimizer, strength: float = strength) -> Tensor:
            if problem.over():
                raise _OverError
            optimizer.zero_grad()
            losses = criterion(scale(system.train(weights, bias)), problem.labels)
            loss = losses.mean() + strength / 2 * weights.square().sum()
            loss.backward()
            return loss

        try:
            optimizer.step(closure)
        except _OverError:
            if best is not None:
                break
        with torch.no_grad():
            score = problem.score(scale(system.val(weights, bias)))
        worse += 1
        if best is None or problem.better(score, best.score):
            best, worse = Solved(weights.detach().clone(), bias.detach().clone(), score), 0
        if worse >= _WORSE or problem.over():
            break
    assert best is not None
    return best
