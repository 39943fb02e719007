"""Section `accuracy`: seconds and epochs until a validation score is reached (the paper's Table 4).

The algorithms train side by side, a part of an epoch each in turn, with an exact validation after
each part that is not counted. One that has arrived, or has used up its epochs, leaves the race.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch

from vrgcn.benchmarks.algorithms import ALGORITHMS, Algorithm, Recipe
from vrgcn.benchmarks.bench import Bench
from vrgcn.benchmarks.memory import Memory, training_memory
from vrgcn.benchmarks.pyg import (
    HOW_TO_INSTALL,
    LoaderTraining,
    can_sample,
    loader_name,
    training_graph,
)
from vrgcn.benchmarks.section import Section, Table
from vrgcn.engine.setup import Setup, set_up
from vrgcn.graph.graph import Graph
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.models.models import GraphSAGE
from vrgcn.training.metrics import score

SAME_FANOUTS = "NS (10, 25)"
PEER_FANOUTS = (25, 10)
PEER = loader_name(PEER_FANOUTS)


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
    """An algorithm in the race."""

    algorithm: Algorithm
    limit: int
    parts: int
    seed: int
    seconds: float = 0.0
    done: int = 0
    best: float = 0.0
    reached: bool = False

    def __post_init__(self) -> None:
        # Dropout draws from the default generator; with a state of its own, no runner's curve
        # depends on who else is in the race.
        self._random = torch.Generator().manual_seed(self.seed).get_state()

    @property
    def running(self) -> bool:
        return not self.reached and self.done < self.limit * self.parts

    def part(self) -> None:
        """Train one part of an epoch. Parts differ by a step where they do not divide it."""
        steps = self.algorithm.steps_per_epoch
        before, after = (steps * part // self.parts for part in (self.done, self.done + 1))
        with torch.random.fork_rng([]):
            torch.set_rng_state(self._random)
            self.seconds += self.algorithm.run(after - before)
            self._random = torch.get_rng_state()
        self.done += 1

    def outcome(self) -> Outcome:
        return Outcome(self.reached, self.seconds, self.done / self.parts, self.best)


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


def run(bench: Bench) -> Section:
    validation = Validation(bench.graph)
    peer = _peer(bench)
    peer_ms: list[float] = []
    races = [_race(bench, validation, seed, peer, peer_ms) for seed in range(bench.scale.runs)]
    memory = _memory(bench)
    results: dict[str, Any] = {}
    for name in ALGORITHMS:
        results[name] = _summary([race[name] for race in races])
        if name in memory:
            results[name]["memory"] = memory[name].as_dict()
    notes = [
        f"evaluated {bench.scale.evaluations} times an epoch; validation is not counted",
        "memory: peak of a process of its own less its imports; beyond graph, features and tables",
    ]
    if peer is not None:
        epoch = median(peer_ms) * peer.steps_per_epoch / 1e3
        ours = results[SAME_FANOUTS]
        results[PEER] = {
            "reached": ours["reached"],
            "epochs": ours["epochs"],
            "seconds": epoch * ours["epochs"],
            "epoch_seconds": epoch,
            "batches_timed": len(peer_ms),
            "estimated": True,
        }
        notes.append(
            f"{PEER}: {len(peer_ms)} batches timed, multiplied by the {peer.steps_per_epoch} of an "
            f"epoch and by the epochs of {SAME_FANOUTS}, which samples as many neighbours"
        )
    else:
        notes.append(HOW_TO_INSTALL)
    table = Table(
        f"accuracy: until {bench.scale.target:.0%} validation, {bench.scale.runs} run(s)",
        ("", "epochs", "seconds", "peak MB", "beyond MB"),
        [_row(name, entry) for name, entry in results.items()],
    )
    return Section([table], {"target": bench.scale.target, "algorithms": results}, notes)


def _race(
    bench: Bench,
    validation: Validation,
    seed: int,
    peer: LoaderTraining | None,
    peer_ms: list[float],
) -> dict[str, Outcome]:
    scale = bench.scale
    runners = {
        name: Runner(
            Algorithm(bench.graph, recipe, bench.architecture, seed=seed),
            scale.slow_epochs if recipe.slow else scale.epochs,
            scale.evaluations,
            seed,
        )
        for name, recipe in ALGORITHMS.items()
    }
    rounds = range(max(scale.epochs, scale.slow_epochs) * scale.evaluations)
    for _ in bench.track(rounds, f"accuracy: parts of epochs, run {seed + 1}/{scale.runs}"):
        if peer is not None and len(peer_ms) < scale.turns:
            peer_ms.append(peer.milliseconds(1))
        for name, runner in runners.items():
            if runner.running:
                runner.part()
                now = validation(runner.algorithm.model, ALGORITHMS[name].propagation)
                runner.best = max(runner.best, now)
                runner.reached = now >= scale.target
        if not any(runner.running for runner in runners.values()):
            break
    return {name: runner.outcome() for name, runner in runners.items()}


def _peer(bench: Bench) -> LoaderTraining | None:
    if not can_sample():
        return None
    peer = LoaderTraining(training_graph(bench.graph), bench.architecture, PEER_FANOUTS)
    peer.milliseconds(1)  # the first batch warms up
    return peer


def _memory(bench: Bench) -> dict[str, Memory]:
    names = bench.scale.memory or tuple(ALGORITHMS)
    return {
        name: training_memory(
            bench.saved_graph,
            ALGORITHMS[name],
            bench.architecture,
            steps=_memory_steps(bench, ALGORITHMS[name]),
            threads=bench.threads,
        )
        for name in bench.track(names, "accuracy: memory")
    }


def _memory_steps(bench: Bench, recipe: Recipe) -> int:
    """Enough to see the large minibatches of those that differ."""
    return 4 * bench.steps(recipe.slow)


def _summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """Medians over the runs. It counts as reached when every run did."""
    return {
        "reached": all(outcome.reached for outcome in outcomes),
        "epochs": median(outcome.epochs for outcome in outcomes),
        "seconds": median(outcome.seconds for outcome in outcomes),
        "best": median(outcome.best for outcome in outcomes),
        "runs": [asdict(outcome) for outcome in outcomes],
    }


def _row(name: str, entry: dict[str, Any]) -> list[str]:
    if entry["reached"]:
        cells = [f"{entry['epochs']:.2f}", f"{entry['seconds']:.1f}"]
    else:
        best = f" (best {entry['best']:.3f})" if "best" in entry else ""
        cells = [f"never in {entry['epochs']:g}{best}", f"> {entry['seconds']:.1f}"]
    sizes = ["–", "–"]
    if "memory" in entry:
        sizes = [f"{entry['memory'][part] / 1e6:,.0f}" for part in ("peak", "excess")]
    return [name, *cells, *sizes]
