"""What the system does with memory and the pages of files, and tools of lab/ that measure it.

The suite tests what they make of their readings. A part of this:
`python -m pytest tests/soak/soak_measuring.py -k clock`.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from mmap import PAGESIZE
from pathlib import Path

import numpy as np
import pytest
import torch

from lab.bench.memory import training_memory
from lab.harness import stopwatch
from lab.harness.algorithms import ALGORITHMS, Architecture
from lab.harness.memory_limit import (
    DataLimit,
    Ended,
    GroupLimit,
    forget,
    memory_limit,
    run_limited,
)
from lab.harness.stopwatch import ThreadClock
from tests.page_cache import forgotten, pages_in_memory
from tests.waiting import LONG, wait_for
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import note_mapped, read_ahead

MEGA = 1 << 20


def allocate(size: int) -> list[str]:
    return [sys.executable, "-c", f"print(len(bytearray({size})))"]


class Looks:
    """A limit that lets a command end once it was looked at.

    The command prints a line when it is ready, and ends when its input does.
    """

    kind = counts = "none"

    def __init__(self, limit: GroupLimit | None = None) -> None:
        self.limit = limit
        self.prefix = [] if limit is None else limit.prefix
        self.output, self.pipe = os.pipe()
        self.input, self.go = os.pipe()
        self.times: list[float] = []

    def run(self, *command: str) -> Ended:
        try:
            return run_limited(command, self, every=0.01, stdin=self.input, stdout=self.pipe)
        finally:
            for descriptor in (self.output, self.pipe, self.input):
                os.close(descriptor)

    def numbers(self) -> dict[str, int]:
        if len(self.times) < 2:
            ready, _, _ = select.select([self.output], [], [], 0)
            if ready:
                self.times.append(time.perf_counter())
            if len(self.times) == 2:  # this look came after the one that found it ready
                os.close(self.go)
        return {} if self.limit is None else self.limit.numbers()


def test_what_fits_runs_and_what_does_not_is_refused_or_killed():
    with memory_limit(100 * MEGA) as limit:
        assert run_limited(allocate(10 * MEGA), limit).code == 0
        assert run_limited(allocate(300 * MEGA), limit, stderr=-3).code != 0
    assert run_limited(allocate(300 * MEGA), None).code == 0


def test_where_no_group_can_be_made_the_limit_is_of_own_memory_and_says_so(tmp_path):
    with memory_limit(100 * MEGA, groups=tmp_path) as limit:
        assert isinstance(limit, DataLimit)
        assert "NOT counted" in limit.counts
        assert run_limited(allocate(10 * MEGA), limit).code == 0
        assert run_limited(allocate(300 * MEGA), limit, stderr=-3).code == 1  # a MemoryError


def test_a_group_counts_the_pages_of_files_and_is_gone_afterwards(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(64 * MEGA))
    forgotten(file)
    with memory_limit(16 * MEGA) as limit:
        if not isinstance(limit, GroupLimit):
            pytest.skip("no control group can be made here")
        script = 'cat "$0" > /dev/null; echo ready; read line || true'
        ended = Looks(limit).run("sh", "-c", script, str(file))
        numbers = limit.numbers()
    assert ended.code == 0
    assert 8 * MEGA < numbers["peak"] <= 16 * MEGA
    assert numbers["limit_met"] > 0
    assert ended.most["cached"] > 4 * MEGA
    assert not limit.folder.exists()


def test_the_peak_of_a_commands_own_memory_and_its_seconds_are_seen():
    program = "x = bytearray(50 << 20); print(flush=True); open(0).read()"
    looks, start = Looks(), time.perf_counter()
    ended = looks.run(sys.executable, "-c", program)
    around = time.perf_counter() - start
    assert ended.code == 0
    assert 50 * MEGA < ended.most["own"] < 150 * MEGA
    assert looks.times[1] - looks.times[0] <= ended.seconds <= around


def test_forgotten_files_are_on_the_disk_alone(tmp_path):
    file = tmp_path / "deep" / "file"
    file.parent.mkdir()
    file.write_bytes(bytes(MEGA))
    with file.open("rb") as opened:
        try:
            os.preadv(opened.fileno(), [bytearray(4096)], 0, os.RWF_NOWAIT)
        except OSError:
            pytest.skip("the file system cannot tell what is in memory")
    assert pages_in_memory(file)

    def gone() -> bool:
        forget(tmp_path)
        return not pages_in_memory(file)

    # A page that another processor is just at work on stays that once.
    wait_for(gone, f"the pages of {file} to leave memory")
    assert file.read_bytes() == bytes(MEGA)


def test_the_peak_holds_the_features_and_the_tables_and_little_more(tmp_path):
    nodes, width = 50_000, 250  # 50 MB of features, as much again of P X
    generator = torch.Generator().manual_seed(0)
    graph = Graph(
        torch.randint(nodes, (2, 4 * nodes), generator=generator),
        torch.randn(nodes, width, generator=generator),
        torch.randint(2, (nodes,), generator=generator),
        train=torch.arange(nodes),
    )
    save_graph(graph, tmp_path / "graph")
    memory = training_memory(
        tmp_path / "graph",
        ALGORITHMS["CVD+PP"],
        Architecture(hidden=8, batch=64),
        steps=2,
        threads=1,
        inductive=False,
    )
    assert memory.features == 50_000_000
    assert memory.tables > 50_000_000
    assert memory.held < memory.peak < memory.held + 150_000_000
    assert memory.as_dict()["excess"] == memory.peak - memory.held


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


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
            time.sleep(2 * stopwatch._STOPPED)  # shorter stops do not count; a longer does no harm
            inside = time.perf_counter() - down
            process.send_signal(signal.SIGCONT)
            waited, stopped = map(float, process.communicate("\n", LONG)[0].split())
        finally:
            process.kill()
    around = time.perf_counter() - start
    assert inside / 2 < stopped <= around  # a beat that was due in the meantime is not missing
    assert waited <= around - stopped


def test_pages_come_into_memory_and_others_do_not(tmp_path):
    file = tmp_path / "table.bin"
    file.write_bytes(bytes(512 * PAGESIZE))
    forgotten(file)
    table = torch.from_file(str(file), shared=True, size=128 * PAGESIZE, dtype=torch.float32)
    table = table.view(512, -1)
    with read_ahead(note_mapped(table), torch.tensor([300, 17, 301])):
        # Asking for pages does not wait for the disk.
        wait_for(lambda: len(pages_in_memory(file)) >= 3, "three pages")
        assert pages_in_memory(file) == [17, 300, 301]
        table[100].sum()  # not named: it comes, and alone
        assert pages_in_memory(file) == [17, 100, 300, 301]
    table[200].sum()  # from now on as the system likes
    wait_for(lambda: {100, 199, 200, 201} <= set(pages_in_memory(file)), "pages around another")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
