"""Section `epoch`: training time of each algorithm as a ratio to the MLP of the same widths."""

from __future__ import annotations

from functools import partial

from lab.bench.bench import COMPARED, Bench
from lab.bench.section import Section, Table
from lab.harness.algorithms import Algorithm
from lab.harness.timing import Spread, ratio, take_turns


def run(bench: Bench) -> Section:
    algorithms = {
        name: Algorithm(bench.graph, COMPARED[name], bench.architecture)
        for name in bench.track(list(COMPARED), "epoch: preparing")
    }
    timers = {
        name: partial(algorithm.milliseconds, bench.steps(COMPARED[name].slow))
        for name, algorithm in algorithms.items()
    }
    times = take_turns(timers, bench.track(range(bench.scale.turns), "epoch: taking turns"))
    steps = algorithms["MLP"].steps_per_epoch
    results, rows = {}, []
    for name, values in times.items():
        step, against = Spread.of(values), ratio(values, times["MLP"])
        epoch = step.times(steps / 1e3)
        rows.append([name, step.text(1), f"{epoch.median:.1f}", against.text(2)])
        results[name] = {
            "step_ms": step.as_dict(),
            "epoch_seconds": epoch.as_dict(),
            "ratio_to_mlp": against.as_dict(),
        }
    table = Table(
        f"epoch: {steps} steps of {bench.scale.batch} nodes, {bench.scale.turns} turns",
        ("", "ms a step", "s an epoch", "ratio to MLP"),
        rows,
    )
    notes = [
        "medians with quartiles; ratios are formed turn by turn; "
        f"histories in {bench.scale.history_dtype}"
    ]
    return Section([table], {"steps_per_epoch": steps, "algorithms": results}, notes)
