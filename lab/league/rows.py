"""Competitors of the league: baselines, networks and searches, each scored on one split."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from lab.league.real_graphs import METRICS
from vrgcn.baselines import RECIPES
from vrgcn.baselines.problem import Problem
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import scale_graph, suitable_scaling
from vrgcn.inference.predict import predict
from vrgcn.models.config import ModelConfig
from vrgcn.runs.settings import Settings
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import Metric
from vrgcn.training.config import TrainConfig


@dataclass(frozen=True)
class Entry:
    """A graph of the league with one of its splits, as competitors get it.

    graph: with scaled features; name: in `real_graphs.GRAPHS`
    """

    name: str
    graph: Graph

    @property
    def metric(self) -> Metric:
        return find_task(self.graph.task).find_metric(METRICS.get(self.name))

    def scored(self, outputs: torch.Tensor, split: str) -> float:
        """Score of outputs (all nodes, columns) on the nodes of a split."""
        assert self.graph.labels is not None
        nodes = self.graph.split(split)
        return self.metric.compute(outputs[nodes], self.graph.labels[nodes])


Run = Callable[[Entry], dict[str, Any]]


def _baseline(name: str) -> Run:
    def run(entry: Entry) -> dict[str, Any]:
        problem = Problem.of(entry.graph, entry.metric)
        model = RECIPES[name].fit(problem)
        outputs = predict(model, entry.graph)
        return {"val": entry.scored(outputs, "val"), "test": entry.scored(outputs, "test")}

    return run


def _network(**changes: Any) -> Run:
    """The default network with some settings changed."""

    def run(entry: Entry) -> dict[str, Any]:
        given = TrainConfig(metric=METRICS.get(entry.name), diagnostics=0, threads=1)
        settings = Settings(model=ModelConfig(), train=given).changed(changes)
        job = settings.prepare(entry.graph)
        result = job.train()
        return {
            "val": result.val,
            "test": result.test,
            "epochs": len(result.curve),
            "estimator": job.config.estimator,
        }

    return run


ROWS: dict[str, Run] = {
    **{f"baseline {name}": _baseline(name) for name in RECIPES},
    "default": _network(),
    "two-way, last weights": _network(estimator="two-way", average_weights=False),
    "two-way": _network(estimator="two-way"),
    "two-way, learned rows": _network(estimator="two-way", learned_rows=True),
    "two-way, neighbours' labels": _network(estimator="two-way", neighbour_labels=True),
    "cvd, last weights": _network(estimator="cvd", average_weights=False),
    "cvd": _network(estimator="cvd"),
    "exact, last weights": _network(estimator="exact", average_weights=False),
    "exact": _network(estimator="exact"),
}


def run_row(name: str, entry: Entry) -> dict[str, Any]:
    """Return the scores of a row, with its total seconds and processor seconds."""
    torch.manual_seed(0)
    clock, processor = time.perf_counter(), time.process_time()
    found = ROWS[name](entry)
    return {
        **found,
        "seconds": round(time.perf_counter() - clock, 3),
        "cpu_seconds": round(time.process_time() - processor, 3),
    }


def entry_of(name: str, graph: Graph) -> Entry:
    """The graph with its features scaled as `vrgcn train` scales them."""
    kind = suitable_scaling(graph.features)
    return Entry(name, scale_graph(graph, kind)[0])
