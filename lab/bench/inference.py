"""Section `inference`: exact outputs of all nodes, compared with PyG's forward pass of the whole
graph and with reading the necessary bytes once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from lab.bench.bench import Bench
from lab.bench.memory import size_of
from lab.bench.pyg import SAGE, adjacency
from lab.bench.section import Section, Table
from lab.harness.timing import Spread, ratio, seconds, take_turns
from vrgcn.engine.setup import Setup, set_up
from vrgcn.graph.propagation import build_propagation
from vrgcn.inference.sweeps import ExactSweeps

OURS = "exact sweeps"
KNOWN = "exact sweeps, P X at hand"
PEER = "PyG, whole graph"
READING = "reading the bytes once"


def run(bench: Bench) -> Section:
    graph, architecture = bench.graph, bench.architecture
    model = architecture.model(graph)
    P = build_propagation("mean", graph)
    known = set_up(model, graph, propagation=P, preprocess=True)
    peer, edges = SAGE(graph, architecture).eval(), adjacency(graph)
    table = torch.randn(graph.num_nodes, architecture.hidden)
    parts = [graph.features, P.adjacency.indices, table]

    def forward(setup: Setup | None) -> None:
        ExactSweeps(model, setup or set_up(model, graph, propagation=P)).outputs()

    work: dict[str, Callable[[], object]] = {
        OURS: partial(forward, None),
        KNOWN: partial(forward, known),
        PEER: partial(_peer, peer, graph.features, edges),
        READING: partial(_read, parts),
    }
    timers = {name: partial(seconds, call) for name, call in work.items()}
    turns = bench.scale.heavy_turns
    times = take_turns(timers, bench.track(range(turns), "inference: taking turns"))
    results, rows = {}, []
    for name, values in times.items():
        taken, against = Spread.of(values), ratio(values, times[OURS])
        rows.append([name, taken.text(2), against.text(2)])
        results[name] = {"seconds": taken.as_dict(), "ratio_to_sweeps": against.as_dict()}
    size = size_of(*parts)
    title = f"inference: all {graph.num_nodes:,} nodes, {turns} turns"
    notes = [f"the bytes: features, P and one hidden table, {size / 1e6:,.0f} MB"]
    results_with_size = {"bytes": size, "ways": results}
    return Section(
        [Table(title, ("", "seconds", f"ratio to {OURS}"), rows)], results_with_size, notes
    )


@torch.no_grad()
def _peer(peer: SAGE, features: Tensor, edges: object) -> None:
    peer(features, edges)


def _read(parts: list[Tensor]) -> None:
    for part in parts:
        part.sum()
