"""`vrgcn demo`: the same model trained by several estimators, as a table and as curves."""

from __future__ import annotations

import time

from vrgcn.cli.options import DemoOptions
from vrgcn.data import load_dataset
from vrgcn.experiments.demo import RUNS, results_table, train_runs
from vrgcn.graph.graph import Graph
from vrgcn.pages.figures import check_figure, draw_validation
from vrgcn.pages.terminal import print_table
from vrgcn.training.progress import progress_bar
from vrgcn.training.result import TrainResult


def run_demo(options: DemoOptions) -> None:
    """Train, print the table, draw the curves, say where."""
    check_figure(options.out)
    start = time.perf_counter()
    graph = load_dataset(options.dataset, seed=options.seed)
    print(graph)
    results = _train(options, graph)
    print_table(results_table(results))
    draw_validation(
        {label: result.curve for label, result in results.items()},
        options.out,
        f"{options.dataset}: GraphSAGE, one sampled neighbour per node (NS, CV, CVD)",
        "accuracy",
    )
    print(f"curves: {options.out}")
    print(f"{time.perf_counter() - start:.0f} seconds in all")


def _train(options: DemoOptions, graph: Graph) -> dict[str, TrainResult]:
    with progress_bar() as progress:
        task = progress.add_task("", total=len(RUNS) * options.epochs)
        return train_runs(
            graph,
            epochs=options.epochs,
            seed=options.seed,
            threads=options.threads,
            on_run=lambda label: progress.update(task, description=f"{label:<5}"),
            on_epoch=lambda _: progress.advance(task),
        )
