"""Section `deep`: models of two, three and four graph layers.

Steps against those of the MLP of the same depth on the bench's graph; and on `communities` a race
at three layers of one dense layer each, on the edges of all nodes, where exact training computes
nearly every node for every minibatch.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from lab.bench.bench import Bench
from lab.bench.rates import arrival, chosen, race_rates
from lab.bench.section import Section, Table
from lab.harness.algorithms import ALGORITHMS, RAW_TWO_WAY, TWO_WAY, Algorithm
from lab.harness.race import Validation
from lab.harness.timing import Spread, ratio, take_turns
from vrgcn.data.synthetic import community_graph

STEPPED = ("MLP", "history", TWO_WAY, RAW_TWO_WAY, "CVD+PP")
RACED = ("history", "two-way", "two-way-cv", "CVD+PP", "exact+PP")
RACED_LAYERS = 3
RACED_RATES = (0.005, 0.01, 0.02)  # the fastest rate differs between algorithms


def run(bench: Bench) -> Section:
    steps = {f"{layers} layers": _steps(bench, layers) for layers in bench.scale.depths}
    rows = [
        [f"{name}, {depth}", Spread(**found["step_ms"]).text(1), Spread(**found["ratio"]).text(2)]
        for depth, all_found in steps.items()
        for name, found in all_found.items()
    ]
    raced = _race(bench)
    title = (
        f"deep: {RACED_LAYERS} layers on {bench.scale.deep_graph.nodes:,} nodes, until "
        f"{bench.scale.deep_target:.0%} validation, {bench.scale.runs} run(s)"
    )
    return Section(
        [
            Table("deep: steps", ("", "ms a step", "ratio to the MLP of that depth"), rows),
            Table(
                title,
                ("", "rate", "epochs", "seconds"),
                [[name, f"{each['rate']:g}", *arrival(each)] for name, each in raced.items()],
            ),
        ],
        {"steps": steps, "race": raced},
    )


def _steps(bench: Bench, layers: int) -> dict[str, Any]:
    architecture = replace(bench.architecture, layers=layers)
    algorithms = {
        name: Algorithm(bench.graph, ALGORITHMS[name], architecture)
        for name in bench.track(STEPPED, f"deep: preparing {layers} layers")
    }
    timers = {
        name: partial(algorithm.milliseconds, bench.scale.steps)
        for name, algorithm in algorithms.items()
    }
    turns = bench.track(range(bench.scale.turns), f"deep: {layers} layers, taking turns")
    times = take_turns(timers, turns)
    return {
        name: {
            "step_ms": Spread.of(values).as_dict(),
            "ratio": ratio(values, times["MLP"]).as_dict(),
            "to_raw": ratio(values, times[RAW_TWO_WAY]).as_dict(),
        }
        for name, values in times.items()
    }


def _race(bench: Bench) -> dict[str, Any]:
    scale = bench.scale
    graph = community_graph(scale.deep_graph)
    architecture = replace(bench.architecture, layers=RACED_LAYERS, dense=1)
    recipes = {name: replace(ALGORITHMS[name], rates=RACED_RATES) for name in RACED}
    targets = (scale.deep_target,)
    rounds = range(scale.epochs * scale.evaluations)
    races = [
        race_rates(
            recipes,
            architecture,
            Validation(graph),
            targets=targets,
            limit=lambda _: scale.epochs,
            inductive=False,
            parts=scale.evaluations,
            seed=seed,
            average_weights=scale.average_weights,
            rounds=bench.track(rounds, f"deep: parts of epochs, run {seed + 1}/{scale.runs}"),
        )
        for seed in range(scale.runs)
    ]
    return {name: chosen(name, races, targets) for name in RACED}
