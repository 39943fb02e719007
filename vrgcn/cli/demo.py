"""`vrgcn demo`: trains the same model with several estimators; prints a table and draws curves."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from vrgcn.cli.command import Options
from vrgcn.cli.shared_flags import Threads
from vrgcn.data import load_dataset
from vrgcn.files.settings import at_least
from vrgcn.files.wording import printable
from vrgcn.files.writing import FIGURES, check_suffix, check_writable
from vrgcn.training.config import TrainConfig

if TYPE_CHECKING:
    from rich.table import Table

    from vrgcn.graph.graph import Graph
    from vrgcn.training.result import TrainResult
    from vrgcn.training.state import Epoch

# The estimator and the model of each row of the table.
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
class DemoOptions(Options):
    """Flags of `vrgcn demo`."""

    dataset: str = "communities"
    """The built-in graph."""
    epochs: int = 24
    """Epochs of each run."""
    out: Path = Path("runs/demo.png")
    """File for the curves (.png or .svg)."""
    seed: int = 0
    """Seed of the graph, the models and the training."""
    threads: Threads = None

    def __post_init__(self) -> None:
        at_least(1, epochs=self.epochs, threads=self.threads)
        at_least(0, seed=self.seed)

    def checked(self) -> Self:
        """Raise if the picture could not be written."""
        check_suffix(self.out, FIGURES)
        check_writable(self.out.parent)
        return self


def run(options: DemoOptions) -> None:
    """Train, print the table, draw the curves, and print the path of the picture."""
    from vrgcn.pages.figures import check_figure, draw_validation
    from vrgcn.pages.terminal import print_table

    check_figure(options.out)
    start = time.perf_counter()
    graph = load_dataset(options.dataset, seed=options.seed)
    print(graph)
    results = train_runs(options, graph)
    print_table(results_table(results))
    draw_validation(
        {label: result.curve for label, result in results.items()},
        options.out,
        f"{options.dataset}: GraphSAGE, one sampled neighbour per node (NS, CV, CVD)",
        "accuracy",
    )
    print(f"curves: {printable(options.out)}")
    print(f"{time.perf_counter() - start:.0f} seconds in all")


def train_runs(options: DemoOptions, graph: Graph) -> dict[str, TrainResult]:
    """Return the result of each of `RUNS`, all trained from the same seed, with one progress bar
    over all epochs."""
    from vrgcn.models.config import ModelConfig
    from vrgcn.models.models import build_model
    from vrgcn.runs.fit import fit
    from vrgcn.training.progress import progress_bar

    results = {}
    with progress_bar() as progress:
        task = progress.add_task("", total=len(RUNS) * options.epochs)
        for label, (estimator, model) in RUNS.items():
            progress.update(task, description=f"{label:<5}")
            config = TrainConfig(
                estimator=estimator,
                epochs=options.epochs,
                seed=options.seed,
                threads=options.threads,
            )
            net = build_model(
                ModelConfig(model=model),  # type: ignore[arg-type]
                graph.num_features,
                graph.num_classes,
                options.seed,
            )
            results[label] = fit(net, graph, config, on_epoch=lambda _: progress.advance(task))
    return results


def results_table(results: dict[str, TrainResult]) -> Table:
    """A row for each run: its score, and the time it took to come near the exact run's best."""
    from vrgcn.pages.terminal import text_table

    target = NEAR * max(point.val or 0.0 for point in results["exact"].curve)
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
    rows = [_row(label, result, target) for label, result in results.items()]
    return text_table(title, headings, rows)


def _row(label: str, result: TrainResult, target: float) -> list[str]:
    reached = _first(result, target)
    last = result.curve[-1]
    return [
        label,
        f"{result.test:.4f}",
        "never" if reached is None else str(reached.epoch),
        "never" if reached is None else f"{reached.seconds:.2f}",
        f"{last.seconds / last.epoch:.2f}",
        f"{last.sampled:.1f}",
        f"{last.history_reads:.1f}",
    ]


def _first(result: TrainResult, target: float) -> Epoch | None:
    """Return the first epoch whose validation score reaches the target."""
    return next((point for point in result.curve if (point.val or 0.0) >= target), None)
