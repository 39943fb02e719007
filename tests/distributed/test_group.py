"""Processes agree which start of all of them this is, and one that does not answer is named."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch.distributed import HashStore

from tests.distributed.processes import in_processes
from tests.messages import refused
from tests.waiting import LONG, wait_for
from vrgcn.distributed import group as module
from vrgcn.distributed.group import Group, RankError, _agreed_attempt, joined

LATE = 1


def leaves_early() -> tuple[bool, int, int]:
    """Whether rows that nobody asked for were here when the group had ended, how many they are,
    and how many are left."""
    with joined(torch.device("cpu"), LONG) as group:
        if group.rank == LATE:
            group.job.get("left")  # waits
        arriving = group.exchange(torch.ones(4, 2), [2, 2], [2, 2], wait=False)
        group.job.set("left", "1")
    return arriving.work is None, int(arriving.received.sum()), len(group.under_way)


def test_what_is_under_way_is_waited_for_before_the_group_ends() -> None:
    assert in_processes(2, leaves_early, join=False) == [(True, 8, 0)] * 2


@pytest.mark.parametrize("missing", ["[Rank 0]: Ranks 1 failed to pass\nmore", None])
def test_where_the_processes_stop_answering_the_others_are_asked_who_is_missing(
    monkeypatch, missing: str | None
) -> None:
    """tests/soak/soak_distributed.py has a process that really hangs."""
    asked = []

    def all_reduce(values: torch.Tensor) -> None:
        raise RuntimeError("Timed out waiting for recv")

    def monitored_barrier(group: object, patience: timedelta, *, wait_all_ranks: bool) -> None:
        asked.append((group, patience.total_seconds(), wait_all_ranks))
        if missing:
            raise RuntimeError(missing)

    pretended = SimpleNamespace(
        all_reduce=all_reduce,
        monitored_barrier=monitored_barrier,
        DistBackendError=dist.DistBackendError,
    )
    monkeypatch.setattr(module, "dist", pretended)
    group = Group(0, 3, torch.device("cpu"), monitor="the second group")
    with pytest.raises(RankError) as error:
        group.barrier()
    told = "[Rank 0]: Ranks 1 failed to pass" if missing else "Timed out waiting for recv"
    assert str(error.value) == f"rank 0 of 3 lost the others: {told}"
    assert asked == [("the second group", module._MONITOR_SECONDS, True)]


def attempts_under_other_counts() -> list[int]:
    """The attempts of three starts, of which torchrun counts none on one machine; in the last, the
    machines have changed places."""
    rank, found = int(os.environ["RANK"]), []
    for start in range(3):
        os.environ["TORCHELASTIC_RESTART_COUNT"] = str(start * rank)
        os.environ["RANK"] = str(1 - rank if start == 2 else rank)
        with joined(torch.device("cpu"), LONG) as group:
            assert group.broadcast(group.attempt) == group.attempt
            found.append(group.attempt)
            assert group.noted("first") == (start > 0)
            group.barrier()
            if start == 0:
                group.note("first")
    return found


def test_processes_agree_on_the_attempt_whatever_torchrun_counts() -> None:
    assert in_processes(2, attempts_under_other_counts, join=False) == [[1, 2, 3]] * 2


class Looked(HashStore):
    """looks: how often it was asked whether it has some keys"""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def check(self, keys: list[str]) -> bool:
        self.looks += 1
        return super().check(keys)


def test_a_process_that_died_is_not_taken_for_one_that_comes() -> None:
    store = Looked()
    store.set("rank 1", "died before it was answered")
    store.set("rank 2", "died in the first attempt")
    store.set("heard by died in the first attempt", "1")
    store.add("attempts", 1)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(_agreed_attempt, store, 0, 3, LONG)
        wait_for(lambda: store.looks > 8, "two looks at each of two ranks, of two questions each")
        assert not first.done()
        others = [pool.submit(_agreed_attempt, store, rank, 3, LONG) for rank in (1, 2)]
        assert [one.result(LONG) for one in (first, *others)] == [2, 2, 2]


def test_a_process_that_does_not_come_is_named() -> None:
    store = HashStore()
    store.set_timeout(timedelta(seconds=0.1))
    with refused(RankError):
        _agreed_attempt(store, 1, 3, 0.1)
    with refused(RankError):
        _agreed_attempt(store, 0, 3, 0.1)
