"""A race: algorithms train side by side in one process, a part of an epoch each in turn, so that
disturbances of the machine slow all of them alike.

An exact validation follows each turn and is not counted. An algorithm leaves the race when it has
reached the target, has used up its epochs or has diverged; the pacemaker runs as long as any other
does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import nn

from vrgcn.engine.setup import Setup, set_up
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.training.objective import score

Name = TypeVar("Name", bound=Hashable)


class Training(Protocol):
    """A model in training, some steps at a time."""

    @property
    def model(self) -> nn.Module: ...

    @property
    def propagation(self) -> str | None:
        """Name of its matrix; None: the model's own."""

    @property
    def steps_per_epoch(self) -> int: ...

    @property
    def diverged(self) -> str | None:
        """The reason why no further step makes sense; None if there is none."""

    def run(self, steps: int) -> float:
        """Make this many steps; return their seconds."""

    def evaluated(self) -> AbstractContextManager[None]:
        """Give the model the weights that are scored, such as their average, inside this
        context."""


class Entry(NamedTuple):
    """A participant of a race. epochs: number after which it gives up"""

    training: Training
    epochs: int


@dataclass
class Runner:
    """An entry in the race.

    limit: turns after which it gives up; parts: turns of an epoch
    val: validation scores after each turn; seconds: that each turn took
    """

    training: Training
    limit: int
    parts: int
    seed: int
    val: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Dropout may draw from the default generator; with a state of its own, no runner's curve
        # depends on the other participants.
        self._random = torch.Generator().manual_seed(self.seed).get_state()

    def turn(self) -> None:
        """Train one part of an epoch. Parts differ by a step if they do not divide it."""
        steps, done = self.training.steps_per_epoch, len(self.seconds)
        before, after = (steps * part // self.parts for part in (done, done + 1))
        with torch.random.fork_rng([]):
            torch.set_rng_state(self._random)
            self.seconds.append(self.training.run(after - before))
            self._random = torch.get_rng_state()

    def running(self, target: float) -> bool:
        done = len(self.seconds) >= self.limit or self.training.diverged is not None
        return not done and turns_to(target, self.val) is None


class Validation:
    """Exact scores on all edges; the models are alike, so P X is computed once for all of them."""

    def __init__(self, graph: Graph) -> None:
        if graph.labels is None or not len(graph.val):
            raise InputError("time to accuracy needs validation nodes: the graph has none")
        self.graph, self.labels = graph, graph.labels[graph.val]
        self.setups: dict[str | None, Setup] = {}

    def __call__(self, training: Training) -> float:
        rule, model = training.propagation, training.model
        if rule not in self.setups:
            self.setups[rule] = set_up(model, self.graph, propagation=rule, preprocess=True)
        with training.evaluated():
            outputs = ExactSweeps(model, self.setups[rule]).outputs(self.graph.val)
        return score(outputs, self.labels)


def race(
    entries: Mapping[Name, Entry],
    validation: Validation,
    *,
    target: float,
    parts: int,
    seed: int,
    pace: Name | None = None,
    rounds: Iterable[object] | None = None,
) -> dict[Name, Runner]:
    """Run all entries until only the pacemaker is left.

    target: validation score that ends an entry's race
    parts: turns of an epoch
    pace: the entry that runs as long as another does
    rounds: maximum number of rounds, to show progress; None: no limit
    """
    runners = {
        name: Runner(entry.training, parts * entry.epochs, parts, seed)
        for name, entry in entries.items()
    }
    for number, _ in enumerate(count() if rounds is None else rounds):
        names = [name for name, r in runners.items() if name == pace or r.running(target)]
        first = number % len(names)  # no entry always follows the same other entry
        for name in names[first:] + names[:first]:
            runner = runners[name]
            runner.turn()
            if runner.training.diverged is None:
                runner.val.append(validation(runner.training))
        if not any(r.running(target) for name, r in runners.items() if name != pace):
            break
    return runners


def turns_to(target: float, val: Sequence[float]) -> int | None:
    """Return the turns until a validation score is reached; None: never."""
    return next((turn for turn, value in enumerate(val, start=1) if value >= target), None)
