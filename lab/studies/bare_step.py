"""Cost of a CVD step beyond its dense layers: the same step with plans made beforehand and
histories that are neither averaged, read nor written.

    python -m lab.studies.bare_step

Prints milliseconds a step, ratios to the MLP, and how many times sooner than exact training it
would get to 96% validation accuracy on `reddit-like`, at the epochs that `vrgcn bench` found.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice

import torch
from torch import Tensor

from lab.harness.algorithms import ALGORITHMS, Algorithm, Architecture
from lab.harness.graphs import scaled_graph
from lab.harness.timing import Spread, ratio, take_turns
from vrgcn.engine.batch import Batch
from vrgcn.engine.devices import use_threads
from vrgcn.engine.history import History
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.sparse import CSR

TURNS, STEPS, PLANS = 40, 8, 60
EPOCHS = {"CVD+PP": 2.5, "exact+PP": 1.25}


class NoHistory(History):
    """A table that costs nothing and holds nothing."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__(torch.zeros(rows, width), torch.zeros(rows, dtype=torch.int64))

    def average(self, rows: CSR, dtype: torch.dtype, weights: Tensor | None = None) -> Tensor:
        return self.values[: rows.num_rows]

    def read(self, nodes: Tensor, dtype: torch.dtype) -> Tensor:
        return self.values[: len(nodes)]

    def write(self, nodes: Tensor, h: Tensor, step: int) -> None:
        pass


def bare(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm without plans to draw and histories to keep."""
    batches = algorithm.batches
    batches.histories.tables[1, "h"] = NoHistory(batches.batch_size, Architecture().hidden)
    algorithm._stream = again(batches)
    return algorithm


def again(batches: MiniBatches) -> Iterator[Batch]:
    plans = [batch.plan for batch in islice(batches, PLANS)]
    for plan in cycle(plans):
        yield Batch(batches, plan)


def main() -> None:
    use_threads(2)
    graph = scaled_graph("reddit-like")
    algorithms = {
        name: Algorithm(graph, ALGORITHMS[name], Architecture())
        for name in ("MLP", "CVD+PP", "exact+PP")
    }
    algorithms["CVD+PP, bare"] = bare(Algorithm(graph, ALGORITHMS["CVD+PP"], Architecture()))
    timers = {
        name: lambda a=algorithm, n=2 if name == "exact+PP" else STEPS: a.milliseconds(n)
        for name, algorithm in algorithms.items()
    }
    times = take_turns(timers, range(TURNS))
    epochs = EPOCHS["exact+PP"] / EPOCHS["CVD+PP"]
    for name, values in times.items():
        line = f"{name:13} {Spread.of(values).text(1):>22} ms a step"
        line += f", {ratio(values, times['MLP']).text(2)} times the MLP"
        if name.startswith("CVD"):
            line += f", {ratio(times['exact+PP'], values).times(epochs).text(1)} times sooner"
        print(line)


if __name__ == "__main__":
    main()
