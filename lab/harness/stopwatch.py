"""Measures where the time of a process goes, and how much of it was spent waiting for the disk.

Of a stretch of time the system knows for how long the thread computed, and for how long it could
have but another thread had the processor. What is left it slept, and a thread that computes and
never sleeps by itself sleeps where a page has to come from the disk, or where there is no room for
one before another was written. So

    waited = wall − cpu − queued − stopped,

where a process may have been stopped from outside (SIGSTOP, Ctrl-Z), which a second thread notices:
it wakes up every tenth of a second, and did not.

Freeing pages and copying them are work of the kernel for the thread: they are in `cpu`, and
`system` is the part of it that the kernel took. One thread is looked at, the one that has the
stopwatch; with one thread for computing (OMP_NUM_THREADS=1) it does everything.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, TypeVar

T = TypeVar("T")
_BLOCK = 512  # bytes, in which the kernel counts what is read
_BEAT = 0.1  # seconds
_STOPPED = 0.5  # seconds: shorter ones do not count
REST = "compute"  # the time of a phase outside all of its parts


@dataclass(frozen=True)
class Spent:
    """Seconds: wall, cpu, system (a part of cpu), queued and stopped; pages that had to be read
    before the thread could continue, and bytes that were read for it."""

    wall: float = 0.0
    cpu: float = 0.0
    system: float = 0.0
    queued: float = 0.0
    stopped: float = 0.0
    major_faults: int = 0
    read_bytes: int = 0

    @property
    def waited(self) -> float:
        """Seconds asleep. Clocks are read one after the other, so the result is clipped at zero."""
        return max(0.0, self.wall - self.cpu - self.queued - self.stopped)

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(a + b for a, b in zip(_values(self), _values(other), strict=True)))

    def __sub__(self, other: Spent) -> Spent:
        return Spent(*(a - b for a, b in zip(_values(self), _values(other), strict=True)))

    def as_dict(self) -> dict[str, float]:
        return vars(self) | {"waited": self.waited}


def _values(spent: Spent) -> list[Any]:
    return [getattr(spent, field.name) for field in fields(spent)]


class _Pulse:
    """Detects stops of the process. stopped: seconds in which the whole process stood still, once
    they are over"""

    def __init__(self) -> None:
        self.stopped = 0.0
        begun = threading.Event()
        threading.Thread(target=self._beat, args=(begun,), daemon=True).start()
        begun.wait()  # a stop before the first beat would not be noticed

    def _beat(self, begun: threading.Event) -> None:
        schedule = _open_schedule()
        last, waited = time.perf_counter(), _queued(schedule)
        begun.set()
        while True:
            time.sleep(_BEAT)
            now, queued = time.perf_counter(), _queued(schedule)
            self.stopped += stopped_within(now - last, queued - waited)
            last, waited = now, queued


def stopped_within(wall: float, queued: float) -> float:
    """Return the seconds for which a process was stopped between two beats of its pulse.

    wall: seconds between the beats; queued: seconds in which the pulse was ready to run
    """
    missing = wall - _BEAT - queued
    # Shorter times are the pulse's own waiting, also for the interpreter.
    return missing if missing > _STOPPED else 0.0


def _open_schedule() -> int:
    """Open the schedule statistics of the calling thread; each reading starts at the beginning of
    the file."""
    return os.open("/proc/thread-self/schedstat", os.O_RDONLY)


def _queued(schedule: int) -> float:
    """Return the seconds in which the thread was ready to run but did not have the processor."""
    return int(os.pread(schedule, 100, 0).split()[1]) / 1e9


class ThreadClock:
    """Returns the time that its thread has spent since some moment, as the system counts."""

    def __init__(self) -> None:
        self._schedule = _open_schedule()
        self._pulse = _Pulse()

    def __call__(self) -> Spent:
        used = resource.getrusage(resource.RUSAGE_THREAD)
        return Spent(
            time.perf_counter(),
            time.thread_time(),
            used.ru_stime,
            _queued(self._schedule),
            self._pulse.stopped,
            used.ru_majflt,
            used.ru_inblock * _BLOCK,
        )


class Stopwatch:
    """Time by phase, and in it by part. If a part begins inside another, its time counts only for
    itself, so that all parts add up to the whole.

    clock: returns the time spent until now; None: the clock of this thread
    spent: by (phase, part)
    """

    def __init__(self, clock: Callable[[], Spent] | None = None) -> None:
        self.spent: dict[tuple[str, str], Spent] = {}
        self._stack = [("other", REST)]
        self._clock = ThreadClock() if clock is None else clock
        self._last = self._clock()

    @property
    def current(self) -> str:
        """The current phase."""
        return self._stack[-1][0]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Enter a phase, such as training or evaluation."""
        with self._inside((name, REST)):
            yield

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Enter a part of the current phase."""
        with self._inside((self._stack[-1][0], name)):
            yield

    def stop(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the time spent until now, by phase and part."""
        self._credit()
        told: dict[str, dict[str, dict[str, float]]] = {}
        for (phase, part), spent in self.spent.items():
            told.setdefault(phase, {})[part] = spent.as_dict()
        return told

    def iterate(self, make: Callable[[], Iterator[T]], inside: Any) -> Iterator[T]:
        """Yield the items of an iterator and count the time that it takes in `inside()`, a phase or
        a part."""
        with inside():
            iterator = make()
        while True:
            with inside():
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    @contextmanager
    def _inside(self, key: tuple[str, str]) -> Iterator[None]:
        self._credit()
        self._stack.append(key)
        try:
            yield
        finally:
            self._credit()
            self._stack.pop()

    def _credit(self) -> None:
        """Add the time since the last call to the current phase and part."""
        now = self._clock()
        key = self._stack[-1]
        self.spent[key] = self.spent.get(key, Spent()) + (now - self._last)
        self._last = now
