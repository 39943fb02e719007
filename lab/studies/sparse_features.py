"""Epochs and evaluations on the sparse features of real graphs beside those on 64 dense columns.

    python -m lab.studies.sparse_features

The model, the graph and the estimator are the same; dense columns are random numbers. Seconds are
those of the processor, one thread, the least of several epochs, so that a busy machine disturbs
them little. `never` is (P X) W, `always` P (X W); `auto` takes the one that is marked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from lab.harness.trainers import EndlessTrainer
from lab.league.real_graphs import data_folder, entry_of, load
from vrgcn.costs.order import build_for, settle_order
from vrgcn.graph.graph import Graph
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.models.config import ModelConfig
from vrgcn.training.config import TrainConfig

GRAPHS = ("blogcatalog_attributed", "facebook_large", "amazon_computers")
COLUMNS = 64
ORDERS = ("never", "always")


def measure(graph: Graph, model: ModelConfig, estimator: str, epochs: int) -> tuple[float, float]:
    """Return the seconds of an epoch and of an exact evaluation of the validation nodes."""
    config = TrainConfig(estimator=estimator)
    built = build_for(model, graph, graph.num_classes, seed=0)
    training = EndlessTrainer(built, graph, config)
    sweeps = ExactSweeps(built, training.trainer.minibatches.setup)
    training.run(training.steps_per_epoch)
    epoch = _least(lambda: training.run(training.steps_per_epoch), epochs)
    return epoch, _least(lambda: sweeps.outputs(graph.val), epochs)


def _least(work: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def table(graph: Graph, name: str, estimator: str, epochs: int) -> list[str]:
    """Return the rows of a graph."""
    generator = torch.Generator().manual_seed(0)
    dense = graph.with_features(torch.randn(graph.num_nodes, COLUMNS, generator=generator))
    first = measure(dense, ModelConfig(), estimator, epochs)
    rows = [f"| {name} | {COLUMNS} dense columns | {first[0]:.3f} | 1 | {first[1]:.3f} | 1 |"]
    auto = settle_order(ModelConfig(), graph).transform_first
    for order in ORDERS:
        model = replace(ModelConfig(), transform_first=order)  # type: ignore[arg-type]
        epoch, evaluation = measure(graph, model, estimator, epochs)
        rows.append(
            f"| | {order}{' (auto)' if order == auto else ''} | {epoch:.3f} | "
            f"{epoch / first[0]:.2f} | {evaluation:.3f} | {evaluation / first[1]:.2f} |"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS))
    parser.add_argument("--estimator", default="two-way")
    parser.add_argument("--epochs", type=int, default=5)
    given = parser.parse_args()
    folder = data_folder()
    if folder is None:
        parser.error("no real graphs: name their folder by VRGCN_DATA")
    torch.set_num_threads(1)
    print("| graph | features | s an epoch | ratio | s an evaluation | ratio |")
    print("|---|---|---|---|---|---|")
    for name in given.graphs:
        graph = entry_of(name, load(name, 0, folder)).graph
        print("\n".join(table(graph, name, given.estimator, given.epochs)), flush=True)


if __name__ == "__main__":
    main()
