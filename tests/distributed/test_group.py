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


def test_who_hangs_is_named_by_the_first_that_waited() -> None:
    first, hung, _ = in_processes(3, one_hangs, join=False)
    assert hung == "hung"
    assert f"rank 0 of 3 lost the others: [Rank 0]: Ranks {HUNG} failed to pass" in first, first
