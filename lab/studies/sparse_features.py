"""Epochs and evaluations on the sparse features of real graphs beside those on 64 dense columns.

    python -m lab.studies.sparse_features

The model, the graph and the estimator are the same; dense columns are random numbers. Seconds are
those of the processor, one thread, the least of several epochs, so that a busy machine disturbs
them little. `never` is (P X) W, `always` P (X W); `auto` takes the one that is marked.

"First weights by hand" is an epoch's work on the first weights without the engine: products with
minibatches that lie ready, gradients, Adam and the average. The least ratio is what an epoch would
take if it had only this work in place of that on 64 columns: planning, the further hop of P (X W),
reading features and dropping them come on top.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import torch
from torch import nn

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


@dataclass(frozen=True)
class Measured:
    """Seconds of an epoch, of an exact evaluation of the validation nodes, and of an epoch's work
    on the first weights by hand."""

    epoch: float
    evaluation: float
    by_hand: float


def measure(graph: Graph, model: ModelConfig, estimator: str, epochs: int) -> Measured:
    """Train by the estimator; return the least seconds of some epochs."""
    config = TrainConfig(estimator=estimator)
    built = build_for(model, graph, graph.num_classes, seed=0)
    training = EndlessTrainer(built, graph, config)
    sweeps = ExactSweeps(built, training.trainer.minibatches.setup)
    training.run(training.steps_per_epoch)
    epoch = _least(lambda: training.run(training.steps_per_epoch), epochs)
    evaluation = _least(lambda: sweeps.outputs(graph.val), epochs)
    linear = built.get_submodule("layers.0.linears.0")
    by_hand = first_weights(linear, lambda: training.run(training.steps_per_epoch))
    return Measured(epoch, evaluation, _least(by_hand, epochs))


def first_weights(linear: nn.Module, epoch: Callable[[], object]) -> Callable[[], None]:
    """Return an epoch's work on the weights of the first linear layer. epoch: runs an epoch, of
    which the layer's inputs are kept"""
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def kept(product: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(product)
        def call(*given: Any) -> Any:
            calls.append((product, given))
            return product(*given)

        return call

    names = [name for name in ("forward", "products") if hasattr(linear, name)]
    for name in names:
        setattr(linear, name, kept(getattr(linear, name)))
    epoch()
    for name in names:
        delattr(linear, name)
    weight = linear.get_parameter("weight")
    optimizer = torch.optim.Adam([weight], lr=0.0, fused=True)
    average = weight.detach().clone()

    def work() -> None:
        for product, given in calls:
            found = product(*given)
            outputs = found if isinstance(found, tuple) else (found,)
            optimizer.zero_grad()
            torch.autograd.backward(outputs, [torch.ones_like(y) for y in outputs])
            optimizer.step()
            average.lerp_(weight.detach(), 0.1)

    return work


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
    rows = [_row(name, f"{COLUMNS} dense columns", first, first)]
    auto = settle_order(ModelConfig(), graph).transform_first
    for order in ORDERS:
        model = replace(ModelConfig(), transform_first=order)  # type: ignore[arg-type]
        found = measure(graph, model, estimator, epochs)
        rows.append(_row("", f"{order}{' (auto)' if order == auto else ''}", found, first))
    return rows


def _row(name: str, features: str, found: Measured, first: Measured) -> str:
    least = (first.epoch - first.by_hand + found.by_hand) / first.epoch
    cells = [
        name,
        features,
        f"{found.epoch:.3f}",
        f"{found.epoch / first.epoch:.2f}",
        f"{found.evaluation:.3f}",
        f"{found.evaluation / first.evaluation:.2f}",
        f"{found.by_hand:.3f}",
        f"{least:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


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
    print(
        "| graph | features | s an epoch | ratio | s an evaluation | ratio | "
        "s of the first weights by hand | least ratio |"
    )
    print("|---" * 8 + "|")
    for name in given.graphs:
        graph = entry_of(name, load(name, 0, folder)).graph
        print("\n".join(table(graph, name, given.estimator, given.epochs)), flush=True)


if __name__ == "__main__":
    main()
