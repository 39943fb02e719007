"""One training run of an experiment, as a record."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import nn

from lab.harness.records import Record, in_order, of, rounded
from vrgcn.engine.setup import set_up
from vrgcn.graph.graph import Graph
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.runs.fit import fit
from vrgcn.training.config import TrainConfig
from vrgcn.training.objective import loss_per_node
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch


class _EnoughError(Exception):
    """Raised to end a run that has reached its target."""


def train_run(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    *,
    until: float | None = None,
    measure: Callable[[], float] | None = None,
    every: int = 1,
) -> Record:
    """Train and return a JSON-able record.

    until: stop after the first epoch whose validation score is at least this
    measure: called after each epoch whose number `every` divides and after the last; its values are
        "measured". Where it is not finite the run has diverged

    planned: how many epochs it was to have; epochs: how many it had
    loss, val, epoch_seconds: an entry for each of them (val: for each that was evaluated)
    at: the epochs of "measured", or else those of "val"
    test: score of the last weights; None if the run stopped early
    diverged: the error's text if the loss became infinite, else None
    """
    points: list[Epoch] = []
    measured: dict[int, float] = {}

    def on_epoch(point: Epoch) -> None:
        points.append(point)
        if measure is not None and (point.epoch % every == 0 or point.epoch == config.epochs):
            value = measure()
            if not math.isfinite(value):
                raise FloatingPointError(f"the loss was {value} after epoch {point.epoch}")
            measured[point.epoch] = rounded(value)
        if until is not None and point.val is not None and point.val >= until:
            raise _EnoughError

    result: TrainResult | None = None
    diverged = None
    try:
        result = fit(model, graph, config, on_epoch=on_epoch)
    except _EnoughError:
        pass
    except FloatingPointError as error:  # a result too: this algorithm does not converge
        diverged = str(error)
    seconds = [0.0, *(point.seconds for point in points)]
    evaluated = [point.epoch for point in points if point.val is not None]
    record: Record = {
        "planned": config.epochs,
        "epochs": len(points),
        "at": list(measured) if measure is not None else evaluated,
        "loss": [rounded(point.loss) for point in points],
        "val": [rounded(point.val) for point in points if point.val is not None],
        "epoch_seconds": [rounded(b - a) for a, b in pairwise(seconds)],
        "test": None if result is None or result.test is None else rounded(result.test),
        "diverged": diverged,
    }
    return record | ({"measured": list(measured.values())} if measure is not None else {})


def exact_training_loss(model: nn.Module, graph: Graph, config: TrainConfig) -> Callable[[], float]:
    """Return the mean loss over the training nodes, with exact neighbour averages and without
    dropout.

    This is the objective that every estimator should minimise, on the edges that it trains on; the
    mean of a run's own minibatch losses would flatter an estimator whose noise was fitted. It does
    not include the weight decay.
    """
    setup = set_up(
        model,
        graph,
        propagation=config.propagation,
        preprocess=config.preprocess,
        inductive=config.inductive,
    )
    sweeps = ExactSweeps(model, setup)
    assert graph.labels is not None
    labels = graph.labels[graph.train]
    return lambda: float(loss_per_node(sweeps.outputs(graph.train), labels).mean())


def label_seeds(records: Sequence[Record]) -> list[Record]:
    """Return the same records, with the seed in the label if a data set has several: each is shown
    and judged alone, and equal names could not be told apart."""
    seeds = {
        name: {r["seed"] for r in of(records, dataset=name)}
        for name in in_order(records, "dataset")
    }
    return [
        record | {"label": f"{record['label']}, seed {record['seed']}"}
        if len(seeds[record["dataset"]]) > 1
        else record
        for record in records
    ]
