"""The stopwatch measures where time goes, and which part of it is waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lab.harness import stopwatch as module
from lab.harness.stopwatch import Spent, Stopwatch, ThreadClock, stopped_within
from tests.page_cache import forgotten
from tests.waiting import LONG


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


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


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


def test_the_clock_of_a_thread_counts_computing_and_no_sleep():
    clock = ThreadClock()
    start = clock()
    busy(0.1)
    assert (clock() - start).cpu >= 0.1
    start = clock()
    time.sleep(0.1)  # the clock is asked about sleep; a longer one does no harm
    slept = clock() - start
    assert slept.wall >= 0.1
    assert slept.cpu < slept.wall


def test_time_in_which_another_has_the_processor_is_queued():
    clock, allowed = ThreadClock(), os.sched_getaffinity(0)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            for pid in (0, other.pid):  # one processor for both: they have to take turns
                os.sched_setaffinity(pid, {min(allowed)})
            outer = time.perf_counter()
            start = clock()
            while (shared := clock() - start).queued < 0.05:
                busy(0.01)
            around = time.perf_counter() - outer
        finally:
            os.sched_setaffinity(0, allowed)
            other.kill()
    # Nobody computes while waiting in the queue. Two clocks of a system may differ by a little.
    assert shared.cpu + shared.queued <= 1.01 * around


def test_pages_that_come_from_the_disk_are_counted(tmp_path):
    file = tmp_path / "table.npy"
    np.save(file, np.arange(1 << 20))
    table = np.load(file, mmap_mode="r")
    forgotten(file)
    clock, before = ThreadClock(), _read_by_all_threads()
    start = clock()
    table.sum()
    spent = clock() - start
    assert spent.major_faults > 0
    assert table.nbytes <= spent.read_bytes <= _read_by_all_threads() - before


def _read_by_all_threads() -> int:
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["read_bytes"])


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


def test_a_process_that_was_stopped_from_outside_did_not_wait():
    program = (
        "import sys; from lab.harness.stopwatch import Stopwatch, ThreadClock\n"
        "clock = ThreadClock(); watch = Stopwatch(clock)\n"
        "with watch.phase('wait'):\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        "    while not clock().stopped: pass\n"
        "told = watch.stop()['wait']['compute']; print(told['waited'], told['stopped'])"
    )
    pipe, start = subprocess.PIPE, time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            down = time.perf_counter()
            time.sleep(2 * module._STOPPED)  # shorter stops do not count; a longer does no harm
            inside = time.perf_counter() - down
            process.send_signal(signal.SIGCONT)
            waited, stopped = map(float, process.communicate("\n", LONG)[0].split())
        finally:
            process.kill()
    around = time.perf_counter() - start
    assert inside / 2 < stopped <= around  # a beat that was due in the meantime is not missing
    assert waited <= around - stopped
