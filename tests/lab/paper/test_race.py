"""Algorithms in turns: the same curves as alone, equal shares of an epoch, and who leaves."""

from __future__ import annotations

import pytest

from lab.paper.experiment import Choice
from lab.paper.race import Entry, race
from lab.paper.runs import train_run
from lab.paper.settings import open_graph, setting

PAPER = setting("communities")


@pytest.fixture(scope="module")
def graph():
    return open_graph("communities", Choice(quick=True))


def entry(graph, algorithm: str, epochs: int) -> Entry:
    config = PAPER.config(algorithm, seed=0, epochs=epochs, batch_size=300, threads=1)
    return Entry(PAPER.build(algorithm, graph, 0), config)


def entries(graph, **epochs: int) -> dict[str, Entry]:
    names = {"mlp": "MLP", "cvd": "CVD+PP", "ns": "NS", "two_way": "two-way"}
    return {names[name]: entry(graph, names[name], count) for name, count in epochs.items()}


def test_nobodys_scores_depend_on_who_else_is_in_the_race(graph):
    together = race(
        graph, entries(graph, mlp=2, cvd=2, ns=2, two_way=2), target=2.0, parts=2, pace="MLP"
    )
    for name in ("CVD+PP", "two-way"):
        alone = entry(graph, name, 2)
        curve = train_run(alone.model, graph, alone.config)["val"]
        assert together[name]["val"][1::2] == pytest.approx(curve, abs=1e-6)  # after whole epochs


def test_parts_of_an_epoch_add_up_to_it(graph):
    counted = []
    whole = race(
        graph,
        entries(graph, mlp=1, cvd=1),
        target=2.0,
        parts=3,  # of 4 steps
        pace="MLP",
        before_turn=lambda: counted.append(1),
    )
    assert len(whole["CVD+PP"]["val"]) == len(whole["CVD+PP"]["seconds"]) == 3
    assert len(counted) == 6
    assert all(seconds > 0 for seconds in whole["CVD+PP"]["seconds"])


def test_who_has_reached_the_target_leaves_and_the_pace_stays_to_the_end(graph):
    whole = race(graph, entries(graph, mlp=1, two_way=4), target=2.0, parts=1, pace="MLP")
    target = whole["two-way"]["val"][1]
    assert target > whole["two-way"]["val"][0]
    found = race(graph, entries(graph, mlp=1, two_way=4, ns=3), target=target, parts=1, pace="MLP")
    ours, ns, mlp = (found[name]["val"] for name in ("two-way", "NS", "MLP"))
    assert ours == whole["two-way"]["val"][:2]
    assert max(ns) < target
    assert len(ns) == 3  # its own limit
    assert len(mlp) == 3  # its limit does not count


def test_a_loss_that_becomes_infinite_ends_ones_race_and_is_told(graph):
    wild = entry(graph, "NS", 3)
    wild = wild._replace(config=PAPER.config("NS", 0, epochs=3, learning_rate=1e30, threads=1))
    found = race(
        graph, {**entries(graph, mlp=1, cvd=1), "NS": wild}, target=2.0, parts=1, pace="MLP"
    )
    assert "became" in found["NS"]["diverged"]
    assert len(found["NS"]["val"]) < 3
    assert found["CVD+PP"]["diverged"] is None
