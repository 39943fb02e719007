"""Training time of each estimator as a ratio to the MLP of the same widths, in one run.

    .venv/bin/python benchmarks/epoch_time.py [--dataset reddit-like]

The paper's Reddit architecture: GraphSAGE, 128 hidden, two dense layers per graph layer, LayerNorm,
dropout .2, batches of 512, inductive, P X computed once. The MLP has the same widths, batches and
dropout: it is the same model under P = I, which reads each node's features twice and no neighbour.
The algorithms take turns, a few steps each, so that a noisy machine disturbs all of them alike;
the figures are medians over the turns, with the quartiles.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median, quantiles

import torch
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from vrgcn import Graph, GraphSAGE, MiniBatches, load_dataset
from vrgcn.metrics import loss_per_node
from vrgcn.minibatches import Batch

# label: estimator, propagation
ALGORITHMS = {
    "MLP": ("exact", "identity"),
    "history": ("history", "mean"),
    "NS+PP": ("ns", "mean"),
    "CV+PP": ("cv", "mean"),
    "CVD+PP": ("cvd", "mean"),
    "exact+PP": ("exact", "mean"),
}


@dataclass
class Options:
    """Training time of each estimator as a ratio to the MLP of the same widths."""

    dataset: str = "reddit-like"
    """A built-in graph."""
    turns: int = 15
    """How often the algorithms take turns."""
    steps: int = 8
    """Steps of an algorithm in a turn."""
    exact: bool = True
    """Include exact training, which takes most of the time."""
    history_dtype: str = "float32"
    """Precision of the histories."""
    threads: int = 2
    """CPU threads."""


class Algorithm:
    """A model in training by one estimator, a few steps at a time."""

    def __init__(self, graph: Graph, estimator: str, propagation: str, options: Options) -> None:
        torch.manual_seed(0)
        self.model = GraphSAGE(
            graph.num_features, 128, graph.num_classes, dense=2, dropout=0.2, layer_norm=True
        )
        self.batches = MiniBatches(
            self.model,
            graph,
            estimator=estimator,
            propagation=propagation,
            inductive=True,
            history_dtype=options.history_dtype,
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01, fused=True)
        self.stream = self._stream()

    def milliseconds(self, steps: int) -> float:
        """Mean time of a step, from drawing its plan to writing its histories."""
        start = time.perf_counter()
        for _ in range(steps):
            batch = next(self.stream)
            assert batch.labels is not None
            loss = loss_per_node(batch.run(self.model), batch.labels).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            batch.commit()
        return (time.perf_counter() - start) / steps * 1e3

    def _stream(self) -> Iterator[Batch]:
        while True:
            yield from self.batches


def main(options: Options) -> None:
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    graph = load_dataset(options.dataset)
    print(graph)
    chosen = {k: v for k, v in ALGORITHMS.items() if options.exact or k != "exact+PP"}
    algorithms = {name: Algorithm(graph, *how, options) for name, how in chosen.items()}
    times: dict[str, list[float]] = {name: [] for name in algorithms}
    for turn in track(range(options.turns + 1), "taking turns", transient=True):
        for name, algorithm in algorithms.items():
            taken = algorithm.milliseconds(1 if name == "exact+PP" else options.steps)
            if turn:  # the first turn warms up
                times[name].append(taken)
    Console().print(_table(times, len(algorithms["MLP"].batches)))


def _table(times: dict[str, list[float]], steps_per_epoch: int) -> Table:
    table = Table(title=f"{steps_per_epoch} steps an epoch", title_justify="left")
    table.add_column("")
    for heading in ("ms a step", "quartiles", "s an epoch", "ratio to MLP"):
        table.add_column(heading, justify="right")
    for name, values in times.items():
        low, middle, high = quantiles(values, n=4)
        # Turn by turn, so that what slowed both does not count.
        ratio = median(a / b for a, b in zip(values, times["MLP"], strict=True))
        table.add_row(
            name,
            f"{middle:.1f}",
            f"{low:.1f}–{high:.1f}",
            f"{middle * steps_per_epoch / 1e3:.1f}",
            f"{ratio:.2f}",
        )
    return table


if __name__ == "__main__":
    main(tyro.cli(Options))
