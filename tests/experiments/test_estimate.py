"""How long units will take, by what such units took."""

from __future__ import annotations

import pytest

from vrgcn.experiments import estimate
from vrgcn.experiments.estimate import about, seconds_of
from vrgcn.experiments.experiment import Choice

KEY = {"dataset": "cora", "algorithm": "NS", "seed": 3, "quick": False}


def record(seconds: float, **changes):
    return {**KEY, "seconds": seconds, **changes}


def test_records_of_the_same_algorithm_come_first_then_those_of_the_data_set():
    records = [record(4.0, seed=0), record(6.0, seed=1), record(100.0, algorithm="M0")]
    assert seconds_of("table3", KEY, records, Choice()) == 5.0
    assert seconds_of("table3", KEY | {"algorithm": "CV+PP"}, records, Choice()) == 6.0
    quick = [record(1.0, quick=True)]
    assert seconds_of("table3", KEY, quick, Choice()) != 1.0


def test_without_records_the_shipped_seconds_count_by_the_share_of_epochs(monkeypatch):
    monkeypatch.setattr(estimate, "SECONDS", {"table3": {"cora": 8.0}})
    assert seconds_of("table3", KEY, [], Choice()) == 8.0
    assert seconds_of("table3", KEY, [], Choice(epochs=50)) == 2.0
    assert seconds_of("table3", KEY, [], Choice(epochs=900)) == 8.0
    assert seconds_of("table3", KEY | {"dataset": "pubmed"}, [], Choice()) == estimate.UNKNOWN
    assert seconds_of("table3", KEY | {"quick": True}, [], Choice(quick=True)) == estimate.QUICK


@pytest.mark.parametrize("layers", [2, 3])
def test_races_of_other_depth_are_not_alike(layers):
    key = {"dataset": "reddit-like", "layers": layers, "seed": 1, "quick": False}
    records = [key | {"seconds": 10.0, "seed": 0}, key | {"seconds": 90.0, "layers": 9}]
    assert seconds_of("table4", key, records, Choice()) == 10.0


def test_an_estimate_is_told_no_finer_than_it_is():
    told = [about(seconds) for seconds in (0.2, 44.4, 720, 12_000)]
    assert told == ["1 s", "44 s", "12 min", "3 h 20 min"]
