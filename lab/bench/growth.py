"""Section `growth`: how the cost of a CVD+PP epoch grows, one thing at a time.

On generated graphs whose nodes are all trained on. Each series prints the exponent b of
cost = a * size**b, the slope of a least-squares line through the logarithms: 1 is linear, 0 is
independent. Beside the degrees stands the number of nodes within two hops, which the cost must not
follow: it may grow with the degree alone, through the history average.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from lab.bench.bench import Bench
from lab.bench.memory import training_memory
from lab.bench.section import Section, Table
from lab.harness.algorithms import Algorithm, Architecture, Recipe
from lab.harness.timing import Spread, exponent, take_turns
from vrgcn.data.statistics import two_hop
from vrgcn.data.synthetic import COMMUNITIES, community_graph
from vrgcn.graph.graph import Graph

_TWO_HOP_STEPS = 5_000_000  # paths to follow; an estimate is enough here


@dataclass(frozen=True)
class Point:
    """One size of one series."""

    nodes: int
    degree: int
    hidden: int
    batch: int
    layers: int = 2
    fanout: int = 1

    @property
    def recipe(self) -> Recipe:
        return Recipe("cvd", fanout=(self.fanout,))

    @property
    def architecture(self) -> Architecture:
        return Architecture(hidden=self.hidden, layers=self.layers, batch=self.batch)


class Graphs:
    """Generated graphs, each created once and kept on disk for measuring memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[tuple[int, int], _Made] = {}

    def __call__(self, point: Point) -> _Made:
        key = (point.nodes, point.degree)
        if key not in self._made:
            self._made[key] = _Made(*key, self.folder / f"growth-{key[0]}-{key[1]}")
        return self._made[key]


@dataclass
class _Made:
    nodes: int
    degree: int
    path: Path

    @cached_property
    def graph(self) -> Graph:
        spec = replace(
            COMMUNITIES,
            nodes=self.nodes,
            pairs=self.nodes * self.degree // 2,
            train=self.nodes,
            val=0,
            test=0,
        )
        return community_graph(spec)

    @cached_property
    def two_hop(self) -> float:
        generator = torch.Generator().manual_seed(0)
        return two_hop(self.graph.adjacency, generator, _TWO_HOP_STEPS).value


def run(bench: Bench) -> Section:
    sizes = bench.scale.growth
    base = Point(sizes.base_nodes, sizes.base_degree, bench.scale.hidden, bench.scale.batch)
    dense = replace(base, nodes=sizes.degree_nodes)
    series = {
        "nodes": [replace(base, nodes=value) for value in sizes.nodes],
        "degree": [replace(dense, degree=value) for value in sizes.degree],
        "hidden": [replace(base, hidden=value) for value in sizes.hidden],
        "layers": [replace(base, layers=value) for value in sizes.layers],
        "batch": [replace(base, batch=value) for value in sizes.batch],
        "fanout": [replace(base, fanout=value) for value in sizes.fanout],
    }
    results, tables = {}, []
    for name, points in series.items():
        graphs = Graphs(bench.folder)  # of one series at a time in memory
        results[name] = _measure(bench, name, points, graphs)
        tables.append(_table(name, results[name]))
    notes = [
        "CVD+PP; exponents are slopes between logarithms: 1 is linear, 0 is independent",
        "memory: peak of a process of its own less its imports",
    ]
    return Section(tables, results, notes)


def _measure(bench: Bench, name: str, points: list[Point], graphs: Graphs) -> dict[str, Any]:
    algorithms = {
        str(getattr(point, name)): Algorithm(
            graphs(point).graph, point.recipe, point.architecture, inductive=False
        )
        for point in bench.track(points, f"growth: {name}, preparing")
    }
    timers = {
        key: partial(algorithm.milliseconds, bench.scale.steps)
        for key, algorithm in algorithms.items()
    }
    turns = bench.track(range(bench.scale.turns), f"growth: {name}, taking turns")
    times = take_turns(timers, turns)
    measured = []
    for point in bench.track(points, f"growth: {name}, memory"):
        key = str(getattr(point, name))
        epoch = Spread.of(times[key]).times(algorithms[key].steps_per_epoch / 1e3)
        entry: dict[str, Any] = {
            name: getattr(point, name),
            "step_ms": Spread.of(times[key]).as_dict(),
            "epoch_seconds": epoch.as_dict(),
            "memory": _memory(bench, point, graphs),
        }
        if name == "degree":
            entry["two_hop"] = graphs(point).two_hop
        measured.append(entry)
    sizes = [getattr(point, name) for point in points]
    seconds = [entry["epoch_seconds"]["median"] for entry in measured]
    found: dict[str, Any] = {"points": measured, "exponent": exponent(sizes, seconds)}
    found["memory_exponent"] = exponent(sizes, [entry["memory"] for entry in measured])
    if name == "degree":
        found["two_hop_exponent"] = exponent(sizes, [entry["two_hop"] for entry in measured])
    return found


def _memory(bench: Bench, point: Point, graphs: Graphs) -> int:
    made = graphs(point)
    if not made.path.exists():
        bench.save(made.graph, made.path.name)
    memory = training_memory(
        made.path,
        point.recipe,
        point.architecture,
        steps=bench.scale.steps,
        threads=bench.threads,
        inductive=False,
    )
    return memory.peak


def _table(name: str, found: dict[str, Any]) -> Table:
    headings = [name, "ms a step", "s an epoch", "peak MB"]
    exponents = ["exponent", "", f"{found['exponent']:.2f}", f"{found['memory_exponent']:.2f}"]
    rows = []
    for entry in found["points"]:
        step, epoch = Spread(**entry["step_ms"]), Spread(**entry["epoch_seconds"])
        cells = [f"{entry[name]:,}", step.text(1), epoch.text(2), f"{entry['memory'] / 1e6:,.0f}"]
        rows.append([*cells, *([f"{entry['two_hop']:,.0f}"] if "two_hop" in entry else [])])
    if name == "degree":
        headings.append("nodes within 2 hops")
        exponents.append(f"{found['two_hop_exponent']:.2f}")
    return Table(f"growth: {name}", headings, [*rows, exponents])
