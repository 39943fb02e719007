"""Section `step`: the time of the parts of one CV and one CVD step, compared with the speed of the
machine.

Arithmetic is what PyTorch's own counter counts in the dense products of a step, forward and
backward, divided by the time of these two; it is compared with the rate of products of the same
shapes and of a large square one. Bytes are those of the gathered rows (read and written) and of the
history average (rows, columns and weights read, averages written), divided by their time; they are
compared with a large copy and a gather of random rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.flop_counter import FlopCounterMode

from lab.bench.bench import Bench
from lab.bench.machine import copy, gather, product
from lab.bench.section import Section, Table
from lab.bench.stages import STAGES, StagedAlgorithm
from lab.harness.algorithms import ALGORITHMS, Algorithm
from lab.harness.timing import Spread, take_turns
from vrgcn.engine.plan import Plan

NAMES = ("CV+PP", "CVD+PP")
SQUARE, LAYERS = "product, square", "product, the step's shapes"
COPY, GATHER = "copy", "gather of random rows"


def run(bench: Bench) -> Section:
    algorithms = {
        name: StagedAlgorithm(Algorithm(bench.graph, ALGORITHMS[name], bench.architecture))
        for name in NAMES
    }
    plans = {name: _plan(staged) for name, staged in algorithms.items()}
    work = {name: _work(staged, plans[name]) for name, staged in algorithms.items()}
    rates = _rates(bench, plans[NAMES[-1]])
    stages: dict[str, list[dict[str, float]]] = {name: [] for name in NAMES}

    def stage_timer(name: str) -> Callable[[], float]:
        def timer() -> float:
            algorithms[name].step()  # brings this algorithm's tables back into the caches
            taken = [algorithms[name].step() for _ in range(bench.scale.steps)]
            mean = {stage: sum(t[stage] for t in taken) / len(taken) for stage in STAGES}
            stages[name].append(mean)
            return sum(mean.values())

        return timer

    timers = {name: stage_timer(name) for name in NAMES}
    timers |= {name: timer for name, (timer, _) in rates.items()}
    times = take_turns(timers, bench.track(range(bench.scale.turns), "step: taking turns"))
    for name in NAMES:
        del stages[name][0]  # the warm-up turn
    machine = {
        name: Spread.of([amount / value / 1e9 for value in times[name]])
        for name, (_, amount) in rates.items()
    }
    results = {name: _result(stages[name], work[name], machine) for name in NAMES}
    return Section(
        [_stage_table(stages, times), _machine_table(machine, results)],
        {"steps": results, "machine": {name: rate.as_dict() for name, rate in machine.items()}},
        [
            "products in GFLOP/s of the dense forward and the backward pass together; bytes in "
            "GB/s of gather and history average together; shares of the square product, of "
            "products in the step's shapes, of the copy and of the random gather"
        ],
    )


def _plan(staged: StagedAlgorithm) -> Plan:
    return staged.algorithm.batch().plan


def _work(staged: StagedAlgorithm, plan: Plan) -> dict[str, int]:
    """Return the floating-point operations and bytes of a step."""
    batches = staged.algorithm.batches
    with FlopCounterMode(display=False) as counter:
        staged.step()
    features = batches.graph.features
    # The rows of X, and those of P X for the level above.
    rows = plan.sizes[0] + (plan.sizes[1] if batches.setup.preprocess else 0)
    gathered = 2 * rows * features.shape[1] * features.element_size()
    averaged = 0
    for number, level in enumerate(plan.levels):
        for hop in level.hops.values():
            assert hop.history is not None
            table = batches.histories.tables[number, "h"].values
            width = table.shape[1] * table.element_size()
            index = hop.history.indices.element_size()
            if hop.history.values is not None:
                index += hop.history.values.element_size()
            averaged += hop.history.num_entries * (width + index) + hop.targets * width
    return {"flops": counter.get_total_flops(), "gathered": gathered, "averaged": averaged}


def _rates(bench: Bench, plan: Plan) -> dict[str, tuple[Callable[[], float], int]]:
    graph, scale = bench.graph, bench.scale
    shapes = [
        (plan.sizes[1], 2 * graph.num_features, scale.hidden),
        (plan.sizes[1], scale.hidden, scale.hidden),
        (plan.sizes[2], 2 * scale.hidden, scale.hidden),
        (plan.sizes[2], scale.hidden, graph.num_classes),
    ]
    products = [product(*shape) for shape in shapes]
    return {
        SQUARE: product(scale.gemm, scale.gemm, scale.gemm),
        LAYERS: (
            lambda: sum(timer() for timer, _ in products),
            sum(amount for _, amount in products),
        ),
        COPY: copy(scale.copy),
        GATHER: gather(graph.features, plan.sizes[0]),
    }


def _result(
    turns: list[dict[str, float]], work: dict[str, int], machine: dict[str, Spread]
) -> dict[str, Any]:
    flops = Spread.of([work["flops"] / (t["dense"] + t["backward"]) / 1e9 for t in turns])
    moved = work["gathered"] + work["averaged"]
    rate = Spread.of([moved / (t["gather"] + t["average"]) / 1e9 for t in turns])
    return {
        "stages_ms": {
            stage: Spread.of([t[stage] for t in turns]).times(1e3).as_dict() for stage in STAGES
        },
        "step_ms": Spread.of([sum(t.values()) for t in turns]).times(1e3).as_dict(),
        **work,
        "gflops": flops.as_dict(),
        "share_of_square_product": flops.median / machine[SQUARE].median,
        "share_of_layer_products": flops.median / machine[LAYERS].median,
        "gigabytes_per_second": rate.as_dict(),
        "share_of_copy": rate.median / machine[COPY].median,
        "share_of_gather": rate.median / machine[GATHER].median,
    }


def _stage_table(stages: dict[str, list[dict[str, float]]], times: dict[str, list[float]]) -> Table:
    rows = []
    for stage in STAGES:
        row = [stage]
        for name in NAMES:
            taken = Spread.of([turn[stage] for turn in stages[name]])
            share = taken.median / Spread.of(times[name]).median
            row += [taken.times(1e3).text(2), f"{share:.0%}"]
        rows.append(row)
    total = ["step"]
    for name in NAMES:
        total += [Spread.of(times[name]).times(1e3).text(2), ""]
    headings = ["", *(part for name in NAMES for part in (f"{name}, ms", "share"))]
    return Table("step: where the time goes", headings, [*rows, total])


def _machine_table(machine: dict[str, Spread], results: dict[str, dict[str, Any]]) -> Table:
    rows = [[name, rate.text(1), "", ""] for name, rate in machine.items()]
    for name, result in results.items():
        for what, rate, shares in (
            ("products", "gflops", ("share_of_square_product", "share_of_layer_products")),
            ("bytes", "gigabytes_per_second", ("share_of_copy", "share_of_gather")),
        ):
            reached = Spread(**result[rate])
            rows.append([f"{name}, {what}", reached.text(1), *(f"{result[s]:.0%}" for s in shares)])
    headings = ("", "GFLOP/s or GB/s", "of square or copy", "of shapes or gather")
    return Table("step: against the machine", headings, rows)
