"""`tune` without settings: begins where `vrgcn train` does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cli.conftest import small_graph
from vrgcn import tune
from vrgcn.runs.candidates import Candidate
from vrgcn.runs.settings import USUAL_MODEL, USUAL_TRAIN
from vrgcn.tuning import tune as module
from vrgcn.tuning.space import TriedSettings

pytest.importorskip("optuna")


def chosen(model, train, untested):
    """Stands for candidates: one, by whatever `vrgcn train` decides on a graph."""
    model = replace(model, model="gcn", norm="none", dropout=0.3, learned_rows=False)
    return [Candidate("gcn", model, replace(train, weight_decay=5e-4, patience=7))]


def test_a_search_begins_with_the_settings_that_a_run_takes_on_its_graph(monkeypatch) -> None:
    graph = small_graph()
    seen = []

    def noted(model, train, untested):
        seen.append((model, train, untested))
        return chosen(model, train, untested)

    monkeypatch.setattr("vrgcn.tuning.tune.candidates", noted)
    config = replace(USUAL_TRAIN, epochs=2, batch_size=32)
    found = tune(graph, config=config, trials=1, baselines=())
    (first,) = (trial.values for trial in found.trials)
    names = ("model", "dropout", "layer_norm", "weight_decay", "learned_rows")
    assert [first[name] for name in names] == ["gcn", 0.3, False, 5e-4, False]
    ((model, _, untested),) = seen
    assert model == USUAL_MODEL  # as `vrgcn train` begins
    assert not len(untested.test)  # nothing of the test nodes chooses the settings


def test_the_norm_of_the_first_settings_is_searched(monkeypatch) -> None:
    monkeypatch.setattr("vrgcn.tuning.tune.candidates", chosen)
    given = TriedSettings(USUAL_MODEL, USUAL_TRAIN)
    (first,) = module._candidates(given, small_graph())
    assert (first.model.norm, first.model.layer_norm) == ("auto", False)
