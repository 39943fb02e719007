"""The stopwatch measures where time goes, and which part of it is waiting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.harness import stopwatch as module
from lab.harness.stopwatch import Spent, Stopwatch, stopped_within


class Hands:
    """A clock that a test moves. Its seconds are sums of powers of two: they add up exactly."""

    def __init__(self) -> None:
        self.spent = Spent()

    def __call__(self) -> Spent:
        return self.spent

    def compute(self, seconds: float) -> None:
        self.spent += Spent(wall=seconds, cpu=seconds)

    def sleep(self, seconds: float) -> None:
        self.spent += Spent(wall=seconds)


@pytest.fixture
def hands() -> Hands:
    return Hands()


def test_sleeping_is_waiting_and_computing_is_not(hands):
    watch = Stopwatch(hands)
    with watch.phase("sleep"):
        hands.sleep(0.5)
    with watch.phase("work"):
        hands.compute(0.25)
    told = watch.stop()
    assert told["sleep"]["compute"] == Spent(wall=0.5).as_dict() | {"waited": 0.5}
    assert told["work"]["compute"] == Spent(wall=0.25, cpu=0.25).as_dict() | {"waited": 0.0}


def test_a_part_takes_its_time_out_of_the_phase_and_all_of_them_are_the_whole(hands):
    hands.compute(1.0)  # before the watch was made
    watch = Stopwatch(hands)
    hands.compute(0.5)
    with watch.phase("train"):
        hands.compute(0.25)
        with watch.part("gather"):
            hands.compute(2.0)
            with watch.phase("evaluate"), watch.part("gather"):
                hands.compute(4.0)
        assert watch.current == "train"
        hands.compute(8.0)
    told = watch.stop()
    wall = {phase: {part: s["wall"] for part, s in parts.items()} for phase, parts in told.items()}
    assert wall == {
        "other": {"compute": 0.5},
        "train": {"compute": 8.25, "gather": 2.0},
        "evaluate": {"compute": 0.0, "gather": 4.0},
    }


def test_of_an_iterator_the_making_counts_and_not_what_is_done_between(hands):
    watch = Stopwatch(hands)

    def items() -> Iterator[int]:
        for item in range(3):
            hands.compute(0.5)
            yield item

    found = []
    with watch.phase("train"):
        for item in watch.iterate(items, lambda: watch.part("plan")):
            hands.compute(0.25)
            found.append(item)
    told = watch.stop()["train"]
    assert found == [0, 1, 2]
    assert told["plan"]["cpu"] == 1.5
    assert told["compute"]["cpu"] == 0.75


def test_waiting_is_what_neither_computing_nor_the_queue_explains():
    assert Spent(wall=5.0, cpu=2.0, queued=1.0).waited == 2.0
    assert Spent(wall=5.0, cpu=2.0, queued=1.0, stopped=0.5).waited == 1.5
    assert Spent(wall=1.0, cpu=1.1).waited == 0.0


@pytest.mark.parametrize(
    ("wall", "queued", "stopped"),
    [
        (0.125, 0.0, 0.0),  # a beat, on time
        (0.5, 0.0, 0.0),  # late, for whatever reason
        (8.0, 7.75, 0.0),  # late, since others had the processor
        (2.0, 0.0, 1.875),
        (2.0, 0.25, 1.625),
    ],
)
def test_a_beat_that_nothing_else_explains_is_a_stop(monkeypatch, wall, queued, stopped):
    monkeypatch.setattr(module, "_BEAT", 0.125)
    assert stopped_within(wall, queued) == stopped
