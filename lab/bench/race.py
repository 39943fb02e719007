"""A race to validation scores: algorithms train side by side, a part of an epoch each in turn.

An exact validation follows each part and is not counted. Who has reached the last target, or has
used up its epochs, leaves the race.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import torch

from lab.bench.algorithms import Algorithm, Architecture, Recipe
from vrgcn.engine.setup import Setup, set_up
from vrgcn.graph.graph import Graph
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.models.models import GraphSAGE
from vrgcn.training.metrics import score

# An algorithm by name, at a learning rate.
Entry = tuple[str, float]


@dataclass(frozen=True)
class Outcome:
    """reached: whether the target was; seconds, epochs: until then, or until it gave up
    best: the best validation score
    """

    reached: bool
    seconds: float
    epochs: float
    best: float


@dataclass
class Runner:
    """An algorithm in the race.

    limit: epochs after which it gives up; parts: of an epoch
    arrivals: by target, epochs and seconds until it was reached
    """

    algorithm: Algorithm
    limit: int
    parts: int
    seed: int
    targets: tuple[float, ...] = ()
    seconds: float = 0.0
    done: int = 0
    best: float = 0.0
    arrivals: dict[float, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Dropout draws from the default generator; with a state of its own, no runner's curve
        # depends on who else is in the race.
        self._random = torch.Generator().manual_seed(self.seed).get_state()

    @property
    def running(self) -> bool:
        arrived = bool(self.targets) and len(self.arrivals) == len(self.targets)
        return not arrived and self.done < self.limit * self.parts

    def part(self) -> None:
        """Train one part of an epoch. Parts differ by a step where they do not divide it."""
        steps = self.algorithm.steps_per_epoch
        before, after = (steps * part // self.parts for part in (self.done, self.done + 1))
        with torch.random.fork_rng([]):
            torch.set_rng_state(self._random)
            self.seconds += self.algorithm.run(after - before)
            self._random = torch.get_rng_state()
        self.done += 1

    def scored(self, now: float) -> None:
        """Take down a validation score."""
        self.best = max(self.best, now)
        for target in self.targets:
            if now >= target and target not in self.arrivals:
                self.arrivals[target] = (self.done / self.parts, self.seconds)

    def outcome(self, target: float) -> Outcome:
        epochs, seconds = self.arrivals.get(target, (self.done / self.parts, self.seconds))
        return Outcome(target in self.arrivals, seconds, epochs, self.best)


class Validation:
    """Exact scores on all edges; the models are alike, so P X is computed once for all of them."""

    def __init__(self, graph: Graph) -> None:
        if graph.labels is None or not len(graph.val):
            raise ValueError("time to accuracy needs validation nodes: the graph has none")
        self.graph, self.labels = graph, graph.labels[graph.val]
        self.setups: dict[str, Setup] = {}

    def __call__(self, model: GraphSAGE, propagation: str) -> float:
        if propagation not in self.setups:
            self.setups[propagation] = set_up(
                model, self.graph, propagation=propagation, preprocess=True
            )
        sweeps = ExactSweeps(model, self.setups[propagation])
        return score(sweeps.outputs(self.graph.val), self.labels)


def race(
    graph: Graph,
    recipes: Mapping[str, Recipe],
    architecture: Architecture,
    validation: Validation,
    *,
    targets: tuple[float, ...],
    limit: Callable[[Recipe], int],
    parts: int,
    seed: int,
    rounds: Iterable[object],
    inductive: bool = True,
    before_round: Callable[[], None] = lambda: None,
) -> dict[Entry, Runner]:
    """Every recipe at each of its learning rates, until no one runs any more.

    limit: epochs after which a recipe gives up
    rounds: as many as the race may have, for showing progress
    """
    runners: dict[Entry, Runner] = {}
    for name, recipe in recipes.items():
        first, *others = recipe.rates
        algorithm = Algorithm(
            graph, recipe, architecture, inductive=inductive, seed=seed, learning_rate=first
        )
        entries = {first: algorithm} | {rate: algorithm.sibling(rate) for rate in others}
        for rate, each in entries.items():
            runners[name, rate] = Runner(each, limit(recipe), parts, seed, targets)
    for _ in rounds:
        before_round()
        for (name, _rate), runner in runners.items():
            if runner.running:
                runner.part()
                runner.scored(validation(runner.algorithm.model, recipes[name].propagation))
        if not any(runner.running for runner in runners.values()):
            break
    return runners


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """Medians over the runs. It counts as reached when every run did."""
    return {
        "reached": all(outcome.reached for outcome in outcomes),
        "epochs": median(outcome.epochs for outcome in outcomes),
        "seconds": median(outcome.seconds for outcome in outcomes),
        "best": median(outcome.best for outcome in outcomes),
        "runs": [asdict(outcome) for outcome in outcomes],
    }


def chosen(
    name: str, races: list[dict[Entry, Runner]], targets: tuple[float, ...]
) -> dict[str, Any]:
    """An algorithm at the learning rate that reaches the first target soonest: its summary, with
    `rate`, and with the same for each later target under `later`."""
    rates = [rate for other, rate in races[0] if other == name]
    found = {
        rate: [summary([race[name, rate].outcome(t) for race in races]) for t in targets]
        for rate in rates
    }

    def order(rate: float) -> tuple[bool, float]:
        first = found[rate][0]
        return not first["reached"], first["seconds"] if first["reached"] else -first["best"]

    rate = min(rates, key=order)
    later = {f"{t:g}": result for t, result in zip(targets[1:], found[rate][1:], strict=True)}
    return found[rate][0] | {"rate": rate, "later": later}


def arrival(entry: dict[str, Any]) -> list[str]:
    """Epochs and seconds of a summary as text."""
    if entry["reached"]:
        return [f"{entry['epochs']:.2f}", f"{entry['seconds']:.1f}"]
    best = f" (best {entry['best']:.3f})" if "best" in entry else ""
    return [f"never in {entry['epochs']:g}{best}", f"> {entry['seconds']:.1f}"]
