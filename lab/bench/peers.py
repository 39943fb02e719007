"""Section `peers`: PyG on the same training graph, in turns with CVD+PP."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lab.bench.bench import Bench
from lab.bench.pyg import (
    HOW_TO_INSTALL,
    FullBatchTraining,
    LoaderTraining,
    can_sample,
    loader_name,
    training_graph,
)
from lab.bench.section import Section, Table
from lab.harness.algorithms import ALGORITHMS, Algorithm
from lab.harness.timing import Spread, ratio, take_turns

OURS = "CVD+PP"
FULL_BATCH = "PyG full batch"
FANOUTS = ((25, 10), (10, 10), (2, 2))


def run(bench: Bench) -> Section:
    graph = training_graph(bench.graph)
    ours = Algorithm(bench.graph, ALGORITHMS[OURS], bench.architecture)
    full = FullBatchTraining(graph, bench.architecture)
    timers: dict[str, Callable[[], float]] = {
        OURS: partial(ours.milliseconds, bench.scale.steps),
        FULL_BATCH: full.milliseconds,
    }
    steps = {OURS: ours.steps_per_epoch, FULL_BATCH: 1}
    for fanouts in FANOUTS if can_sample() else ():
        training = LoaderTraining(graph, bench.architecture, fanouts)
        timers[loader_name(fanouts)] = partial(training.milliseconds, 1)
        steps[loader_name(fanouts)] = training.steps_per_epoch
    turns = bench.scale.heavy_turns
    times = take_turns(timers, bench.track(range(turns), "peers: taking turns"))
    results, rows = {}, []
    for name, values in times.items():
        epochs = [value * steps[name] / 1e3 for value in values]
        step, epoch = Spread.of(values), Spread.of(epochs)
        against = ratio(epochs, [value * steps[OURS] / 1e3 for value in times[OURS]])
        rows.append([name, step.text(1), str(steps[name]), epoch.text(1), against.text(1)])
        results[name] = {
            "step_ms": step.as_dict(),
            "steps_per_epoch": steps[name],
            "epoch_seconds": epoch.as_dict(),
            "ratio_to_cvd": against.as_dict(),
        }
    table = Table(
        f"peers: {turns} turns",
        ("", "ms a step", "steps an epoch", "s an epoch", f"ratio to {OURS}"),
        rows,
    )
    notes = ["epochs are sampled steps, multiplied by the steps of an epoch"]
    if not can_sample():
        notes.append(HOW_TO_INSTALL)
    return Section([table], {"peers": results, "can_sample": can_sample()}, notes)
