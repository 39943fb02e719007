"""Settings that several processes cannot train are refused."""

from __future__ import annotations

from torch import nn

from tests.messages import refused
from vrgcn.distributed.support import check_model


def test_statistics_that_differ_between_processes_are_refused() -> None:
    check_model(nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)))
    check_model(nn.Sequential(nn.BatchNorm1d(2, track_running_stats=False)))
    with refused():
        check_model(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
