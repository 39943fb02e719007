"""Settings that several processes cannot train are refused."""

from __future__ import annotations

import pytest
from torch import nn

from vrgcn.distributed.support import check_model


def test_statistics_that_differ_between_processes_are_refused() -> None:
    check_model(nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)))
    check_model(nn.Sequential(nn.BatchNorm1d(2, track_running_stats=False)))
    with pytest.raises(ValueError, match=r"1 \(BatchNorm1d\) keeps statistics .* use LayerNorm"):
        check_model(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
