"""Runs a command of vrgcn and reports where its time went.

    python -m lab.studies.timed_command REPORT.json train big --memory disk ...

Phases: `scale` and `prepare` (P X, visits), `train` (the steps), `evaluate`, `checkpoint` and
`predict`; `other` is everything else, such as imports and opening the graph. Parts of each: `plan`
draws minibatches and reads the adjacency, `gather` reads and writes rows of features, averages and
histories and averages them, `compute` is the rest. What of each part was waiting for the disk is
told by lab.harness.stopwatch.

The report is written every half minute, too: a process that is killed leaves one.
"""

from __future__ import annotations

import json
import runpy
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

from lab.harness.stopwatch import Stopwatch
from vrgcn.engine.history import History
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.setup import Setup
from vrgcn.graph.scaling import Scaling
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.runs.checkpointing import Checkpoints
from vrgcn.training.trainer import Trainer

EVERY = 30.0  # seconds
PHASES = (
    (Scaling, "fit", "scale"),
    (Scaling, "apply_to", "scale"),
    (Trainer, "__init__", "prepare"),
    (Trainer, "advance", "train"),
    (Trainer, "_close_epoch", "evaluate"),
    (Trainer, "finish", "evaluate"),
    (Checkpoints, "write", "checkpoint"),
)
GATHER = (
    (Setup, "inputs"),
    (History, "average"),
    (History, "read"),
    (History, "write"),
    (History, "replace"),
    (History, "put_back"),
)


class TimedCommand:
    """A command with a stopwatch. file: of the report"""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.watch = Stopwatch()
        self.steps = self.visits = 0
        self.began = self.wrote = time.perf_counter()

    def install(self) -> None:
        """Put the stopwatch around the measured methods."""
        for owner, name, phase in PHASES:
            self._wrap(owner, name, partial(self.watch.phase, phase))
        for table, name in GATHER:
            self._wrap(table, name, lambda: self.watch.part("gather"))
        self._wrap_iterator(MiniBatches, "rest_of_epoch", lambda: self.watch.part("plan"))
        self._wrap_iterator(ExactSweeps, "stream", self._swept)
        self._count_steps()

    def report(self) -> None:
        told = {
            "seconds": time.perf_counter() - self.began,
            "phases": self.watch.stop(),
            "steps": self.steps,
            "nodes": self.visits,
        }
        self.file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")

    def _swept(self) -> Any:
        """Count sweeps for the score of an epoch as part of the evaluation."""
        current = self.watch.current
        return self.watch.phase(current if current == "evaluate" else "predict")

    def _wrap(self, owner: type, name: str, inside: Callable[[], Any]) -> None:
        method = getattr(owner, name)

        @wraps(method)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with inside():
                return method(*args, **kwargs)

        static = isinstance(vars(owner)[name], staticmethod)
        setattr(owner, name, staticmethod(wrapped) if static else wrapped)

    def _wrap_iterator(self, owner: type, name: str, inside: Callable[[], Any]) -> None:
        method = getattr(owner, name)

        @wraps(method)
        def wrapped(*args: Any, **kwargs: Any) -> Iterator[Any]:
            return self.watch.iterate(lambda: method(*args, **kwargs), inside)

        setattr(owner, name, wrapped)

    def _count_steps(self) -> None:
        step = Trainer._step

        @wraps(step)
        def counted(trainer: Trainer, batch: Any) -> None:
            step(trainer, batch)
            self.steps += 1
            self.visits += len(batch.nodes)
            self._look()

        Trainer._step = counted  # type: ignore[method-assign, assignment]

    def _look(self) -> None:
        now = time.perf_counter()
        if now - self.wrote > EVERY:
            self.wrote = now
            self.report()


def main() -> None:
    command = TimedCommand(Path(sys.argv[1]))
    command.install()
    sys.argv = ["vrgcn", *sys.argv[2:]]
    try:
        runpy.run_module("vrgcn", run_name="__main__", alter_sys=True)
    finally:
        command.report()


if __name__ == "__main__":
    main()
