"""The processes that train together, on `torch.distributed`: their ranks and their communication.

torchrun starts the processes, gives each its rank in environment variables, and restarts all of
them when one dies. gloo transfers tensors of the CPU, NCCL those of GPUs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from vrgcn.files.mistakes import InputError

_MONITOR_SECONDS = 20.0  # for the processes to answer, after a timeout, that they are alive
_LOOK_SECONDS = 0.05  # between two checks of which processes have come


class RankError(ConnectionError):
    """Raised when another process died or does not answer; the message names it."""


@dataclass
class Group:
    """The group of processes.

    rank, size: the number of this process, and how many processes there are
    device: where tensors must lie to be exchanged
    sent: bytes that this process sent to others so far, by purpose
    monitor: a second group, used to ask which processes are alive when the first has failed
    store: torchrun's store, in which processes find each other
    job: the same store, for entries that stay valid when all processes are restarted
    attempt: how often this job's processes have been started, including this time
    under_way: transfers that were started and have not been waited for
    """

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    sent: dict[str, int] = field(default_factory=dict)
    monitor: Any = None
    store: Any = None
    job: Any = None
    attempt: int = 1
    under_way: list[Arriving] = field(default_factory=list)

    @property
    def first(self) -> bool:
        """True if this process writes files and prints."""
        return self.rank == 0

    def sum(self, values: Tensor, what: str = "sums") -> Tensor:
        """Sum the tensors of all processes, in place; each process gets the same bits."""
        if self.size > 1:
            # In a ring, each process sends all pieces but one, first to be added and then to be
            # distributed.
            size = values.numel() * values.element_size()
            self._count(what, 2 * (self.size - 1) * size // self.size)
            with self._named():
                dist.all_reduce(values)
        return values

    def total(self, *numbers: float) -> list[float]:
        """Return sums over the processes."""
        values = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        return [float(value) for value in self.sum(values)]

    def exchange(
        self,
        rows: Tensor,
        counts: list[int],
        coming: list[int],
        what: str = "rows",
        *,
        wait: bool = True,
    ) -> Arriving:
        """Exchange rows (rows, ...) of any type, all-to-all; rows for process 0 come first.

        counts: rows for each process; coming: rows that each sends to us
        """
        received = rows.new_empty((sum(coming), *rows.shape[1:]))
        size = rows[:1].numel() * rows.element_size() if len(rows) else 0
        self._count(what, size * (sum(counts) - counts[self.rank]))
        work = None
        if self.size == 1:
            received.copy_(rows)
        else:
            with self._named():
                work = dist.all_to_all_single(received, rows, coming, counts, async_op=True)
        arriving = Arriving(self, received, coming, work, rows)
        self.under_way.append(arriving)
        if wait:
            arriving.rows()
        return arriving

    def counts(self, numbers: Tensor) -> Tensor:
        """Exchange (processes, columns) integers, one row for each process; return the rows meant
        for us."""
        return self.start_counts(numbers).rows()

    def start_counts(self, numbers: Tensor) -> Arriving:
        """Start the exchange of `counts`; the caller waits for the answer later."""
        ones = [1] * self.size
        return self.exchange(numbers.to(self.device), ones, ones, "counts", wait=False)

    def gather(self, rows: Tensor) -> list[Tensor]:
        """Return the rows (rows, ...) of all processes in the first process; nothing in the
        others."""
        numbers = torch.zeros((self.size, 1), dtype=torch.int64)
        numbers[0] = len(rows)
        coming = self.counts(numbers)[:, 0].tolist()
        outgoing = [len(rows), *[0] * (self.size - 1)]
        gathered = self.exchange(rows.to(self.device), outgoing, coming, "gather").rows()
        return list(gathered.split(coming)) if self.first else []

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value in all processes: a small plain Python value."""
        box = [value]
        if self.size > 1:
            with self._named():
                dist.broadcast_object_list(box, device=self.device)
        return box[0]

    def everybody(self, value: Any) -> list[Any]:
        """Return a small plain value of each process."""
        values: list[Any] = [value] * self.size
        if self.size > 1:
            with self._named():
                dist.all_gather_object(values, value)
        return values

    def barrier(self) -> None:
        """Wait for all processes."""
        self.total(0.0)

    def by_first(self, function: Callable[[], Any]) -> Any:
        """Return the result, small and plain, of a function that only the first process calls. All
        processes raise its error."""
        result: tuple[bool, Any] = (True, None)
        if self.first:
            try:
                result = (True, function())
            except (InputError, OSError) as error:
                result = (False, str(error))
        good, value = self.broadcast(result)
        if not good:
            raise InputError(value)
        return value

    def note(self, what: str) -> None:
        """Record for later starts of this job that something was done."""
        if self.job is not None:
            self.job.set(f"note {what}", "done")

    def noted(self, what: str) -> bool:
        """Return True if this job has done it, now or before its processes were restarted."""
        return self.job is not None and bool(self.job.check([f"note {what}"]))

    def reports(self, error: BaseException) -> bool:
        """Return True if this process should report the error: the one that failed first does. A
        process that only lost a peer waits for the one that failed."""
        if self.store is None:
            return True
        if isinstance(error, RankError):
            time.sleep(1 if self.first else 3)
        try:
            return int(self.store.add("failed", 1)) == 1
        except RuntimeError:  # torchrun itself is gone
            return True

    def tells(self, what: str) -> bool:
        """Return True if this process should report what all processes may find: the first one
        does."""
        if self.store is None:
            return True
        try:
            return int(self.store.add(f"told {what}", 1)) == 1
        except RuntimeError:  # torchrun itself is gone
            return True

    def leave(self) -> None:
        """End the group. Wait for transfers under way: if a gloo thread releases a tensor while the
        interpreter ends, it aborts the process."""
        for arriving in self.under_way:
            arriving.rows()
        dist.destroy_process_group()
        self.monitor = self.store = self.job = None

    def _count(self, what: str, size: int) -> None:
        self.sent[what] = self.sent.get(what, 0) + size

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Turn a lost connection or a timeout into an error that names the process at fault."""
        try:
            yield
        except (RuntimeError, dist.DistBackendError) as error:
            raise RankError(self._who(error)) from None

    def _who(self, error: Exception) -> str:
        try:
            waiting = timedelta(seconds=_MONITOR_SECONDS)
            dist.monitored_barrier(self.monitor, waiting, wait_all_ranks=True)
        except (RuntimeError, ValueError) as missing:
            named = str(missing).splitlines()[0]
            return f"rank {self.rank} of {self.size} lost the others: {named}"
        return f"rank {self.rank} of {self.size} lost the others: {error}"


@dataclass
class Arriving:
    """Rows on their way. coming: how many from each process"""

    group: Group
    received: Tensor
    coming: list[int]
    work: Any
    kept: Tensor | None  # tensors being sent must stay alive until then

    def rows(self) -> Tensor:
        """Return all rows, those of process 0 first; waits until they have arrived."""
        if self.work is not None:
            with self.group._named():
                self.work.wait()
        self.work = self.kept = None
        self.group.under_way = [one for one in self.group.under_way if one is not self]
        return self.received


def under_torchrun() -> bool:
    """Return True if this process was started as one of several."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


@contextmanager
def joined(device: torch.device, timeout: float) -> Iterator[Group]:
    """Yield the group of the processes that torchrun started.

    timeout: seconds to wait for a process that does not answer
    """
    backend = "gloo" if device.type == "cpu" else f"cpu:gloo,{device.type}:nccl"
    if device.type != "cpu":  # one GPU for each process of a machine
        local = int(os.environ.get("LOCAL_RANK", "0"))
        device = torch.device(device.type, local if device.index is None else device.index)
    patience = timedelta(seconds=timeout)
    try:
        shared, rank, size = next(rendezvous("env://", timeout=patience))
        job = dist.PrefixStore("vrgcn", shared)  # type: ignore[attr-defined]
        attempt = _agreed_attempt(job, rank, size, timeout)
        # Restarted processes must not find the addresses of those that died.
        store = dist.PrefixStore(f"vrgcn-{attempt}", shared)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=patience)
        monitor = dist.new_group(backend="gloo", timeout=patience)
    except RuntimeError as error:
        named = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")}
        raise RankError(
            f"rank {named['RANK']} of {named['WORLD_SIZE']} could not join the others by "
            f"{named['MASTER_ADDR']}: {str(error).splitlines()[0]}"
        ) from None
    group = Group(rank, size, device, monitor=monitor, store=store, job=job, attempt=attempt)
    del monitor, store, job, shared  # they end when the group releases them
    yield group
    group.leave()  # not after an error: others may not answer any more


def _agreed_attempt(job: Any, rank: int, size: int, seconds: float) -> int:
    """Return the number of this start of all processes: the same in each, and new for each start.

    torchrun's own count of restarts does not work: each machine's torchrun counts only the deaths
    of its own processes. The store outlives a start, so an entry may be from a process that died:
    only a process that answers with a freshly drawn name has come.
    """
    if rank:
        return _heard_attempt(job, rank, size)
    attempt = int(job.add("attempts", 1))
    missing, until = list(range(1, size)), time.monotonic() + seconds
    while True:
        missing = [other for other in missing if not _has_come(job, other, attempt)]
        if not missing:
            return attempt
        if time.monotonic() > until:
            raise RankError(
                f"rank 0 of {size} waited {seconds:g} seconds for ranks "
                f"{', '.join(map(str, missing))}, which did not come: look at what torchrun "
                "printed on their machines"
            )
        time.sleep(_LOOK_SECONDS)


def _heard_attempt(job: Any, rank: int, size: int) -> int:
    """Return the attempt that the first process sends to a process that has just come."""
    name = uuid4().hex
    job.set(f"rank {rank}", name)
    try:
        attempt = job.get(f"attempt of {name}").decode()  # waits
    except RuntimeError as error:
        raise RankError(
            f"rank {rank} of {size} heard nothing of rank 0 by {os.environ.get('MASTER_ADDR')}, "
            "whose machine is the first in torchrun's order: look at what torchrun printed there "
            f"({str(error).splitlines()[0]})"
        ) from None
    job.set(f"heard by {name}", attempt)
    return int(attempt)


def _has_come(job: Any, rank: int, attempt: int) -> bool:
    """Send the attempt to the process of this rank if it has come; return True once it has
    confirmed it."""
    if not job.check([f"rank {rank}"]):
        return False
    name = job.get(f"rank {rank}").decode()
    job.set(f"attempt of {name}", str(attempt))
    heard = f"heard by {name}"
    return bool(job.check([heard])) and int(job.get(heard)) == attempt
