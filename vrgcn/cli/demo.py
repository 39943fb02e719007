"""`vrgcn demo`: from two tables of a real graph to predictions; then six algorithms compared."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from vrgcn.cli.command import Options
from vrgcn.cli.shared_flags import Threads
from vrgcn.data import find_dataset, load_dataset
from vrgcn.files.settings import at_least
from vrgcn.files.wording import printable
from vrgcn.files.writing import check_writable
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
CURVES = "curves.png"
RATIO = (0.6, 0.2, 0.2)
UNKNOWN = ("backend", "edge_index", "warnings")  # some of the modules without a part
NEXT = """What to try next:
  vrgcn report {folder}/run                          # curves and scores of the run, on a page
  vrgcn explain {folder}/run --nodes edge_index      # what the prediction depends on
  vrgcn import --nodes YOURS.csv --edges YOURS.csv --label COLUMN --out graphs/mine
docs/start.md goes through your own tables, step by step."""
NEAR = 0.995  # "reached" means this share of the exact run's best validation score


@dataclass(frozen=True)
class DemoOptions(Options):
    """Flags of `vrgcn demo`."""

    dataset: str = "communities"
    """The built-in graph that the algorithms are compared on."""
    epochs: int = 24
    """Epochs of each algorithm."""
    out: Path = Path("runs/demo")
    """Folder for the tables, the graph, the run, the predictions and the curves. What an earlier
    demo left there is replaced."""
    seed: int = 0
    """Seed of the graph, the models and the training."""
    threads: Threads = None

    def __post_init__(self) -> None:
        at_least(1, epochs=self.epochs, threads=self.threads)
        at_least(0, seed=self.seed)

    def checked(self) -> Self:
        """Raise if there is no such data set, or the folder could not be written into."""
        find_dataset(self.dataset)
        check_writable(self.out)
        return self


def run(options: DemoOptions) -> None:
    """Go from two tables to predictions, compare the algorithms, and say what to try next."""
    from vrgcn.pages.figures import check_figure

    check_figure(options.out / CURVES)
    start = time.perf_counter()
    predict_parts(options)
    print()
    compare(options)
    print(f"{time.perf_counter() - start:.0f} seconds in all")
    print()
    print(NEXT.format(folder=printable(options.out)))


def predict_parts(options: DemoOptions) -> None:
    """Import the two tables, train and predict; print each command and what came of it."""
    from vrgcn.data.example import write_example
    from vrgcn.data.tables import ImportSpec, import_tables
    from vrgcn.runs.predict import predict
    from vrgcn.runs.train import train
    from vrgcn.training.progress import progress_bar

    print("1. Two tables of a real graph: the modules of PyTorch Geometric, and who imports whom.")
    print("   Which part of the library does a module belong to? Of 23 modules it is not known.\n")
    graph, own, table = (options.out / name for name in ("graph", "run", "predictions.csv"))
    shutil.rmtree(graph, ignore_errors=True)
    table.unlink(missing_ok=True)
    modules, imports = write_example(options.out)

    shares = " ".join(map(str, RATIO))
    print(f"$ vrgcn import --nodes {printable(modules)} --edges {printable(imports)} \\")
    print(f"      --label part --ratio {shares} --out {printable(graph)}")
    spec = ImportSpec(nodes=modules, edges=imports, label=("part",), ratio=RATIO, out=graph)
    summary = import_tables(spec)
    print(f"{summary.nodes:,} nodes, {summary.edges:,} edges, {summary.width:,} features\n")

    print(f"$ vrgcn train {printable(graph)} --out {printable(own)}")
    with progress_bar() as progress:
        task = progress.add_task("training", total=None)
        trained = train(
            graph,
            out=own,
            overwrite=True,
            seed=options.seed,
            threads=options.threads,
            on_epoch=lambda _: progress.advance(task),
        )
    result = trained.result
    assert result is not None
    print(f"test accuracy {result['test']:.3f}, after {result['seconds']:.1f} s of training\n")

    print(f"$ vrgcn predict {printable(own)} --out {printable(table)}")
    predict(trained, out=str(table))
    best = trained.predictions().to_arrow(top=1)
    rows = dict(zip(best["id"].to_pylist(), best.to_pylist(), strict=True))
    for name in UNKNOWN:
        print(f"{name:<12} {rows[name]['label_1']:<8} {rows[name]['p_1']:.0%} sure")


def compare(options: DemoOptions) -> None:
    """Train the six algorithms, print the table, draw the curves."""
    from vrgcn.pages.figures import draw_validation
    from vrgcn.pages.terminal import print_table

    print("2. Six algorithms that train the same network on a graph of high degree.")
    graph = load_dataset(options.dataset, seed=options.seed)
    print(graph)
    results = train_runs(options, graph)
    print_table(results_table(results))
    path = options.out / CURVES
    draw_validation(
        {label: result.curve for label, result in results.items()},
        path,
        f"{options.dataset}: GraphSAGE, one sampled neighbour per node (NS, CV, CVD)",
        "accuracy",
    )
    print(f"curves: {printable(path)}")


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
