"""Passes: a plan and the histories, composed into the answers that a model's `propagate` gives.

For most estimators there is one pass; for `cvd` a second one follows, with dropout.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrgcn.engine.estimators import Estimator
from vrgcn.engine.formulas import add_own, from_history, residual, sampled
from vrgcn.engine.history import Histories
from vrgcn.engine.plan import Hop, Plan, Relation
from vrgcn.engine.propagate import Answer, Propagate
from vrgcn.engine.setup import Inputs
from vrgcn.engine.trace import version
from vrgcn.graph.sparse import is_sparse


class PassEnded(Exception):  # noqa: N818
    """Ends a model's forward pass where what follows is not wanted."""


class FirstPass:
    """Answers `propagate` with the estimator; for `cvd`, this is the pass without dropout.

    received: by level, what the model propagated; answered: by level and relation, what it was told
    stop_after: end by PassEnded after so many different answers; what follows is not wanted
    """

    def __init__(
        self,
        plan: Plan,
        estimator: Estimator,
        histories: Histories,
        inputs: Inputs,
        *,
        stop_after: int | None = None,
    ) -> None:
        self.plan = plan
        self.estimator = estimator
        self.histories = histories
        self.inputs = inputs
        self.stop_after = stop_after
        self.received: list[Tensor] = []
        self.answered: dict[tuple[int, Relation], Tensor] = {}
        self._versions: dict[tuple[int, Relation], tuple[int, int]] = {}

    def __call__(self, level: int, over: Relation, h: Tensor) -> Tensor:
        if level == len(self.received):
            self.received.append(h)
        answer = self._answer(level, over, h)
        self.answered[level, over] = answer
        self._versions[level, over] = version(h), version(answer)
        if len(self.answered) == self.stop_after:
            raise PassEnded
        return answer

    def check_unchanged(self) -> None:
        """Refuse a model that changed what it propagated in place: its history would be wrong."""
        for (level, _), (before, _) in self._versions.items():
            if version(self.received[level]) != before:
                raise RuntimeError(
                    f"the input of propagate call {level + 1} was changed in place after the call; "
                    "use h = h + ... instead of h += ... in the model"
                )

    def check_answers_unchanged(self) -> None:
        """Refuse a model that changed an answer in place, where a second pass starts from it."""
        for (level, over), answer in self.answered.items():
            if version(answer) != self._versions[level, over][1]:
                raise RuntimeError(
                    f"the answer of propagate call {level + 1} was changed in place, and a "
                    "second pass needs it again; use y = y + ... instead of y += ... in the model"
                )

    @property
    def activations(self) -> dict[int, Tensor]:
        """What the histories keep: by level, what was propagated, unless it is the features."""
        return {level: h for level, h in enumerate(self.received) if h is not self.inputs.x}

    def commit(self, step: int) -> None:
        """Write the activations of this pass into the histories."""
        for level, h in self.activations.items():
            table = self.histories.table(level, h.shape[1])
            table.write(self.plan.levels[level].nodes, h, step)

    def _answer(self, level: int, over: Relation, h: Tensor) -> Tensor:
        hop = self.plan.levels[level].hops.get(over)
        if hop is None:
            return self.inputs.answer(h, over)
        if not self.estimator.history:
            return self._sampled(hop, h)
        assert hop.history is not None
        if h is self.inputs.x:  # the features never change: they are their own exact history
            features = self.inputs.features  # may be larger than the device of the model holds
            average = (hop.history.to(features.device) @ features).to(h.device)
            return add_own(hop, h, average)
        if is_sparse(h):
            raise ValueError(
                "sparse features under dropout have no history; put dropout after the propagation "
                "(order='after'), or use the estimator cvd, exact, ns or is"
            )
        table = self.histories.table(level, h.shape[1])
        average = table.average(hop.history, h.dtype)
        past = None
        if hop.edges.num_entries and self.estimator.corrects:
            past = table.read(hop.pick(self.plan.levels[level].nodes), h.dtype)
        return from_history(hop, h, past, average, self.estimator)

    def _sampled(self, hop: Hop, h: Tensor) -> Tensor:
        if self.estimator.backward == "none":
            return add_own(hop, h, hop.combine(hop.pick(h.detach())))
        return sampled(hop, h)


class ResidualPass:
    """The pass with dropout: adds √R P̂ (h - μ) to what the first pass answered for μ."""

    def __init__(self, first: FirstPass) -> None:
        self.first = first

    def __call__(self, level: int, over: Relation, h: Tensor) -> Tensor:
        hop = self.first.plan.levels[level].hops.get(over)
        if hop is None:
            return self.first.inputs.answer(h, over)
        mean, estimate = self.first.received[level], self.first.answered[level, over]
        if h is mean:  # the features as they are
            return estimate
        # Sparse tensors have no `-`.
        difference = torch.add(h, mean, alpha=-1) if is_sparse(h) else h - mean
        return residual(hop, estimate, difference, self.first.estimator.backward)


def run_model(model: nn.Module, inputs: Inputs, plan: Plan, answer: Answer) -> Tensor:
    """The model's outputs for the minibatch, each `propagate` answered by a pass."""
    propagate = Propagate(plan.sizes, answer, inputs.ready)
    output: Tensor = model(inputs.x, propagate)
    propagate.check_finished()
    return output
