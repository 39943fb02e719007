"""Section `histories`: histories kept in 16 bits, their speed and what they do to accuracy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from statistics import mean, stdev
from typing import Any

import torch
from scipy import stats

from lab.bench.bench import Bench
from lab.bench.section import Section, Table
from lab.harness.timing import Spread, ratio, seconds, take_turns
from vrgcn.data.synthetic import community_graph
from vrgcn.engine.history import Histories
from vrgcn.graph.propagation import build_propagation
from vrgcn.graph.sparse import CSR
from vrgcn.runs.fit import fit
from vrgcn.training.config import TrainConfig

DTYPES = ("float32", "float16", "bfloat16")
_BATCHES = 8  # in turn, so that no batch finds its own rows in the cache


def run(bench: Bench) -> Section:
    speed, speed_table = _speed(bench)
    accuracy, accuracy_table = _accuracy(bench)
    return Section([speed_table, accuracy_table], {"average": speed, "accuracy": accuracy})


def _speed(bench: Bench) -> tuple[dict[str, Any], Table]:
    """Measure P h̄ for the nodes of a minibatch, from tables of each precision."""
    graph, scale = bench.graph, bench.scale
    P = build_propagation("mean", graph.among(graph.train))
    generator = torch.Generator().manual_seed(0)
    order = graph.train[torch.randperm(len(graph.train), generator=generator)]
    batches = [P.rows(nodes) for nodes in order.split(scale.batch)[:_BATCHES]]
    timers = {name: _timer(bench, name, batches) for name in DTYPES}
    times = take_turns(timers, bench.track(range(scale.turns), "histories: taking turns"))
    entries = round(mean(rows.num_entries for rows in batches))
    results: dict[str, Any] = {"entries": entries, "dtypes": {}}
    rows = []
    for name, values in times.items():
        taken, faster = Spread.of(values), ratio(times["float32"], values)
        rows.append([name, taken.text(2), faster.text(2)])
        results["dtypes"][name] = {"ms": taken.as_dict(), "times_as_fast": faster.as_dict()}
    title = f"histories: average of {scale.batch} nodes, {entries:,} rows of {scale.hidden}"
    return results, Table(title, ("", "ms", "times as fast as float32"), rows)


def _timer(bench: Bench, dtype: str, batches: list[CSR]) -> Callable[[], float]:
    """Return a timer of the mean milliseconds of an average over the batches of a turn."""
    scale = bench.scale
    table = Histories(bench.graph.num_nodes, dtype).table(1, scale.hidden)
    table.values.normal_(generator=torch.Generator().manual_seed(1))
    endless = cycle(batches)

    def timer() -> float:
        turn = [next(endless) for _ in range(scale.steps)]
        taken = seconds(lambda: [table.average(rows, torch.float32) for rows in turn])
        return taken / len(turn) * 1e3

    return timer


def _accuracy(bench: Bench) -> tuple[dict[str, Any], Table]:
    """Test accuracy of CVD over seeds, and Welch's t-test against float32."""
    scale = bench.scale
    graph = community_graph(scale.seed_graph)
    scores: dict[str, list[float]] = {name: [] for name in DTYPES}
    for seed in bench.track(range(scale.seeds), "histories: seeds"):
        for name in DTYPES:
            config = TrainConfig(
                history_dtype=name,  # type: ignore[arg-type]
                epochs=scale.seed_epochs,
                evaluate_every=scale.seed_epochs,
                batch_size=scale.batch,
                seed=seed,
            )
            test = fit(bench.architecture.model(graph, seed), graph, config).test
            assert test is not None
            scores[name].append(test)
    results, rows = {}, []
    for name, values in scores.items():
        entry: dict[str, Any] = {"mean": mean(values), "deviation": stdev(values), "test": values}
        cells = [name, f"{mean(values):.4f} ± {stdev(values):.4f}", "", ""]
        if name != "float32":
            t, p = _welch(values, scores["float32"])
            entry |= {"t": t, "p": p}
            cells[2:] = [f"{t:+.2f}", f"{p:.3f}"]
        results[name] = entry
        rows.append(cells)
    title = (
        f"histories: test accuracy of CVD, {graph.num_nodes:,} nodes, {scale.seeds} seeds, "
        f"{scale.seed_epochs} epochs"
    )
    return results, Table(title, ("", "mean ± deviation", "t against float32", "p"), rows)


def _welch(values: list[float], reference: list[float]) -> tuple[float, float]:
    """Return t and its two-sided p."""
    if stdev(values) == stdev(reference) == 0 and mean(values) == mean(reference):
        return 0.0, 1.0  # nothing varies and nothing differs, which scipy leaves undefined
    found = stats.ttest_ind(values, reference, equal_var=False)
    return float(found.statistic), float(found.pvalue)
