"""A diagnosis of relational models: every estimator, and tables of gradients of one kind."""

from dataclasses import replace

from tests.models.test_relational import CONFIG, GRAPH, built
from vrgcn.diagnostics.diagnosis import diagnose
from vrgcn.engine.estimators import ESTIMATORS


def test_relational_models_are_diagnosed() -> None:
    chosen = {name: ESTIMATORS[name] for name in ("cvd", "two-way")}
    config = replace(CONFIG, estimator="two-way", epochs=1)
    found = diagnose(built(), GRAPH, config, estimators=chosen, passes=4)
    assert not found.impossible
    assert set(found.estimators) == {"exact", "cvd", "two-way"}
    assert {part.kind for part in found.staleness["two-way"]} == {"h", "g"}
