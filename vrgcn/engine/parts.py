"""CVD's pass without dropout in two parts, where it has one call to estimate.

Of the pass without dropout, the minibatch's own rows go into the history and nowhere else: what
they add to the estimate, own μ, the pass with dropout turns into own h. So no gradient flows to
them, and they are computed without one. That leaves the backward pass of the sampled neighbours,
half of the rows with one neighbour each.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor, nn

from vrgcn.engine.estimators import Estimator
from vrgcn.engine.history import Histories
from vrgcn.engine.plan import Plan
from vrgcn.engine.propagate import FirstPass, Inputs, PassEnded, Propagate


class FirstPassInParts(FirstPass):
    """For a model whose first call is preprocessed and whose second is its last.

    What the model does before the second call must be row by row, see trace.is_row_wise.

    inputs: of the rows of level 0, then of `targets_again(plan)`
    """

    def __init__(
        self, plan: Plan, estimator: Estimator, histories: Histories, inputs: Inputs
    ) -> None:
        super().__init__(plan, estimator, histories, inputs.first(plan.sizes[0]))
        self._rows = inputs

    def run(self, model: nn.Module) -> None:
        targets = self.plan.sizes[-1]
        own: list[Tensor] = []
        with torch.no_grad():
            self._part(model, slice(targets), own.append)
        self._part(model, slice(targets, None), lambda h: self._finish(own[0], h))

    def _part(self, model: nn.Module, rows: slice, end: Callable[[Tensor], None]) -> None:
        """Run the model on some rows, as far as its second call; `end` takes what that is given."""
        assert self._rows.preprocessed is not None
        part = Inputs(self._rows.x[rows], self._rows.features, self._rows.preprocessed[rows])

        def answer(call: int, h: Tensor) -> Tensor:
            if call == 0:
                return part.answer(h)
            end(h)
            raise PassEnded

        propagate = Propagate([len(part.x)] * 3, answer)
        with suppress(PassEnded):
            model(part.x, propagate)
        propagate.check_finished()

    def _finish(self, own: Tensor, others: Tensor) -> None:
        """Answer the second call. own: (targets, width), others: those that come after them"""
        hop = self.plan.hops[1]
        assert hop is not None
        mean = torch.cat([own, others.detach()[: self.plan.sizes[1] - len(own)]])
        picked = others.index_select(0, hop.apart)
        assert self.inputs.preprocessed is not None
        self.note(self.inputs.x, self.inputs.x, self.inputs.preprocessed)
        self.note(mean, picked, self._estimate(1, mean, picked))


def targets_again(plan: Plan) -> Tensor | None:
    """The targets that are neighbours in the last hop too, once for each entry that names one: they
    need a row with gradient beside the one without. None where parts would not save work.
    """
    hop = plan.hops[-1]
    assert hop is not None
    if not hop.by_entry or len(hop.again) > len(plan.nodes) / 4:
        return None
    return plan.nodes.index_select(0, hop.edges.indices.index_select(0, hop.again))
