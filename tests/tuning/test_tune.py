"""`tune` without settings: begins where `vrgcn train` does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cli.conftest import small_graph
from vrgcn import tune
from vrgcn.runs.settings import USUAL_TRAIN
from vrgcn.tuning import tune as module

pytest.importorskip("optuna")


def test_a_search_begins_with_the_settings_that_a_run_takes_on_its_graph(monkeypatch) -> None:
    graph = small_graph()
    seen = []

    def settle(model, train, untested, *, compare):
        seen.append((model, train, untested))
        chosen = replace(model, model="gcn", norm="none", dropout=0.3, learned_rows=False)
        return chosen, replace(train, weight_decay=5e-4, patience=7), None

    monkeypatch.setattr("vrgcn.tuning.tune.settle", settle)
    config = replace(USUAL_TRAIN, epochs=2, batch_size=32)
    found = tune(graph, config=config, trials=2, baselines=())
    first, second = (trial.values for trial in found.trials)
    names = ("model", "dropout", "layer_norm", "weight_decay", "learned_rows")
    assert [first[name] for name in names] == ["gcn", 0.3, False, 5e-4, False]
    assert second == first | {"learned_rows": True}
    ((model, _, untested),) = seen
    assert model.model == "auto"
    assert not len(untested.test)  # nothing of the test nodes chooses the settings


def test_the_norm_of_the_first_settings_is_searched(monkeypatch) -> None:
    graph = small_graph()
    given = module.Settings(module.SEARCHED_MODEL, USUAL_TRAIN)
    monkeypatch.setattr(
        "vrgcn.tuning.tune.settle",
        lambda model, train, graph, *, compare: (
            replace(model, model="gcn", norm="none"),
            train,
            None,
        ),
    )
    model = module._settled(given, graph, None).model
    assert (model.norm, model.layer_norm) == ("auto", False)
