"""Processes of one training of which one hangs: it is named, within seconds that count.

A part of it: `python -m pytest tests/soak/soak_distributed.py`.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import Store
from torch.distributed.distributed_c10d import _set_pg_timeout

from tests.distributed.processes import in_processes
from tests.waiting import LONG
from vrgcn.distributed import group as module
from vrgcn.distributed.group import RankError, joined

HUNG = 1
# Neither is raced against: who hangs does so until the others have noticed, and the others ask who
# is there one after the other.
NOTICED, ANSWERED = 0.5, 3.0


def one_hangs() -> str:
    """The error in a process whose neighbour stands still."""
    with joined(torch.device("cpu"), LONG) as group:
        group.barrier()
        if group.rank == HUNG:
            group.job.get("noticed")  # waits
            return "hung"
        job, first = group.job, group.first
        _set_pg_timeout(timedelta(seconds=NOTICED))
        module._MONITOR_SECONDS = ANSWERED if first else LONG
        module.dist = InTurn(job, first)
        try:
            group.barrier()
        except RankError as error:
            if first:
                job.set("noticed", "1")
            return str(error)
    return "nobody was missed"


class InTurn:
    """torch.distributed, in which the first process asks who is there once the others answer."""

    def __init__(self, job: Store, first: bool) -> None:
        self.job, self.first = job, first

    def __getattr__(self, name: str) -> Any:
        return getattr(dist, name)

    def monitored_barrier(self, *arguments: Any, **named: Any) -> None:
        if self.first:
            self.job.get("answers")  # waits
        else:
            self.job.set("answers", "1")
        dist.monitored_barrier(*arguments, **named)


def test_who_hangs_is_named_by_the_first_that_waited() -> None:
    first, hung, _ = in_processes(3, one_hangs, join=False)
    assert hung == "hung"
    assert f"rank 0 of 3 lost the others: [Rank 0]: Ranks {HUNG} failed to pass" in first, first


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
