"""Where time goes, and what of it is waiting."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from lab.bench.memory_limit import forget
from lab.bench.stopwatch import Spent, Stopwatch


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_sleeping_is_waiting_and_computing_is_not():
    watch = Stopwatch()
    with watch.phase("sleep"):
        time.sleep(0.1)
    with watch.phase("work"):
        busy(0.1)
    told = watch.stop()
    assert told["sleep"]["compute"]["waited"] > 0.08
    assert told["sleep"]["compute"]["cpu"] < 0.02
    assert told["work"]["compute"]["cpu"] >= 0.1
    # Whatever else the machine did meanwhile had the processor, or was not before us in the queue.
    assert told["work"]["compute"]["waited"] < 0.05


def test_a_part_takes_its_time_out_of_the_phase_and_all_of_them_are_the_whole():
    outer = time.perf_counter()
    watch = Stopwatch()
    inner = time.perf_counter()
    with watch.phase("train"):
        busy(0.02)
        with watch.part("gather"):
            busy(0.05)
            with watch.phase("evaluate"), watch.part("gather"):
                busy(0.08)
        assert watch.current == "train"
    inside = time.perf_counter() - inner
    told = watch.stop()
    around = time.perf_counter() - outer
    whole = sum(part["wall"] for phase in told.values() for part in phase.values())
    assert inside <= whole <= around
    cpu = {phase: {part: s["cpu"] for part, s in parts.items()} for phase, parts in told.items()}
    assert cpu["train"]["compute"] == pytest.approx(0.02, abs=0.01)
    assert cpu["train"]["gather"] == pytest.approx(0.05, abs=0.01)
    assert cpu["evaluate"]["gather"] == pytest.approx(0.08, abs=0.01)


def test_of_an_iterator_the_making_counts_and_not_what_is_done_between():
    watch = Stopwatch()

    def items() -> Iterator[int]:
        for item in range(3):
            busy(0.02)
            yield item

    found = []
    with watch.phase("train"):
        for item in watch.iterate(items, lambda: watch.part("plan")):
            busy(0.01)
            found.append(item)
    told = watch.stop()["train"]
    assert found == [0, 1, 2]
    assert told["plan"]["cpu"] == pytest.approx(0.06, abs=0.01)
    assert told["compute"]["cpu"] == pytest.approx(0.03, abs=0.01)


def test_pages_that_come_from_the_disk_are_counted(tmp_path):
    np.save(tmp_path / "table.npy", np.arange(1 << 20))
    table = np.load(tmp_path / "table.npy", mmap_mode="r")
    forget(tmp_path)  # now: what reads the header reads on
    watch = Stopwatch()
    with watch.phase("cold"):
        table.sum()
    with watch.phase("warm"):
        table.sum()
    told = watch.stop()
    assert told["cold"]["compute"]["read_bytes"] >= table.nbytes
    assert told["cold"]["compute"]["major_faults"] > 0
    assert told["warm"]["compute"]["read_bytes"] == 0


def test_waiting_is_what_neither_computing_nor_the_queue_explains():
    assert Spent(wall=5.0, cpu=2.0, queued=1.0).waited == 2.0
    assert Spent(wall=5.0, cpu=2.0, queued=1.0, stopped=0.5).waited == 1.5
    assert Spent(wall=1.0, cpu=1.1).waited == 0.0


def test_a_process_that_was_stopped_from_outside_did_not_wait():
    program = (
        "import time; from lab.bench.stopwatch import Stopwatch; watch = Stopwatch()\n"
        "with watch.phase('sleep'): print('ready', flush=True); time.sleep(2.2)\n"
        "time.sleep(0.2); told = watch.stop()\n"
        "stopped = [phase['compute']['stopped'] for phase in told.values()]\n"
        "print(told['sleep']['compute']['waited'], sum(stopped))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)
        process.send_signal(signal.SIGCONT)
        waited, stopped = map(float, process.stdout.readline().split())
    assert stopped == pytest.approx(1.2, abs=0.3)
    assert waited == pytest.approx(1.0, abs=0.4)
