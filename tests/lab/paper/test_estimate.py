"""How long units will take, by what such units took."""

from __future__ import annotations

import pytest

from lab.harness.units import Unit
from lab.paper import estimate
from lab.paper.estimate import about, seconds_of

KEY = {"dataset": "cora", "algorithm": "NS", "seed": 3, "quick": False}


def unit(epochs: int | None = None, **changes) -> Unit:
    return Unit(KEY | changes, dict, epochs)


def record(seconds: float, **changes):
    return {**KEY, "seconds": seconds, **changes}


def test_records_of_the_same_algorithm_come_first_then_those_of_the_data_set():
    records = [record(4.0, seed=0), record(6.0, seed=1), record(100.0, algorithm="M0")]
    assert seconds_of("table3", unit(), records) == 5.0
    assert seconds_of("table3", unit(algorithm="CV+PP"), records) == 6.0
    quick = [record(1.0, quick=True)]
    assert seconds_of("table3", unit(), quick) != 1.0


def test_records_of_other_epochs_count_by_their_number():
    assert seconds_of("table3", unit(200), [record(1.0, epochs=50)]) == 4.0
    assert seconds_of("table3", unit(200), [record(1.0, epochs=3, planned=100)]) == 2.0


def test_a_field_that_a_key_does_not_have_is_not_compared():
    key = {"dataset": "cora", "seed": 1, "quick": False}
    records = [key | {"seed": 0, "layers": 10, "seconds": 115.0}]
    assert seconds_of("fig-correlation", Unit(key, dict), records) == 115.0


def test_without_records_the_shipped_seconds_count_by_the_share_of_epochs(monkeypatch):
    monkeypatch.setattr(estimate, "SECONDS", {"table3": {"cora": 8.0}})
    assert seconds_of("table3", unit(200), []) == 8.0
    assert seconds_of("table3", unit(50), []) == 2.0
    assert seconds_of("table3", unit(200, dataset="pubmed"), []) == estimate.UNKNOWN
    assert seconds_of("table3", unit(4, quick=True), []) == estimate.QUICK
    monkeypatch.setattr(estimate, "SECONDS", {"fig-loss": {"cora": 8.0}})
    assert seconds_of("fig-loss", unit(200), []) == 4.0  # of the 400 of its curves


@pytest.mark.parametrize("layers", [2, 3])
def test_races_of_other_depth_are_not_alike(layers):
    key = {"dataset": "reddit-like", "layers": layers, "seed": 1, "quick": False}
    records = [key | {"seconds": 10.0, "seed": 0}, key | {"seconds": 90.0, "layers": 9}]
    assert seconds_of("table4", Unit(key, dict, 6), records) == 10.0


def test_an_estimate_is_told_no_finer_than_it_is():
    told = [about(seconds) for seconds in (0.2, 44.4, 720, 12_000)]
    assert told == ["1 s", "44 s", "12 min", "3 h 20 min"]
