"""A diagnosis of a model of pairs: both kinds of minibatches, against the exact algorithm."""

from __future__ import annotations

from typing import Any

import pytest

from tests.targets.test_links import communities, model_of
from vrgcn.diagnostics.diagnosis import diagnose
from vrgcn.diagnostics.staleness import Staleness
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.training.config import TrainConfig

SOME = {name: ESTIMATORS[name] for name in ("exact", "ns", "cvd", "two-way")}


def found(way: Any, **settings: Any) -> Any:
    graph = communities()
    config = TrainConfig(
        estimator="cvd", epochs=2, batch_size=60, pair_batches=way, preprocess=False, **settings
    )
    model = model_of(graph, "distmult")
    return diagnose(model, graph, config, estimators=SOME, passes=6)


def test_minibatches_of_nodes_are_measured_with_the_decoder_of_the_model() -> None:
    diagnosis = found("nodes")
    assert list(diagnosis.estimators) == list(SOME)
    exact, sampled = (diagnosis.estimators[name] for name in ("exact", "ns"))
    assert exact.outputs.error == 0
    assert sampled.outputs.error > 0.01
    assert "decoder" in sampled.gradients.layers
    assert sampled.gradient.error > 0
    assert diagnosis.estimators["cvd"].outputs.error < sampled.outputs.error


def test_the_table_of_partners_is_no_table_of_gradients() -> None:
    tables: list[Staleness] = found("nodes").staleness["two-way"]
    assert {table.kind for table in tables} == {"h", "g"}


def test_minibatches_of_pairs_refuse_histories_of_gradients_and_measure_the_others() -> None:
    diagnosis = found("pairs")
    assert list(diagnosis.estimators) == ["exact", "ns", "cvd"]
    assert "minibatches of pairs" in diagnosis.impossible["two-way"]
    assert diagnosis.estimators["exact"].gradient.bias == pytest.approx(0, abs=1e-6)
    assert diagnosis.estimators["ns"].gradient.error > 0
