"""Records the arguments and answers of each call of `propagate` in a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from vrgcn.engine.forward import run_forward
from vrgcn.engine.plan import Relation
from vrgcn.graph.sparse import concatenate


class Recorder(nn.Module):
    """A model that records the arguments and answers of its calls of `propagate`.

    A minibatch reads from the recorder's mode whether dropout is on: code that changes the model's
    mode while it records must change the recorder's too, as `frozen(recorder)` does.

    passes: one entry for each forward pass (`cvd` makes two: without dropout, then with it)
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.training = model.training  # without the submodules: each keeps its own mode
        self.passes: list[Calls] = []

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        calls = Calls()
        self.passes.append(calls)
        return run_forward(self.model, x, _Noting(propagate, calls))


@dataclass
class Calls:
    """Calls of one forward pass: the activations propagated on each level, and the answer to each
    different call of `propagate`. A pass that stops early may lack its last answer."""

    inputs: list[Tensor] = field(default_factory=list)
    answers: list[Tensor] = field(default_factory=list)


class _Noting:
    """A `propagate` that records its calls."""

    def __init__(self, propagate: Any, calls: Calls) -> None:
        self._propagate = propagate
        self._calls = calls
        self._known: set[tuple[int, Relation]] = set()

    def __call__(self, h: Tensor, over: Relation = None) -> Tensor:
        self._enter(h)
        answer: Tensor = self._propagate(h, over)
        self._note(answer, over)
        return answer

    def reached(self, h: Tensor, over: str) -> tuple[Tensor, Tensor]:
        self._enter(h)
        rows, answer = self._propagate.reached(h, over)
        self._note(answer, over)
        return rows, answer

    def _enter(self, h: Tensor) -> None:
        if not self._calls.inputs or h is not self._calls.inputs[-1]:
            self._calls.inputs.append(h)

    def _note(self, answer: Tensor, over: Relation) -> None:
        call = len(self._calls.inputs), over
        if call not in self._known:  # a repeated call has the same answer
            self._known.add(call)
            self._calls.answers.append(answer)

    def __getattr__(self, name: str) -> Any:
        """Everything that is no call: nodes, degrees, tables, relations."""
        return getattr(self._propagate, name)

    def own(self, h: Tensor) -> Tensor:
        own: Tensor = self._propagate.own(h)
        return own

    def beside(self, h: Tensor, over: Relation = None) -> Tensor:
        return concatenate(self.own(h), self(h, over))
