r"""Variances of the estimators, as formulas: Propositions 1 to 3 and the paper's Table 2.

For one node u with n other neighbours, D of which are drawn without replacement, R = n / D. The
randomness is that of the sample and, with dropout, that of the masks; the two variances add
(Proposition 3). With x_v = P_uv μ_v, Δx_v = P_uv (μ_v - μ̄_v), S = sum over v of P_uv^2 Var h_v,
and Q(x) = C / (2 D) times the sum over pairs of (x_v1 - x_v2)^2, C = 1 - (D - 1) / (n - 1):

    estimator   by sampling (VNS)   by dropout (VD)
    exact       0                   S
    ns          Q(x)                R S
    cv          Q(Δx)               (2 R - 1) S
    cvd         Q(Δx)               S
    two-way     (sum of Δx)^2       S      of a node with more neighbours than its fan-out

Activations of different nodes are taken to be uncorrelated, and h̄ to be an independent draw with
the variance of h. The paper prints (3 + R) S for the dropout part of cv. But each term of cv is
P_uv [R a_v h_v + (1 - R a_v) h̄_v], a_v = 1 for a drawn v, so its variance is the mean of
R^2 a_v + (1 - R a_v)^2 times P_uv^2 Var h_v, and that mean is R + (1 - 2 + R). A node's own edge
is exact: it adds its dropout variance with factor 1 to every row. Of two-way nothing is sampled
there: its VNS is no variance but the squared bias of its histories, in place of one.

On the way back, values exact and the minibatch B fixed, u gives R P_uv δ_u to each neighbour v that
it drew: cv δ = g, `two-way-cv` δ = g - ḡ, and nothing to a v in B, which reads the history. A
parameter θ has this gradient through h_v, so with x_v = P_uv (∂h_v/∂θ)ᵀ δ_u its variance is Q(x);
those of the different u in B add, their samples being independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Variance:
    """The variance of an estimator.

    sampling: (width,) VNS; dropout: (width,) VD, including the own edge's
    """

    sampling: Tensor
    dropout: Tensor

    @property
    def total(self) -> Tensor:
        return self.sampling + self.dropout


def proposition_1(x: Tensor, D: int) -> Tensor:
    """Return the variance (width,) of R times the sum of D of the terms x, (n, width).

    The sum over all ordered pairs of (x_v1 - x_v2)^2 is 2 n times that of (x_v - mean)^2.
    """
    n = len(x)
    C = 1 - (D - 1) / (n - 1) if n > 1 else 0.0
    return C * n / D * (x - x.mean(0)).square().sum(0)


def table_of_variances(
    own: float, weights: Tensor, D: int, mean: Tensor, past: Tensor, dropout: Tensor
) -> dict[str, Variance]:
    """Return the table above for one node, and cv's row as the paper prints it.

    own: P_uu; weights: (n,), P_uv of the others
    mean, past: (n, width), μ and μ̄ of the others
    dropout: (1 + n, width), Var h of the node itself, then of the others
    """
    R = len(weights) / D
    by_own = own**2 * dropout[0]
    S = weights.square() @ dropout[1:]
    nothing = torch.zeros_like(S)
    drift = proposition_1(weights[:, None] * (mean - past), D)
    return {
        "exact": Variance(nothing, by_own + S),
        "ns": Variance(proposition_1(weights[:, None] * mean, D), by_own + R * S),
        "cv": Variance(drift, by_own + (2 * R - 1) * S),
        "cvd": Variance(drift, by_own + S),
        "two-way": Variance((weights @ (mean - past)).square(), by_own + S),
        "cv as printed": Variance(drift, by_own + (3 + R) * S),
    }


def gradient_variances(
    weights: Tensor, D: int, g: Tensor, past: Tensor, inside: Tensor, jacobian: Tensor
) -> dict[str, Tensor]:
    """Return the variance (parameters,) of a gradient due to the sampled neighbours of one node.

    weights: (n,), P_uv of the others; inside: (n,) bool, which of them are in the minibatch
    g, past: (width,), g and ḡ of the node
    jacobian: (n, width, parameters), ∂h/∂θ of the others
    """

    def terms(weights: Tensor, delta: Tensor) -> Tensor:
        return torch.einsum("v,vwp,w->vp", weights, jacobian, delta)

    return {
        "cv": proposition_1(terms(weights, g), D),
        "two-way-cv": proposition_1(terms(weights.masked_fill(inside, 0), g - past), D),
    }


def standard_errors_off(draws: Tensor, expected: Tensor, rounding: float = 1e-9) -> Tensor:
    """Return the distance of the mean of independent draws (count, ...) from `expected` in standard
    errors, entry by entry.

    `rounding` is added to the standard error: entries that do not vary must be equal up to a few
    times that.
    """
    error = draws.std(0) / len(draws) ** 0.5 + rounding
    return (draws.mean(0) - expected).abs() / error
