"""Algorithms that train side by side in one process, a part of an epoch each in turn: whatever
slows the machine for a while slows all of them alike.

An exact validation follows each part and is not counted. Who has reached the target, or has used up
its epochs, leaves the race; the one that sets the pace runs as long as anybody does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from torch import nn

from lab.paper.experiment import Record
from lab.paper.runs import rounded
from vrgcn.engine.setup import Setup, set_up
from vrgcn.graph.graph import Graph
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.training.config import TrainConfig
from vrgcn.training.trainer import Trainer


class Entry(NamedTuple):
    """Who runs. config: its epochs are those after which it gives up"""

    model: nn.Module
    config: TrainConfig


@dataclass
class Runner:
    """An entry in the race.

    limit: turns after which it gives up; parts: turns of an epoch
    val: validation scores after each turn; seconds: that each turn took
    diverged: why it left, if its loss became infinite
    """

    trainer: Trainer
    limit: int
    parts: int
    val: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    diverged: str | None = None

    def turn(self) -> None:
        """Train one part of an epoch. Parts differ by a step where they do not divide it."""
        before = self.trainer.progress.seconds
        steps, done = len(self.trainer.minibatches), len(self.seconds)
        count = steps * (done + 1) // self.parts - steps * done // self.parts
        try:
            for _ in range(count):
                self.trainer.advance()
        except FloatingPointError as error:  # it is a result too: it does not converge
            self.diverged = str(error)
        self.seconds.append(rounded(self.trainer.progress.seconds - before))

    def running(self, target: float) -> bool:
        there = bool(self.val) and self.val[-1] >= target
        return not (there or self.diverged or len(self.seconds) >= self.limit)


def race(
    graph: Graph,
    entries: Mapping[str, Entry],
    *,
    target: float,
    parts: int,
    pace: str,
    before_turn: Callable[[], None] = lambda: None,
) -> dict[str, Record]:
    """What became of each: {"val", "seconds"} with a number for each turn, and "diverged".

    target: validation score that ends an entry's race
    parts: turns of an epoch
    pace: the entry that runs as long as another does
    before_turn: called before each turn, when nothing is being timed
    """
    runners = {name: _runner(graph, entry, parts) for name, entry in entries.items()}
    validation = _Validation(graph)
    rounds = 0
    while running := [n for n, r in runners.items() if n != pace and r.running(target)]:
        names = [pace, *running]
        first = rounds % len(names)  # none always finds the caches as the same other left them
        for name in names[first:] + names[:first]:
            before_turn()
            runners[name].turn()
            if runners[name].diverged is None:
                runners[name].val.append(rounded(validation(runners[name].trainer)))
        rounds += 1
    return {
        name: {"val": runner.val, "seconds": runner.seconds, "diverged": runner.diverged}
        for name, runner in runners.items()
    }


def _runner(graph: Graph, entry: Entry, parts: int) -> Runner:
    """Its trainer never comes to an end and never validates: both are decided here."""
    endless = replace(entry.config, epochs=1_000_000, evaluate_every=1_000_000, diagnostics=0)
    return Runner(Trainer(entry.model, graph, endless), parts * entry.config.epochs, parts)


class _Validation:
    """Exact scores on all edges; the models are alike, so P X is computed once for all of them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.setups: dict[str | None, Setup] = {}

    def __call__(self, trainer: Trainer) -> float:
        rule = trainer.config.propagation
        if rule not in self.setups:
            self.setups[rule] = set_up(trainer.model, self.graph, propagation=rule, preprocess=True)
        outputs = ExactSweeps(trainer.model, self.setups[rule]).outputs(self.graph.val)
        return trainer.objective.score(outputs, self.graph.val)
