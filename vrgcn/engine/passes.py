"""Passes: a plan and the histories, composed into the answers that a model's `propagate` gives.

For most estimators there is one pass; for `cvd` a second one follows, with dropout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrgcn.engine.estimators import Estimator
from vrgcn.engine.formulas import add_own, from_history, residual, sampled
from vrgcn.engine.forward import run_forward
from vrgcn.engine.history import Histories, History, Replaced, gradient_kind
from vrgcn.engine.node_rows import NodeRows
from vrgcn.engine.plan import Hop, Plan, Relation
from vrgcn.engine.propagate import Answer, Propagate
from vrgcn.engine.setup import Inputs
from vrgcn.engine.trace import version
from vrgcn.engine.way_back import WayBack
from vrgcn.files.mistakes import InputError
from vrgcn.graph.sparse import is_dense, is_sparse


class PassEnded(Exception):  # noqa: N818
    """Ends a model's forward pass where what follows is not wanted."""


class FirstPass:
    """Answers `propagate` with the estimator; for `cvd`, this is the pass without dropout.

    received: by level, what the model propagated; answered: by level and relation, what it was told
    step: the number of this minibatch, for the ages of what is written
    size: over how many nodes the loss is a mean, and elsewhere, (nodes,) bool, those that other
        processes visit in the same step; None if this is the only one
    stop_after: end by PassEnded after so many different answers; what follows is not wanted, and
        the pass with dropout comes next
    """

    def __init__(
        self,
        plan: Plan,
        estimator: Estimator,
        histories: Histories,
        inputs: Inputs,
        *,
        step: int = 0,
        size: int | None = None,
        elsewhere: Tensor | None = None,
        stop_after: int | None = None,
    ) -> None:
        self.plan = plan
        self.estimator = estimator
        self.histories = histories
        self.inputs = inputs
        self.step = step
        self.size = size
        self.elsewhere = elsewhere
        self.stop_after = stop_after
        self.received: list[Tensor] = []
        self.answered: dict[tuple[int, Relation], Tensor] = {}
        self.ways_back: dict[tuple[int, str], WayBack] = {}
        self._replaced: dict[int, Replaced] = {}
        self._versions: dict[tuple[int, Relation], tuple[int, int]] = {}

    def __call__(self, level: int, over: Relation, h: Tensor) -> Tensor:
        if (level, over) in self.answered:  # told once, so that gradients have one way back
            self._check_answer(level, over)
            return self.answered[level, over].clone()
        if level == len(self.received):
            self.received.append(h)
            self._write_first(level, h)
        answer = self._answer(level, over, h)
        way_back = self.way_back(level, over, h)
        if way_back is not None and self.stop_after is None:
            answer = way_back.attach(answer, h)
        elif way_back is not None:
            answer = way_back.attach_first(answer, h)
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
        for level, over in self.answered:
            self._check_answer(level, over)

    def _check_answer(self, level: int, over: Relation) -> None:
        if version(self.answered[level, over]) != self._versions[level, over][1]:
            raise RuntimeError(
                f"the answer of propagate call {level + 1} was changed in place, and it is "
                "needed again; use y = y + ... instead of y += ... in the model"
            )

    @property
    def activations(self) -> dict[int, Tensor]:
        """The activations that histories keep, by level: all that was propagated but the
        features."""
        return {level: h for level, h in enumerate(self.received) if h is not self.inputs.x}

    def way_back(self, level: int, over: Relation, h: Tensor) -> WayBack | None:
        """How gradients go back through a hop, where they have a history."""
        hop = self.plan.levels[level].hops.get(over)
        wanted = self.estimator.gradient_history and h.requires_grad and torch.is_grad_enabled()
        if hop is None or not wanted or h is self.inputs.x:  # features go back as they came
            return None
        kind = gradient_kind(list(self.plan.levels[level].hops).index(over))
        if (level, kind) not in self.ways_back:
            inside = None
            if self.elsewhere is not None:
                inside = self.elsewhere.index_select(0, self.plan.levels[level].nodes)
            back = self.plan.back[over]
            table = self.histories.table(level, h.shape[1], kind, back.span)
            self.ways_back[level, kind] = WayBack(
                hop,
                back,
                self.plan.nodes,
                table,
                corrected=self.estimator.backward == "corrected",
                step=self.step,
                size=self.size,
                inside=inside,
                weights=self._weights_back(table, level, over),
            )
        return self.ways_back[level, kind]

    def _weights_back(self, table: History, level: int, over: Relation) -> Tensor | None:
        """Pᵀ f of the minibatch, where the table has a frame."""
        frames, places = self.histories.frames, self.plan.back[over].places
        if frames is None or table.frame is None:
            return None
        nodes = self.plan.nodes if places is None else self.plan.nodes[places]
        return frames.backward(level, over).index_select(0, nodes.to(frames.device))

    def _weights(self, table: History, level: int, over: Relation, hop: Hop) -> Tensor | None:
        """P f of a hop's targets, where the table has a frame."""
        frames, nodes = self.histories.frames, self.plan.levels[level + 1].nodes
        if frames is None or table.frame is None:
            return None
        targets = nodes if hop.rows is None else nodes[hop.rows]
        return frames.forward(level, over).index_select(0, targets.to(frames.device))

    def commit(self) -> None:
        """Write what is not written yet of this pass's activations into the histories."""
        for level, h in self.activations.items() if self.estimator.history else ():
            done = len(self.plan.nodes) if level in self._replaced else 0
            nodes = self.plan.levels[level].nodes[done:]
            if len(nodes):
                self.histories.table(level, h.shape[1]).write(nodes, h[done:], self.step)

    def discard(self) -> None:
        """Put back what was written already."""
        for level, before in self._replaced.items():
            self.histories.tables[level, "h"].put_back(before)
        for key, way_back in self.ways_back.items():
            if way_back.replaced is not None:
                self.histories.tables[key].put_back(way_back.replaced)

    def changes(self) -> Iterator[Change]:
        """The rows of each table that this pass writes, and their values before it."""
        for level, h in self.activations.items() if self.estimator.history else ():
            table, before = self.histories.tables[level, "h"], self._replaced.get(level)
            nodes = self.plan.levels[level].nodes
            if before is None:
                held = table.read(nodes, h.dtype)
            else:
                first = table.replaced(before, h.dtype).to(h.device)
                held = torch.cat([first, table.read(nodes[len(first) :], h.dtype)])
            yield Change("h", h.detach(), held)
        for key, way_back in self.ways_back.items():
            if way_back.replaced is not None:
                table, before = self.histories.tables[key], way_back.replaced
                now = table.read(before.nodes + table.first, torch.float32)
                yield Change("g", now, table.replaced(before, torch.float32))

    def _write_first(self, level: int, h: Tensor) -> None:
        """Write the minibatch's rows before any is averaged, where gradients have a history, so
        that its nodes see each other as they are."""
        estimator = self.estimator
        kept = estimator.history and h is not self.inputs.x and self.plan.levels[level].hops
        if kept and estimator.gradient_history and is_dense(h):
            rows = h[: len(self.plan.nodes)]
            table = self.histories.table(level, h.shape[1])
            self._replaced[level] = table.replace(self.plan.nodes, rows, self.step)

    def _answer(self, level: int, over: Relation, h: Tensor) -> Tensor:
        hop = self.plan.levels[level].hops.get(over)
        if hop is None:
            return self.inputs.answer(h, over)
        if not self.estimator.history:
            return sampled(hop, h, self.estimator.backward)
        assert hop.history is not None
        if h is self.inputs.x:  # the features never change: they are their own exact history
            features = self.inputs.features  # may be larger than the device of the model holds
            average = (hop.history.to(features.device) @ features).to(h.device, h.dtype)
            return add_own(hop, h, average)
        if not is_dense(h):
            raise InputError(
                "sparse features under dropout have no history; put dropout after the propagation "
                "(order='after'), or use the estimator cvd, two-way-cv, exact, ns or is"
            )
        table = self.histories.table(level, h.shape[1])
        average = table.average(hop.history, h.dtype, self._weights(table, level, over, hop))
        past = None
        if hop.edges.num_entries and self.estimator.corrects:
            past = table.read(hop.pick(self.plan.levels[level].nodes), h.dtype)
        return from_history(hop, h, past, average, self.estimator)


@dataclass(frozen=True)
class Change:
    """Rows of a table of activations ("h") or gradients ("g"): now and before, (rows, width)."""

    kind: str
    now: Tensor
    before: Tensor


class ResidualPass:
    """The pass with dropout: adds √R P̂ (h - μ) to what the first pass answered for μ."""

    def __init__(self, first: FirstPass) -> None:
        self.first = first
        self._answered: dict[tuple[int, Relation], Tensor] = {}

    def __call__(self, level: int, over: Relation, h: Tensor) -> Tensor:
        if (level, over) not in self._answered:
            self._answered[level, over] = self._answer(level, over, h)
            return self._answered[level, over]
        return self._answered[level, over].clone()

    def _answer(self, level: int, over: Relation, h: Tensor) -> Tensor:
        hop = self.first.plan.levels[level].hops.get(over)
        if hop is None:
            return self.first.inputs.answer(h, over)
        mean, estimate = self.first.received[level], self.first.answered[level, over]
        if h is mean:  # the features as they are
            return estimate
        # Sparse tensors have no `-`.
        difference = torch.add(h, mean, alpha=-1) if is_sparse(h) else h - mean
        answer = residual(hop, estimate, difference, self.first.estimator.backward)
        way_back = self.first.way_back(level, over, h)
        return answer if way_back is None else way_back.attach(answer, h, mean)


def run_model(
    model: nn.Module, inputs: Inputs, plan: Plan, answer: Answer, rows: NodeRows
) -> Tensor:
    """The model's outputs for the minibatch, each `propagate` answered by a pass."""
    propagate = Propagate(plan.sizes, answer, rows, inputs.ready)
    output = run_forward(model, inputs.x, propagate)
    propagate.check_finished()
    return output
