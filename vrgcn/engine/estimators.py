r"""Estimators of P h from part of the neighbours: what they are and their formulas.

An estimator is a composition of a *sampler* (which neighbours are computed anew, see sampling.py)
and a *correction* (how the others are accounted for). With P̂ the sampled entries of P, R the
row scale, h̄ the history, and a node's own edge exact in every case:

    name      sampler      estimate of P h
    exact     full         P h
    ns        uniform      R P̂ h                              neighbour sampling (GraphSAGE)
    is        importance   R P̂ h                              importance sampling (FastGCN)
    cv        uniform      R P̂ (h - h̄) + P h̄                  control variate
    cvd       uniform      √R P̂ (h - μ) + R P̂ (μ - μ̄) + P μ̄  control variate for dropout
    history   none         P h̄                                neighbours from the history alone

The correction R P̂ (h - h̄) has a value and a gradient, and they are separable: `cv` uses both,
`history` neither. `Estimator(value=False)` keeps the gradient alone: values come from the history,
gradients from the sampled neighbours.

`cvd` needs the activations without dropout, μ. So it runs the model twice over the same plan: once
with dropout off, where each `propagate` answers with the `cv` estimate for μ and remembers both;
then with dropout on, where each adds √R P̂ (h - μ) to what the first pass answered. The gradient
flows through both passes: stopping it at μ would leave 1/√R of the neighbours' gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from vrgcn.engine.plan import Hop
from vrgcn.graph.sparse import first_rows, scale_rows


@dataclass(frozen=True)
class Estimator:
    """sampler: one of planner.SAMPLERS
    history: use the history as a control variate
    value, gradient: which parts of the correction R P̂ (h - h̄) to use
    dropout_residual: run without dropout first and add √R P̂ (h - μ) (cvd)
    """

    sampler: str
    history: bool = False
    value: bool = True
    gradient: bool = True
    dropout_residual: bool = False

    def __post_init__(self) -> None:
        if self.dropout_residual and not self.history:
            raise ValueError("an estimator with a dropout residual needs the history")
        if not self.history and not (self.value and self.gradient):
            raise ValueError("value and gradient are parts of the correction by the history")


ESTIMATORS = {
    "exact": Estimator("full"),
    "ns": Estimator("uniform"),
    "is": Estimator("importance"),
    "cv": Estimator("uniform", history=True),
    "cvd": Estimator("uniform", history=True, dropout_residual=True),
    "history": Estimator("none", history=True),
}


def find_estimator(estimator: str | Estimator) -> Estimator:
    """An estimator by name, or one's own composition as it is."""
    if isinstance(estimator, Estimator):
        return estimator
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator {estimator!r} is none of {', '.join(ESTIMATORS)}")
    return ESTIMATORS[estimator]


def sampled(hop: Hop, h: Tensor) -> Tensor:
    """own h + R P̂ h: (sources, width) -> (targets, width)."""
    if not hop.edges.num_entries:  # an MLP
        return _own(hop, h)
    return add_own(hop, h, hop.combine(hop.pick(h)))


def corrected(
    hop: Hop, own: Tensor, picked: Tensor, past: Tensor, average: Tensor, estimator: Estimator
) -> Tensor:
    """own h + R P̂ (h - h̄) + P h̄, with the parts of the correction that the estimator uses.

    own: rows of h, those of the targets first
    picked, past: what `hop.pick` picks of h and of h̄
    average: (targets, width), P h̄ of the others
    """
    base = add_own(hop, own, average)
    if not hop.edges.num_entries or not (estimator.value or estimator.gradient):
        return base
    difference = picked - past
    if not estimator.gradient:
        difference = difference.detach()
    if not estimator.value:
        difference = difference - difference.detach()
    return hop.add(base, difference)


def residual(hop: Hop, base: Tensor, own: Tensor, picked: Tensor) -> Tensor:
    """base + own (h - μ) + √R P̂ (h - μ); own, picked: as above, of h - μ."""
    return hop.add(add_own(hop, own, base), picked, root=True)


def add_own(hop: Hop, h: Tensor, others: Tensor) -> Tensor:
    """own h + others: (sources, width) and (targets, width) -> (targets, width)."""
    if not hop.has_own:
        return others
    return _own(hop, h) + others


def _own(hop: Hop, h: Tensor) -> Tensor:
    own = first_rows(h, len(hop.own))
    return own if hop.own_is_one else scale_rows(hop.own, own)
