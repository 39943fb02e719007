"""One minibatch: run it, commit what it computed, or discard it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vrgcn.engine.node_rows import GraphRows
from vrgcn.engine.passes import Change, FirstPass, PassEnded, ResidualPass, run_model
from vrgcn.engine.plan import Plan
from vrgcn.engine.setup import Inputs
from vrgcn.engine.trace import set_mode

if TYPE_CHECKING:
    from vrgcn.engine.minibatches import MiniBatches


@dataclass(frozen=True)
class Position:
    """The place of training between two minibatches.

    epoch: how many were begun; place: minibatches of the present one that were given out
    step: minibatches that were committed in all
    """

    epoch: int = 0
    place: int = 0
    step: int = 0


class Batch:
    """One minibatch.

    plan: the nodes and edges it uses
    nodes: (batch,) node ids
    backward: whether a gradient can reach it; if not, it has only activations to `renew`
    size: number of nodes that the mean of the loss is over; more than its own if several processes
        take one step together
    elsewhere: (nodes,) bool, the nodes that other processes visit in this step
    """

    def __init__(
        self, source: MiniBatches, plan: Plan, *, backward: bool = True, size: int | None = None
    ) -> None:
        self._source = source
        self._pass: FirstPass | None = None
        self.plan = plan
        self.nodes = plan.nodes
        self.backward = backward
        self.size = len(self.nodes) if size is None else size
        self.elsewhere: Tensor | None = None

    @property
    def labels(self) -> Tensor | None:
        """(batch,) or (batch, classes), on the model's device; None in a graph without labels."""
        labels = self._source.graph.labels
        if labels is None:
            return None
        return labels.index_select(0, self.nodes).to(self._source.setup.device)

    @property
    def in_loss(self) -> Tensor:
        """(batch,) bool, True for nodes that are trained on; the others only refresh histories."""
        return self._source.trained.index_select(0, self.nodes).to(self._source.setup.device)

    @property
    def needs_gradient(self) -> bool:
        """Whether it moves the weights: it has nodes that are trained on or, where gradients have a
        history, that gradients pass through."""
        through = self._source.estimator.gradient_history
        return self.backward and (through or bool(self.in_loss.any()))

    def losses(self, objective: Any, outputs: Tensor) -> Tensor:
        """Return the losses that `mean` takes: those of the nodes `in_loss`.

        objective: `objective.loss(outputs, nodes)` is the loss of each node
        outputs: (batch, classes), from `run`
        """
        in_loss = self.in_loss
        losses: Tensor = objective.loss(outputs[in_loss], self.nodes[in_loss.to(self.nodes.device)])
        return losses

    def counted(self, losses: Tensor) -> Tensor:
        """The sum of the losses that count in the epoch's mean loss: each once in an epoch."""
        return losses.sum()

    def mean(self, losses: Tensor) -> Tensor:
        """The loss to minimise, from the losses of the nodes `in_loss`.

        It is their sum over the expected number of training nodes in a batch, not over the number
        in this one, which would bias the gradient when other nodes are visited too. If only
        training nodes are visited, the two are the same.
        """
        return losses.sum() * (self._source.share / self.size)

    def run(self, model: nn.Module) -> Tensor:
        """The model's outputs for the nodes of the batch: (batch, classes). A second call, as by an
        optimiser that evaluates twice, undoes what the first one wrote."""
        self.discard()
        if len(self.nodes) > 1:
            return self._run(model)
        # One row has no deviation: layers that normalise over the batch use what they have seen.
        with set_mode(model, model.training, norms=False):
            return self._run(model)

    def _run(self, model: nn.Module) -> Tensor:
        setup, estimator = self._source.setup, self._source.estimator
        plan = self.plan.to(setup.device)
        inputs = setup.inputs(self.plan.levels[0].nodes)
        known = {
            (number, over): hop.rows
            for number, level in enumerate(plan.levels, start=1)
            for over, hop in level.hops.items()
        }
        nodes = [level.nodes for level in self.plan.levels]
        rows = GraphRows(nodes, setup.P, setup.device, setup.schema, known)
        # Without dropout, or where it meets no estimate, h is its own mean, and cvd is cv.
        residual = estimator.dropout_residual and setup.training.random and plan.hops
        if not (residual and model.training):
            self._pass = self._first(plan, inputs)
            output = run_model(model, inputs, plan, self._pass, rows)
            self._pass.check_unchanged()
            return output
        calls = sum(map(len, setup.training.levels))
        self._pass = self._first(plan, inputs, stop_after=calls)
        with set_mode(model, training=False), suppress(PassEnded):
            run_model(model, inputs, plan, self._pass, rows)
        self._pass.check_unchanged()
        self._pass.check_answers_unchanged()
        return run_model(model, inputs, plan, ResidualPass(self._pass), rows)

    def _first(self, plan: Plan, inputs: Inputs, stop_after: int | None = None) -> FirstPass:
        source = self._source
        return FirstPass(
            plan,
            source.estimator,
            source.histories,
            inputs,
            step=source.step,
            size=self.size,
            elsewhere=self.elsewhere,
            stop_after=stop_after,
        )

    @torch.no_grad()
    def renew(self, model: nn.Module) -> None:
        """Compute the activations that `commit` writes, without gradients, and nothing else."""
        # Rows of cvd come from its first pass, without dropout: the second is not needed.
        dropout = not self._source.estimator.dropout_residual
        with set_mode(model, training=model.training and dropout):
            self.run(model)

    def changes(self) -> Iterator[Change]:
        """The rows of each table that this minibatch writes, and their old values: known after
        `run`, for gradients after the backward pass."""
        if self._pass is None:
            raise RuntimeError("a batch has changes between batch.run(model) and its commit")
        return self._pass.changes()

    def commit(self) -> None:
        """Write the activations of `run` into the histories: once, after the optimiser's step."""
        if self._pass is None:
            raise RuntimeError("batch.commit() comes after batch.run(model), once")
        source = self._source
        self._pass.commit()
        self._pass = None
        at = source.position
        source.position = Position(at.epoch, at.place, at.step + 1)

    def discard(self) -> None:
        """Leave the histories as they were before `run`; call it instead of `commit`."""
        if self._pass is not None:
            self._pass.discard()
            self._pass = None
