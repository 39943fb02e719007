"""Time to accuracy: algorithms race at each of their learning rates, and the table has the rate at
which each reaches the target soonest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from lab.harness.algorithms import Algorithm, Architecture, Recipe
from lab.harness.race import Entry, Runner, Validation, race, turns_to

# An algorithm by name, at a learning rate.
AtRate = tuple[str, float]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one algorithm.

    reached: True if the target was reached; seconds, epochs: until then, or until it gave up
    best: the best validation score
    """

    reached: bool
    seconds: float
    epochs: float
    best: float

    @classmethod
    def of(cls, runner: Runner, target: float) -> Outcome:
        arrived = turns_to(target, runner.val)
        turns = len(runner.seconds) if arrived is None else arrived
        return cls(
            arrived is not None,
            sum(runner.seconds[:turns]),
            turns / runner.parts,
            max(runner.val, default=0.0),
        )


def race_rates(
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
    average_weights: bool = True,
) -> dict[AtRate, Runner]:
    """Race every recipe at each of its learning rates, until all have reached the last target.

    limit: epochs after which a recipe gives up
    rounds: maximum number of rounds of the race, for showing progress
    average_weights: score averaged weights, as training does by default
    """
    entries: dict[AtRate, Entry] = {}
    for name, recipe in recipes.items():
        first, *others = recipe.rates
        algorithm = Algorithm(
            validation.graph, recipe, architecture,
            inductive=inductive, seed=seed, learning_rate=first,
            average_weights=average_weights,
        )  # fmt: skip
        entries[name, first] = Entry(algorithm, limit(recipe))
        for rate in others:
            entries[name, rate] = Entry(algorithm.sibling(rate), limit(recipe))
    return race(entries, validation, target=max(targets), parts=parts, seed=seed, rounds=rounds)


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return medians over the runs. The target counts as reached if every run reached it."""
    return {
        "reached": all(outcome.reached for outcome in outcomes),
        "epochs": median(outcome.epochs for outcome in outcomes),
        "seconds": median(outcome.seconds for outcome in outcomes),
        "best": median(outcome.best for outcome in outcomes),
        "runs": [asdict(outcome) for outcome in outcomes],
    }


def chosen(
    name: str, races: list[dict[AtRate, Runner]], targets: tuple[float, ...]
) -> dict[str, Any]:
    """Return the summary of an algorithm at the learning rate that reaches the first target
    soonest, with `rate`, and with the same for each later target under `later`."""
    rates = [rate for other, rate in races[0] if other == name]
    found = {
        rate: [summary([Outcome.of(race[name, rate], t) for race in races]) for t in targets]
        for rate in rates
    }

    def order(rate: float) -> tuple[bool, float]:
        first = found[rate][0]
        return not first["reached"], first["seconds"] if first["reached"] else -first["best"]

    rate = min(rates, key=order)
    later = {f"{t:g}": result for t, result in zip(targets[1:], found[rate][1:], strict=True)}
    return found[rate][0] | {"rate": rate, "later": later}


def arrival(entry: dict[str, Any]) -> list[str]:
    """Return epochs and seconds of a summary as text."""
    if entry["reached"]:
        return [f"{entry['epochs']:.2f}", f"{entry['seconds']:.1f}"]
    best = f" (best {entry['best']:.3f})" if "best" in entry else ""
    return [f"never in {entry['epochs']:g}{best}", f"> {entry['seconds']:.1f}"]
