"""Measures the time of each part of a training step, from outside.

The objects given to the engine are wrapped in objects that read the clock: the model, its
`propagate`, and the history tables. Nothing inside the engine is changed.

    plan        drawing neighbours, slicing rows of P
    gather      copying the rows of X and P X, until the model is first called
    average     P h̄ from the history tables
    estimate    the rest of `propagate`: own edges, sampled edges, reading h̄
    dense       the rest of the forward passes, with the loss
    backward
    optimiser
    commit      writing the histories
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lab.harness.algorithms import Algorithm
from vrgcn.engine.history import History
from vrgcn.engine.plan import Relation
from vrgcn.graph.sparse import CSR
from vrgcn.training.objective import loss_per_node

STAGES = ("plan", "gather", "average", "estimate", "dense", "backward", "optimiser", "commit")


class Clock:
    """Seconds by name.

    now: returns the time in seconds
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self.now = now

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = self.now()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self.now() - start


class StagedAlgorithm:
    """An algorithm whose steps report how long each stage took.

    now: returns the time in seconds
    """

    def __init__(self, algorithm: Algorithm, now: Callable[[], float] = time.perf_counter) -> None:
        self.algorithm = algorithm
        self.clock = Clock(now)
        self.model = _TimedModel(algorithm.model, self.clock)
        algorithm.run(1)  # makes the history tables
        tables = algorithm.batches.histories.tables
        for key, table in tables.items():
            tables[key] = _TimedHistory(table, self.clock)

    def step(self) -> dict[str, float]:
        """Make one step; return the seconds of each stage."""
        algorithm, clock = self.algorithm, self.clock
        clock.seconds = {}
        with clock("plan"):
            batch = algorithm.batch()
        assert batch.labels is not None
        self.model.called = None
        start = clock.now()
        outputs = batch.run(self.model)
        run = clock.now() - start
        assert self.model.called is not None
        with clock("loss"):
            loss = batch.mean(loss_per_node(outputs, batch.labels))
        with clock("optimiser"):
            algorithm.optimizer.zero_grad()
        with clock("backward"):
            loss.backward()
        with clock("optimiser"):
            algorithm.optimizer.step()
        with clock("commit"):
            batch.commit()
        taken = dict.fromkeys(STAGES, 0.0) | clock.seconds
        taken["gather"] = self.model.called - start
        taken["estimate"] = taken.pop("propagate") - taken["average"]
        taken["dense"] = run - taken["gather"] - taken["average"] - taken["estimate"]
        taken["dense"] += taken.pop("loss")
        return taken


class _TimedModel(nn.Module):
    """called: when it was first called since `called` was set to None"""

    def __init__(self, model: nn.Module, clock: Clock) -> None:
        super().__init__()
        self.model = model
        self.clock = clock
        self.called: float | None = None

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        if self.called is None:
            self.called = self.clock.now()
        output: Tensor = self.model(x, _TimedPropagate(propagate, self.clock))
        return output


class _TimedPropagate:
    """Every way to call `propagate`, and its methods, timed."""

    def __init__(self, propagate: Any, clock: Clock) -> None:
        self._propagate = propagate
        self._clock = clock

    def __call__(self, h: Tensor, over: Relation = None) -> Tensor:
        with self._clock("propagate"):
            answer: Tensor = self._propagate(h, over)
        return answer

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._propagate, name)
        if not callable(method):
            return method

        def timed(*arguments: Any, **named: Any) -> Any:
            with self._clock("propagate"):
                return method(*arguments, **named)

        return timed


class _TimedHistory(History):
    """The same table, its average timed."""

    def __init__(self, table: History, clock: Clock) -> None:
        super().__init__(table.values, table.written, table.frame)
        self._clock = clock

    def average(self, rows: CSR, dtype: torch.dtype, weights: Tensor | None = None) -> Tensor:
        with self._clock("average"):
            return super().average(rows, dtype, weights)
