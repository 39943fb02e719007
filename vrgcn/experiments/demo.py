"""The demo: the same model trained by several estimators, as a table and as curves."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from vrgcn.cli.options import DemoOptions, ModelOptions
from vrgcn.cli.train import build_model
from vrgcn.data import load_dataset
from vrgcn.graph.graph import Graph
from vrgcn.pages.figures import check_figure, draw_validation
from vrgcn.pages.progress import progress_bar
from vrgcn.pages.terminal import text_table
from vrgcn.training.config import TrainConfig
from vrgcn.training.fit import Epoch, TrainResult, fit

# label in the table: estimator, and the model if it is not the demo's GraphSAGE
RUNS = {
    "MLP": ("exact", "mlp"),
    "exact": ("exact", "graphsage"),
    "NS": ("ns", "graphsage"),
    "CV": ("cv", "graphsage"),
    "CVD": ("cvd", "graphsage"),
}
NEAR = 0.995  # "reached" means this share of the exact run's best validation score


@dataclass(frozen=True)
class Row:
    """A line of the table: when a run first reached the target, if it did."""

    label: str
    result: TrainResult
    reached: Epoch | None


def run_demo(options: DemoOptions) -> None:
    """Train, print the table, draw the curves, say where."""
    check_figure(options.out)
    start = time.perf_counter()
    graph = load_dataset(options.dataset, seed=options.seed)
    print(graph)
    results = _train(options, graph)
    target = NEAR * max(point.val or 0.0 for point in results["exact"].curve)
    rows = [Row(label, result, _first(result, target)) for label, result in results.items()]
    Console().print(_table(rows, target))
    draw_validation(
        {label: result.curve for label, result in results.items()},
        options.out,
        f"{options.dataset}: GraphSAGE, one sampled neighbour per node (NS, CV, CVD)",
        "accuracy",
    )
    print(f"curves: {options.out}")
    print(f"{time.perf_counter() - start:.0f} seconds in all")


def _train(options: DemoOptions, graph: Graph) -> dict[str, TrainResult]:
    results = {}
    with progress_bar() as progress:
        task = progress.add_task("", total=len(RUNS) * options.epochs)
        for label, (estimator, model) in RUNS.items():
            progress.update(task, description=f"{label:<5}")
            config = TrainConfig(
                estimator=estimator,  # type: ignore[arg-type]
                epochs=options.epochs,
                seed=options.seed,
                threads=options.threads,
            )
            net = build_model(ModelOptions(model=model), graph, options.seed)  # type: ignore[arg-type]
            results[label] = fit(net, graph, config, on_epoch=lambda _: progress.advance(task))
    return results


def _first(result: TrainResult, target: float) -> Epoch | None:
    return next((point for point in result.curve if (point.val or 0.0) >= target), None)


def _table(rows: list[Row], target: float) -> Table:
    headings = (
        "",
        "test\naccuracy",
        "epochs\nto target",
        "seconds\nto target",
        "seconds\nper epoch",
        "neighbours\ncomputed",
        "from\nhistory",
    )
    title = f"target: validation accuracy {target:.4f} ({NEAR:.1%} of the exact run's best)"
    table = text_table(title, headings, ())
    for row in rows:
        last = row.result.curve[-1]
        table.add_row(
            row.label,
            f"{row.result.test:.4f}",
            "never" if row.reached is None else str(row.reached.epoch),
            "never" if row.reached is None else f"{row.reached.seconds:.2f}",
            f"{last.seconds / last.epoch:.2f}",
            f"{last.sampled:.1f}",
            f"{last.history_reads:.1f}",
        )
    return table
