"""The race to a validation score."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.bench import accuracy
from lab.bench.accuracy import PEER, SAME_FANOUTS
from lab.bench.bench import COMPARED


class _Peer:
    steps_per_epoch = 7

    def milliseconds(self, steps):
        assert steps == 1
        return 20.0


@pytest.fixture
def no_memory(monkeypatch):
    monkeypatch.setattr(accuracy, "_memory", lambda bench: {})


def test_who_reaches_the_target_stops_and_who_does_not_says_so(bench, monkeypatch, no_memory):
    monkeypatch.setattr(accuracy, "_peer", lambda bench: _Peer())
    bench.scale = replace(bench.scale, target=0.01, later=())
    reached = accuracy.run(bench).results["algorithms"]
    for name in COMPARED:
        assert reached[name]["reached"]
        assert reached[name]["epochs"] == 0.5

    bench.scale = replace(bench.scale, target=1.0, epochs=2, slow_epochs=1, runs=2)
    section = accuracy.run(bench)
    never = section.results["algorithms"]
    assert not never["MLP"]["reached"]
    assert never["MLP"]["epochs"] == 2
    assert never[SAME_FANOUTS]["epochs"] == 1
    assert len(never["MLP"]["runs"]) == 2
    row = next(row for row in section.tables[0].rows if row[0] == "MLP")
    assert row[2] == f"never in 2 (best {never['MLP']['best']:.3f})"
    assert row[3].startswith("> ")


def test_the_peers_time_is_a_sample_multiplied(bench, monkeypatch, no_memory):
    monkeypatch.setattr(accuracy, "_peer", lambda bench: _Peer())
    bench.scale = replace(bench.scale, target=0.01, later=())
    section = accuracy.run(bench)
    peer = section.results["algorithms"][PEER]
    assert peer["epoch_seconds"] == pytest.approx(0.020 * 7)
    assert peer["seconds"] == pytest.approx(0.020 * 7 * 0.5)
    assert peer["batches_timed"] == 1
    assert any("multiplied by the 7 of an epoch" in note for note in section.notes)
