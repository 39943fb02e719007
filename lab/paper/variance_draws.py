"""Variances of the estimators of one node's average, by many draws, beside their formulas.

An estimate is linear in the activations. Its sampling part is what it makes of the means alone, and
its dropout part what it makes of the deviations from them alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lab.paper.variances import standard_errors_off, table_of_variances
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.engine.formulas import from_history, residual, sampled
from vrgcn.engine.plan import Hop
from vrgcn.engine.samplers.uniform import uniform
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR

ROWS = ("exact", "ns", "cv", "cvd", "two-way")
PARTS = ("sampling", "dropout", "total")
CHUNK = 1 << 22  # drawn activations at a time


@dataclass(frozen=True)
class Neighbourhood:
    """One node u and its n other neighbours.

    node: u; neighbours: (n,) ids; own: P_uu; weights: (n,), P_uv
    pool: (masks, 1 + n, width), activations of u and then of the neighbours under dropout
    scaled: (1 + n, width), the same without dropout, which is weight scaling's μ
    past: (1 + n, width), their means at earlier weights
    """

    node: int
    neighbours: Tensor
    own: float
    weights: Tensor
    pool: Tensor
    scaled: Tensor
    past: Tensor


def measure(
    around: Neighbourhood, P: Propagation, fanout: int, draws: int, generator: torch.Generator
) -> dict[str, Any]:
    """Return measured variances of the estimates of (P h)_u, summed over the columns, beside the
    formulas.

    For each estimator and part: [measured, formula, standard errors between them].
    """
    mean = around.pool.mean(0)
    variance = around.pool.var(0, correction=0)
    table = table_of_variances(
        around.own, around.weights, fanout, mean[1:], around.past[1:], variance
    )
    squares, biases = _draw(around, P, fanout, draws, generator)
    estimators = {
        name: {part: _compare(squares[name, part], getattr(table[name], part)) for part in PARTS}
        for name in ROWS
    }
    n = len(around.weights)
    R = n / fanout
    shrunk = 1 - 1 / R**0.5
    residual_bias = -shrunk * (around.weights @ (mean - around.scaled)[1:])
    return {
        "node": around.node,
        "degree": n,
        "fanout": fanout,
        "R": R,
        "S": _digits((around.weights.square() @ variance[1:]).sum()),
        "own": _digits((around.own**2 * variance[0]).sum()),
        "estimators": estimators,
        "printed": _compare(squares["cv", "dropout"], table["cv as printed"].dropout),
        "weight_scaling": {
            "bias": _digits(biases.mean(0).norm()),
            "formula": _digits(residual_bias.norm()),
            "relative": _digits(residual_bias.norm() / _product(around, mean).norm()),
            "off": _digits(standard_errors_off(biases, residual_bias).max()),
        },
    }


def _compare(squares: Tensor, expected: Tensor) -> list[float]:
    """Compare draws with a formula. squares: (draws,) squared distances from the mean; expected:
    (width,)"""
    formula = expected.sum()
    rounding = 1e-9 * float(squares.mean() + formula) + 1e-30
    off = standard_errors_off(squares, formula, rounding)
    return [_digits(value) for value in (squares.mean(), formula, off)]


def _digits(value: Tensor) -> float:
    """Round a number for a record: six digits are finer than the draws."""
    return float(f"{float(value):.6g}")


def _draw(
    around: Neighbourhood, P: Propagation, fanout: int, draws: int, generator: torch.Generator
) -> tuple[dict[tuple[str, str], Tensor], Tensor]:
    """Draw squared distances (draws,) from the mean by estimator and part, and the distance (draws,
    width) of CVD with weight scaling's μ from the mean."""
    mean, past = around.pool.mean(0), around.past
    at_once = max(1, CHUNK // mean.numel())
    chunks: dict[tuple[str, str], list[Tensor]] = {}
    biases = []
    for count in [at_once] * (draws // at_once) + [draws % at_once] * (draws % at_once > 0):
        hop = _hop(around, P, fanout, count, generator)
        noise, past_noise = (_noise(around.pool, count, generator) for _ in range(2))
        zero = torch.zeros_like(mean).expand_as(noise)
        mu, old = mean.expand_as(noise), past.expand_as(noise)
        target = _product(around, mean)
        parts = {
            "sampling": (_estimates(around, hop, mu, mu, old, old), target),
            "dropout": (
                _estimates(around, hop, noise, zero, past_noise, zero),
                torch.zeros_like(target),
            ),
            "total": (_estimates(around, hop, mu + noise, mu, old + past_noise, old), target),
        }
        for part, (estimates, centre) in parts.items():
            for name, estimate in estimates.items():
                chunks.setdefault((name, part), []).append((estimate - centre).square().sum(1))
        scaled = around.scaled.expand_as(noise)
        biases.append(_cvd(around, hop, mu + noise, scaled, old) - target)
    return {key: torch.cat(values) for key, values in chunks.items()}, torch.cat(biases)


def _estimates(
    around: Neighbourhood, hop: Hop, h: Tensor, mu: Tensor, past: Tensor, past_mu: Tensor
) -> dict[str, Tensor]:
    """Return estimates (draws, width) by estimator. h, mu, past, past_mu: (draws, 1 + n, width)."""
    return {
        "exact": _product(around, h),
        "ns": sampled(hop, _sources(h)),
        "cv": _cv(around, hop, h, past),
        "cvd": _cvd(around, hop, h, mu, past_mu),
        "two-way": _two_way(around, h, past),
    }


def _cv(around: Neighbourhood, hop: Hop, h: Tensor, past: Tensor) -> Tensor:
    average = around.weights @ past[:, 1:]
    past = hop.pick(_sources(past))
    return from_history(hop, _sources(h), past, average, ESTIMATORS["cv"])


def _cvd(around: Neighbourhood, hop: Hop, h: Tensor, mu: Tensor, past_mu: Tensor) -> Tensor:
    return residual(hop, _cv(around, hop, mu, past_mu), _sources(h - mu))


def _two_way(around: Neighbourhood, h: Tensor, past: Tensor) -> Tensor:
    """Return the estimate for a node with more neighbours than the fan-out: all of them from the
    history."""
    return _product(around, torch.cat([h[:, :1], past[:, 1:]], dim=1))


def _product(around: Neighbourhood, h: Tensor) -> Tensor:
    """Return (P h)_u: (..., 1 + n, width) -> (..., width)."""
    return around.own * h[..., 0, :] + around.weights @ h[..., 1:, :]


def _sources(h: Tensor) -> Tensor:
    """Rearrange (draws, 1 + n, width) for a hop of that many targets: u of each draw, then each
    draw's neighbours."""
    return torch.cat([h[:, 0], h[:, 1:].flatten(0, 1)])


def _hop(
    around: Neighbourhood, P: Propagation, fanout: int, count: int, generator: torch.Generator
) -> Hop:
    """Return `count` draws of the real sampler for u, each with neighbours of its own."""
    n = len(around.weights)
    sample = uniform(P, torch.full((count,), around.node), fanout, generator)
    place = torch.full((P.num_nodes,), -1)
    place[around.neighbours] = torch.arange(n)
    drawn = sample.edges
    columns = count + drawn.row_of_entry * n + place[drawn.indices]
    edges = CSR(drawn.indptr, columns, drawn.weights(torch.float64), count * (1 + n))
    return Hop(torch.full((count,), around.own), edges, sample.scale.double(), None)


def _noise(pool: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draw deviations from the mean (count, 1 + n, width), each node's from a mask of its own."""
    masks, nodes, _ = pool.shape
    drawn = torch.randint(masks, (count, nodes), generator=generator)
    return (pool - pool.mean(0))[drawn, torch.arange(nodes)]
