"""The `propagate` that a model is given, and the passes over a plan that answer it.

A pass answers each call from the plan and the histories by the formulas of estimators.py. For most
estimators there is one; for `cvd` a second one follows, with dropout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.engine.estimators import Estimator, add_own, corrected, residual, sampled
from vrgcn.engine.history import Histories
from vrgcn.engine.plan import Hop, Plan
from vrgcn.graph.sparse import first_rows, is_sparse


class Propagate:
    """What a model calls in place of the textbook's P @ h.

    The k-th call takes the activations of level k, (sizes[k], width), and gives the (estimated)
    averages for level k + 1, (sizes[k + 1], width). Those nodes are the first of level k, so after
    `y = propagate(h)` the rows `h[:len(y)]` are the same nodes' own activations.
    """

    def __init__(self, sizes: list[int], answer: Callable[[int, Tensor], Tensor]) -> None:
        self._sizes = sizes
        self._answer = answer
        self._calls = 0
        self._latest: Tensor | None = None

    def __call__(self, h: Tensor) -> Tensor:
        call = self._calls
        if call + 1 >= len(self._sizes):
            raise RuntimeError(
                f"the model called propagate more than the {len(self._sizes) - 1} times it did "
                "when it was first looked at; it must call it the same number of times always"
            )
        if h.shape[0] != self._sizes[call]:
            raise RuntimeError(
                f"propagate call {call + 1} was given {h.shape[0]} rows, and has "
                f"{self._sizes[call]} nodes; each call takes all rows of what came out of the "
                "one before"
            )
        self._calls += 1
        self._latest = h
        return self._answer(call, h)

    def check_finished(self) -> None:
        """Refuse a pass that ended at an earlier level than the minibatch's."""
        if self._calls + 1 != len(self._sizes):
            raise RuntimeError(
                f"the model called propagate {self._calls} times, and {len(self._sizes) - 1} when "
                "it was first looked at; it must call it the same number of times always"
            )

    def own(self, h: Tensor) -> Tensor:
        """The rows of h for the nodes that `propagate(h)` answers for, before or after that call.

        After the last call, the rows of the minibatch for any h of an earlier level.
        """
        done = self._calls == len(self._sizes) - 1
        if done or h is self._latest:
            return first_rows(h, self._sizes[self._calls])
        if h.shape[0] != self._sizes[self._calls]:
            raise RuntimeError(
                f"propagate.own was given {h.shape[0]} rows where {self._sizes[self._calls]} nodes "
                "are current; with y = propagate(h), write h[:len(y)] for the same nodes' own rows"
            )
        return first_rows(h, self._sizes[self._calls + 1])


@dataclass(frozen=True)
class Inputs:
    """What a plan's passes start from.

    x: (level 0, features), what the model is given
    features: (nodes, features), to know the neighbours of level 0 exactly
    preprocessed: (level 1, features) rows of P X, where the first call is preprocessed
    """

    x: Tensor
    features: Tensor
    preprocessed: Tensor | None

    def first(self, count: int) -> Inputs:
        """Those of the first rows."""
        assert self.preprocessed is not None
        return Inputs(self.x[:count], self.features, self.preprocessed[:count])

    def answer(self, h: Tensor) -> Tensor:
        """P h for the preprocessed call, whose h must be the features."""
        if h is not self.x or self.preprocessed is None:
            raise RuntimeError(
                "preprocess=True needs a model whose first propagate is of the features as they "
                "are; this one changes them first (by dropout or a layer): use preprocess=False"
            )
        return self.preprocessed


class PassEnded(Exception):  # noqa: N818
    """Ends a model's forward pass where what follows is not wanted."""


class FirstPass:
    """Answers `propagate` with the estimator; for `cvd`, this is the pass without dropout.

    `received[k]` and `answered[k]` are the input and the answer of call k, and `picked[k]` what its
    hop picks of the input.
    stop: end by PassEnded once all calls are answered; what follows is not wanted
    """

    def __init__(
        self,
        plan: Plan,
        estimator: Estimator,
        histories: Histories,
        inputs: Inputs,
        *,
        stop: bool = False,
    ) -> None:
        self.stop = stop
        self.plan = plan
        self.estimator = estimator
        self.histories = histories
        self.inputs = inputs
        self.received: list[Tensor] = []
        self.picked: list[Tensor] = []
        self.answered: list[Tensor] = []
        self._versions: list[tuple[int, int]] = []

    def __call__(self, call: int, h: Tensor) -> Tensor:
        hop = self.plan.hops[call]
        picked = h if hop is None else hop.pick(h)
        estimate = self._estimate(call, h, picked)
        self.note(h, picked, estimate)
        if self.stop and call == len(self.plan.hops) - 1:
            raise PassEnded
        return estimate

    def note(self, h: Tensor, picked: Tensor, estimate: Tensor) -> None:
        """Remember a call."""
        self.received.append(h)
        self.picked.append(picked)
        self.answered.append(estimate)
        self._versions.append((version(h), version(estimate)))

    def check_unchanged(self) -> None:
        """Refuse a model that changed what it propagated in place: its history would be wrong."""
        for call, (h, (before, _)) in enumerate(zip(self.received, self._versions, strict=True)):
            if version(h) != before:
                raise RuntimeError(
                    f"the input of propagate call {call + 1} was changed in place after the call; "
                    "use h = h + ... instead of h += ... in the model"
                )

    def check_answers_unchanged(self) -> None:
        """Refuse a model that changed an answer in place, where a second pass starts from it."""
        for call, (y, (_, before)) in enumerate(zip(self.answered, self._versions, strict=True)):
            if version(y) != before:
                raise RuntimeError(
                    f"the answer of propagate call {call + 1} was changed in place, and cvd needs "
                    "it again; use y = y + ... instead of y += ... in the model"
                )

    @property
    def activations(self) -> dict[int, Tensor]:
        """What the histories keep: by call, its input, where that is not the features."""
        return {call: h for call, h in enumerate(self.received) if h is not self.inputs.x}

    def commit(self, step: int) -> None:
        """Write the activations of this pass into the histories."""
        for call, h in self.activations.items():
            table = self.histories.table(call, h.shape[1])
            table.write(self.plan.levels[call], h, step)

    def _estimate(self, call: int, h: Tensor, picked: Tensor) -> Tensor:
        hop = self.plan.hops[call]
        if hop is None:
            return self.inputs.answer(h)
        if not self.estimator.history:
            return sampled(hop, h)
        if h is self.inputs.x:  # the features never change: they are their own exact history
            return add_own(hop, h, self._average_features(hop))
        if is_sparse(h):
            raise ValueError(
                "sparse features under dropout have no history; put dropout after the propagation "
                "(order='after'), or use the estimator cvd, exact, ns or is"
            )
        table = self.histories.table(call, h.shape[1])
        assert hop.history is not None
        average = table.average(hop.history, h.dtype)
        if not hop.edges.num_entries:
            return add_own(hop, h, average)
        past = table.read(hop.pick(self.plan.levels[call]), h.dtype)
        return corrected(hop, h, picked, past, average, self.estimator)

    def _average_features(self, hop: Hop) -> Tensor:
        assert hop.history is not None
        features = self.inputs.features  # may be larger than the device of the model holds
        return (hop.history.to(features.device) @ features).to(self.inputs.x.device)


class ResidualPass:
    """The pass with dropout: adds √R P̂ (h - μ) to what the first pass answered for μ.

    nothing_dropped: whether h was μ in every call so far
    """

    def __init__(self, first: FirstPass) -> None:
        self.first = first
        self.nothing_dropped = True

    def __call__(self, call: int, h: Tensor) -> Tensor:
        mean, estimate = self.first.received[call], self.first.answered[call]
        hop = self.first.plan.hops[call]
        if hop is None:
            return self.first.inputs.answer(h)
        # Where nothing was dropped there is no residual, and leaving it out makes cvd without
        # dropout the same as cv to the last bit.
        if h is mean or (not is_sparse(h) and torch.equal(h, mean)):
            return estimate
        self.nothing_dropped = False
        if is_sparse(h):  # which has no `-`
            difference = torch.add(h, mean, alpha=-1)
            return residual(hop, estimate, difference, difference)
        targets = len(hop.own)
        own = h[:targets] - mean[:targets] if hop.has_own else h
        return residual(hop, estimate, own, hop.pick(h) - self.first.picked[call])


def version(h: Tensor) -> int:
    """How often a tensor was changed in place; not counted in inference mode."""
    return 0 if h.is_inference() else h._version
