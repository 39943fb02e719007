"""The demo: the same model trained by several estimators, as a table and as curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.table import Table

from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import build_model
from vrgcn.pages.terminal import text_table
from vrgcn.training.config import TrainConfig
from vrgcn.training.fit import fit
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch

# label in the table: estimator and model
RUNS = {
    "MLP": ("exact", "mlp"),
    "exact": ("exact", "graphsage"),
    "NS": ("ns", "graphsage"),
    "CV": ("cv", "graphsage"),
    "CVD": ("cvd", "graphsage"),
    "two-way": ("two-way", "graphsage"),
}
NEAR = 0.995  # "reached" means this share of the exact run's best validation score


@dataclass(frozen=True)
class Row:
    """A line of the table: when a run first reached the target, if it did."""

    label: str
    result: TrainResult
    reached: Epoch | None


def train_runs(
    graph: Graph,
    *,
    epochs: int,
    seed: int,
    threads: int | None = None,
    on_run: Callable[[str], None] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> dict[str, TrainResult]:
    """The result of each of `RUNS`, all from the same seed.

    on_run: called with a run's label before it starts; on_epoch: after each epoch of each run
    """
    results = {}
    for label, (estimator, model) in RUNS.items():
        if on_run is not None:
            on_run(label)
        config = TrainConfig(
            estimator=estimator,
            epochs=epochs,
            seed=seed,
            threads=threads,
        )
        net = build_model(
            ModelConfig(model=model),  # type: ignore[arg-type]
            graph.num_features,
            graph.num_classes,
            seed,
        )
        results[label] = fit(net, graph, config, on_epoch=on_epoch)
    return results


def results_table(results: dict[str, TrainResult]) -> Table:
    """A line for each run: its score, and what it took to come near the exact run's best."""
    target = NEAR * max(point.val or 0.0 for point in results["exact"].curve)
    rows = [Row(label, result, _first(result, target)) for label, result in results.items()]
    return _table(rows, target)


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
