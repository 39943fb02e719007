"""Section `accuracy`: seconds and epochs until a validation score is reached (the paper's Table 4).

Algorithms whose recipe has several learning rates run with each; the table has the one that gets
there soonest.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from lab.bench.bench import COMPARED, Bench
from lab.bench.memory import Memory, training_memory
from lab.bench.pyg import (
    HOW_TO_INSTALL,
    LoaderTraining,
    can_sample,
    loader_name,
    training_graph,
)
from lab.bench.rates import arrival, chosen, race_rates
from lab.bench.section import Section, Table
from lab.harness.algorithms import Recipe
from lab.harness.race import Validation

SAME_FANOUTS = "NS (10, 25)"
PEER_FANOUTS = (25, 10)
PEER = loader_name(PEER_FANOUTS)


def run(bench: Bench) -> Section:
    scale, validation = bench.scale, Validation(bench.graph)
    targets = (scale.target, *(target for target in scale.later if target > scale.target))
    peer = _peer(bench)
    peer_ms: list[float] = []

    def rounds(seed: int) -> Iterator[object]:
        """Yield as many rounds as the race may have; a batch of the peer is timed before each."""
        most = range(max(scale.epochs, scale.slow_epochs) * scale.evaluations)
        told = f"accuracy: parts of epochs, run {seed + 1}/{scale.runs}"
        for number in bench.track(most, told):
            if peer is not None and len(peer_ms) < scale.turns:
                peer_ms.append(peer.milliseconds(1))
            yield number

    races = [
        race_rates(
            COMPARED,
            bench.architecture,
            validation,
            targets=targets,
            limit=lambda recipe: scale.slow_epochs if recipe.slow else scale.epochs,
            parts=scale.evaluations,
            seed=seed,
            rounds=rounds(seed),
            average_weights=scale.average_weights,
        )
        for seed in range(scale.runs)
    ]
    memory = _memory(bench)
    results: dict[str, Any] = {}
    for name in COMPARED:
        results[name] = chosen(name, races, targets)
        if name in memory:
            results[name]["memory"] = memory[name].as_dict()
    notes = [
        f"evaluated {bench.scale.evaluations} times an epoch; validation is not counted",
        f"scored: {'averaged' if scale.average_weights else 'last'} weights",
        "memory: peak of a process of its own less its libraries; beyond graph, features, tables",
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
    later = [f"{target:g}" for target in targets[1:]]
    table = Table(
        f"accuracy: until {scale.target:.0%} validation, {scale.runs} run(s)",
        (
            *("", "rate", "epochs", "seconds"),
            *(f"s to {target:.0%}" for target in targets[1:]),
            *("peak MB", "beyond MB"),
        ),
        [_row(name, entry, later) for name, entry in results.items()],
    )
    return Section([table], {"target": scale.target, "algorithms": results}, notes)


def _peer(bench: Bench) -> LoaderTraining | None:
    if not can_sample():
        return None
    peer = LoaderTraining(training_graph(bench.graph), bench.architecture, PEER_FANOUTS)
    peer.milliseconds(1)  # the first batch warms up
    return peer


def _memory(bench: Bench) -> dict[str, Memory]:
    names = bench.scale.memory or tuple(COMPARED)
    return {
        name: training_memory(
            bench.saved_graph,
            COMPARED[name],
            bench.architecture,
            steps=_memory_steps(bench, COMPARED[name]),
            threads=bench.threads,
        )
        for name in bench.track(names, "accuracy: memory")
    }


def _memory_steps(bench: Bench, recipe: Recipe) -> int:
    """Return enough steps to include large minibatches if sizes differ."""
    return 4 * bench.steps(recipe.slow)


def _row(name: str, entry: dict[str, Any], later: list[str]) -> list[str]:
    cells = arrival(entry)
    for target in later:
        cells += arrival(entry["later"][target])[1:] if "later" in entry else ["–"]
    sizes = ["–", "–"]
    if "memory" in entry:
        sizes = [f"{entry['memory'][part] / 1e6:,.0f}" for part in ("peak", "excess")]
    return [name, f"{entry['rate']:g}" if "rate" in entry else "–", *cells, *sizes]
