"""The formulas of the estimators on the way forward, for one hop: from activations to P h."""

from __future__ import annotations

from torch import Tensor

from vrgcn.engine.estimators import Backward, Estimator
from vrgcn.engine.plan import Hop
from vrgcn.graph.sparse import scale_rows


def sampled(hop: Hop, h: Tensor, backward: Backward = "sampled") -> Tensor:
    """own h + R P̂ h: (sources, width) -> (targets, width)."""
    if not hop.edges.num_entries:  # an MLP
        return own_part(hop, h)
    return add_own(hop, h, hop.combine(hop.pick(_neighbours(h, backward))))


def from_history(
    hop: Hop, h: Tensor, past: Tensor | None, average: Tensor, estimator: Estimator
) -> Tensor:
    """own h + P h̄, and R P̂ (h - h̄) as far as the estimator's two ways use it.

    past: what `hop.pick` picks of h̄; None if nothing was sampled
    average: (targets, width), P h̄ of the others
    """
    base = add_own(hop, h, average)
    if past is None:
        return base
    difference = hop.pick(_neighbours(h, estimator.backward)) - past
    if estimator.forward == "history":
        difference = difference - difference.detach()
    return base + hop.combine(difference)


def residual(hop: Hop, base: Tensor, difference: Tensor, backward: Backward = "sampled") -> Tensor:
    """base + own (h - μ) + √R P̂ (h - μ); difference: (sources, width), h - μ."""
    picked = hop.pick(_neighbours(difference, backward))
    return add_own(hop, difference, base + hop.combine(picked, root=True))


def _neighbours(h: Tensor, backward: Backward) -> Tensor:
    """h, from which neighbours get a gradient by autograd only where it goes back by the sample;
    way_back.py has the other ways."""
    return h if backward == "sampled" else h.detach()


def add_own(hop: Hop, h: Tensor, others: Tensor) -> Tensor:
    """own h + others: (sources, width) and (targets, width) -> (targets, width)."""
    if not isinstance(hop.own, Tensor) and hop.own == 0:
        return others
    return own_part(hop, h) + others


def own_part(hop: Hop, h: Tensor) -> Tensor:
    """own h: (sources, width) -> (targets, width)."""
    return scale_rows(hop.own, hop.own_rows(h))
