"""The search space: bounds that include the given values, settings by name, and exceptions."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.messages import refused
from vrgcn import ESTIMATORS, TrainConfig
from vrgcn.models.config import ModelConfig
from vrgcn.tuning.space import PORTFOLIO, SPACE, Choice, Range, Search, TriedSettings, check_names

optuna = pytest.importorskip("optuna")


def search(model: ModelConfig | None = None, names=tuple(SPACE), **train) -> Search:
    return Search(TriedSettings(model or ModelConfig(), TrainConfig(**train)), names)


def as_it_is(settings: TriedSettings) -> TriedSettings:
    return settings


def test_every_setting_that_is_searched_is_one_of_a_config() -> None:
    known = {f.name for kind in (ModelConfig, TrainConfig) for f in fields(kind)}
    assert known >= SPACE.keys()
    assert all(other.keys() <= SPACE.keys() for other in PORTFOLIO)
    assert set(SPACE["estimator"].values) <= ESTIMATORS.keys()


def test_what_was_given_is_within_the_bounds_and_tried_first() -> None:
    given = ModelConfig(hidden=24, layers=6)
    found = search(given, learning_rate=0.5, weight_decay=0.3, estimator="ns")
    assert found.space["hidden"] == Choice((64, 128, 256, 24))
    assert found.space["layers"] == Range(1, 6)
    assert found.space["learning_rate"] == Range(1e-3, 0.5, log=True)
    first, values = found.values_of(found.given), found.given.values()
    assert first == {name: values[name] for name in SPACE}
    assert next(found.portfolio_values(as_it_is, [first])) == first | PORTFOLIO[0]
    assert SPACE["hidden"] == Choice((64, 128, 256))  # the table itself is as it was
    study = optuna.create_study()
    study.enqueue_trial(first)
    assert found.draw(study.ask()) == found.given


def test_auto_is_none_of_the_estimators_and_each_start_has_the_one_that_it_stands_for() -> None:
    def settled(settings: TriedSettings) -> TriedSettings:
        assert settings.train.estimator == "auto"
        return settings.changed({"estimator": "cvd" if settings.model.layers > 2 else "exact"})

    found = search()
    assert found.space["estimator"] == SPACE["estimator"]
    starts = list(found.portfolio_values(settled, []))
    assert len(starts) == len(PORTFOLIO)
    for start in starts:
        if start["model"] == "mlp":  # looks at no neighbours
            assert "estimator" not in start
            continue
        assert start["estimator"] == ("cvd" if start["layers"] > 2 else "exact")


def test_only_what_is_named_is_varied() -> None:
    found = search(names=("layers", "dropout"), learning_rate=0.02)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [found.draw(study.ask()) for _ in range(20)]
    assert {d.model.layers for d in drawn} == {1, 2, 3, 4}
    assert all(0 <= d.model.dropout <= 0.7 for d in drawn)
    assert {d.train for d in drawn} == {TrainConfig(learning_rate=0.02)}
    assert {d.model.hidden for d in drawn} == {ModelConfig.hidden}
    assert list(found.portfolio_values(as_it_is, [{"layers": 2, "dropout": 0.2}])) == [
        {"layers": 2, "dropout": 0.5},
        {"layers": 3, "dropout": 0.0},
        {"layers": 4, "dropout": 0.2},
        {"layers": 3, "dropout": 0.2},
        {"layers": 1, "dropout": 0.5},
        {"layers": 3, "dropout": 0.5},
    ]


def test_the_portfolio_is_within_the_bounds_and_has_every_model() -> None:
    for other in PORTFOLIO:
        assert {name: SPACE[name].holding(value) for name, value in other.items()} == {
            name: SPACE[name] for name in other
        }
    models = {start["model"] for start in search().portfolio_values(as_it_is, [])}
    assert models == set(SPACE["model"].values)


def test_a_model_without_neighbours_has_no_estimator() -> None:
    found = search()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen = set()
    for _ in range(30):
        trial = study.ask()
        drawn = found.draw(trial)
        seen.add(drawn.model.model)
        for name in ("estimator", "learned_rows", "neighbour_labels"):
            assert (name in trial.params) == (drawn.model.model != "mlp")
    assert seen == {"gcn", "graphsage", "residual", "mlp"}
    fixed = search(ModelConfig(model="mlp"), names=("layers", "estimator"))
    trial = study.ask()
    fixed.draw(trial)
    assert list(trial.params) == ["layers"]


def test_estimators_that_are_too_slow_are_not_drawn_unless_one_was_given() -> None:
    def drawn(given: str) -> tuple[str, ...]:
        settings = TriedSettings(ModelConfig(), TrainConfig(estimator=given))
        return Search(settings, left_out=("exact",)).space["estimator"].values

    assert "exact" not in drawn("auto")
    assert "exact" in drawn("exact")


def test_starts_have_no_estimator_that_is_not_drawn() -> None:
    """`auto` stands for exact training in a portfolio's model of one layer."""
    found = Search(TriedSettings(ModelConfig(), TrainConfig()), tuple(SPACE), ("exact",))

    def exact(settings: TriedSettings) -> TriedSettings:
        return settings.changed({"estimator": "exact"})

    starts = [found.values_of(exact(found.given)), *found.portfolio_values(exact, [])]
    assert {start.get("estimator", "two-way") for start in starts} == {"two-way"}


def test_learned_rows_that_were_given_are_left_out_of_a_model_without_neighbours() -> None:
    found = search(ModelConfig(learned_rows=True))
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    models = {found.draw(study.ask()).model.model for _ in range(20)}
    assert "mlp" in models


@pytest.mark.parametrize(
    "names",
    [("layers", "depth"), ()],
)
def test_settings_that_cannot_be_searched_are_refused(names) -> None:
    with refused():
        check_names(names)


def test_settings_of_all_candidates_are_within_the_bounds() -> None:
    given = TriedSettings(ModelConfig(), TrainConfig())
    others = [given.changed({"hidden": 512, "learning_rate": 0.1}), given.changed({"layers": 7})]
    found = Search(given, tried=others)
    assert found.space["hidden"] == Choice((64, 128, 256, 512))
    assert found.space["learning_rate"] == Range(1e-3, 0.1, log=True)
    assert found.space["layers"] == Range(1, 7)
