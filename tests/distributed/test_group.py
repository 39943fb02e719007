"""A process that does not answer is named."""

from __future__ import annotations

import time

import torch

from tests.distributed.processes import in_processes
from vrgcn.distributed import group as module
from vrgcn.distributed.group import RankError, joined

HUNG = 1
TIMEOUT = 2.0


def one_hangs() -> str:
    """The error in a process whose neighbour stands still."""
    module._MONITOR_SECONDS = TIMEOUT
    try:
        with joined(torch.device("cpu"), TIMEOUT) as group:
            group.barrier()
            if group.rank == HUNG:
                time.sleep(4 * TIMEOUT)
                return "hung"
            group.barrier()
    except RankError as error:
        return str(error)
    return "nobody was missed"


def leaves_early() -> tuple[bool, int, int]:
    """Whether rows that nobody asked for were here when the group had ended, how many they are,
    and how many are left."""
    with joined(torch.device("cpu"), 60.0) as group:
        if group.rank == HUNG:
            time.sleep(0.5)
        arriving = group.exchange(torch.ones(4, 2), [2, 2], [2, 2], wait=False)
    return arriving.work is None, int(arriving.received.sum()), len(group.under_way)


def test_what_is_under_way_is_waited_for_before_the_group_ends() -> None:
    assert in_processes(2, leaves_early, join=False) == [(True, 8, 0)] * 2


def test_who_hangs_is_named_by_the_first_that_waited() -> None:
    first, hung, _ = in_processes(3, one_hangs, join=False)
    assert hung == "hung"
    assert f"rank 0 of 3 lost the others: [Rank 0]: Ranks {HUNG} failed to pass" in first, first
