"""Competitors of the league: baselines, networks and searches, each scored on one split."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from lab.harness.version import code_version
from lab.league.real_graphs import Entry
from lab.league.search import run_search
from vrgcn.baselines import RECIPES
from vrgcn.baselines.problem import Problem
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.inference.fitting import fit_recipe
from vrgcn.inference.predict import predict
from vrgcn.models.config import ModelConfig
from vrgcn.runs.racing import raced
from vrgcn.runs.settings import Settings
from vrgcn.runs.stages import smooth_run
from vrgcn.training.config import TrainConfig

Kind = Literal["baseline", "default", "estimator", "variant", "tune"]
TUNE_LIMIT = "3m"
LAST = ", last weights"


@dataclass(frozen=True)
class Row:
    """A competitor.

    kind: baseline; default, the network that `vrgcn train` trains; estimator, that network by each
        estimator, not smoothed; variant, that network with another setting; tune, a search
    run: returns at least `val` and `test`
    """

    kind: Kind
    run: Callable[[Entry], dict[str, Any]]
    available: bool = True


def _baseline(name: str) -> Row:
    def run(entry: Entry) -> dict[str, Any]:
        problem = Problem.of(entry.graph, entry.metric)
        outputs = predict(fit_recipe(RECIPES[name], problem), entry.graph)
        return {"val": entry.scored(outputs, "val"), "test": entry.scored(outputs, "test")}

    return Row("baseline", run, RECIPES[name].available)


def _network(kind: Kind, **changes: Any) -> Row:
    """The default network with some settings changed, smoothed as `vrgcn train` does."""

    def run(entry: Entry) -> dict[str, Any]:
        given = TrainConfig(metric=entry.asked, diagnostics=0, threads=1, patience=0)
        settings = Settings(model=ModelConfig(), train=given).changed(changes)
        job = settings.prepare(entry.graph)
        trained = job.train()
        result, _ = smooth_run(
            job.model, entry.graph, trained, settings.smooth, entry.asked, lambda _: None
        )
        return {
            "val": result.val,
            "test": result.test,
            "unsmoothed": trained.test,
            "epochs": len(result.curve),
            "estimator": job.config.estimator,
        }

    return Row(kind, run)


def _default() -> Row:
    """What `vrgcn train` does without any setting but the metric."""

    def run(entry: Entry) -> dict[str, Any]:
        settings = Settings().changed({"metric": entry.asked, "diagnostics": 0, "threads": 1})
        chosen, job, begun = raced(settings, entry.graph)
        trained = job.train(begun=begun)
        result, _ = smooth_run(job.model, entry.graph, trained, settings.smooth, entry.asked, print)
        return {
            "val": result.val,
            "test": result.test,
            "unsmoothed_val": trained.val,
            "unsmoothed_test": trained.test,
            "epochs": len(result.curve),
            "estimator": job.config.estimator,
            "model": chosen.model.model,
            "learned_rows": chosen.model.learned_rows,
            "compared": trained.compared,
        }

    return Row("default", run)


def _tune(limit: str) -> Row:
    return Row("tune", lambda entry: run_search(entry, limit))


def rows(tune_limit: str = TUNE_LIMIT) -> dict[str, Row]:
    """Return the competitors by name, in the order of the tables."""
    estimators = {
        name + ("" if averaged else LAST): _network(
            "estimator", estimator=name, average_weights=averaged, smooth="never"
        )
        for name in ESTIMATORS
        for averaged in (True, False)
    }
    variants: dict[str, dict[str, Any]] = {
        "not smoothed": {"smooth": "never"},
        "learned rows": {"learned_rows": True},
        "neighbours' labels": {"neighbour_labels": True},
        "rows and labels": {"learned_rows": True, "neighbour_labels": True},
        "gcn": {"model": "gcn"},
        "3 layers": {"layers": 3},
        "3 layers, skip": {"layers": 3, "skip": True},
        "gcn, 3 layers, skip": {"model": "gcn", "layers": 3, "skip": True},
        "batch norm": {"norm": "batch"},
        "jumping knowledge": {"jumping": "cat"},
        "dropout .5": {"dropout": 0.5},
        "256 wide, rate .003": {"hidden": 256, "learning_rate": 0.003},
        "100 epochs, rate .003": {"epochs": 100, "learning_rate": 0.003},
    }
    return {
        **{f"baseline {name}": _baseline(name) for name in RECIPES},
        "default": _default(),
        **estimators,
        **{name: _network("variant", **changes) for name, changes in variants.items()},
        "tune": _tune(tune_limit),
    }


ROWS = rows()
KINDS: tuple[Kind, ...] = tuple(dict.fromkeys(row.kind for row in ROWS.values()))


def run_row(row: Row, entry: Entry) -> dict[str, Any]:
    """Return the scores of a row, with its total seconds and processor seconds, and the version of
    the code."""
    torch.manual_seed(0)
    clock, processor = time.perf_counter(), time.process_time()
    found = row.run(entry)
    return {
        "kind": row.kind,
        **found,
        "seconds": round(time.perf_counter() - clock, 3),
        "cpu_seconds": round(time.process_time() - processor, 3),
        "version": code_version(),
    }
