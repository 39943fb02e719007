"""How often checkpoints are written."""

from __future__ import annotations

import pytest

from vrgcn import TrainConfig
from vrgcn.training.interval import Interval


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "10d", "0m", "s", "m", "1 m"])
def test_an_interval_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="checkpoint_every"):
        TrainConfig(checkpoint_every=text)


def test_intervals_are_epochs_or_minutes() -> None:
    assert Interval.parse(3) == Interval(epochs=3)
    assert Interval.parse("10m") == Interval(seconds=600.0)
    assert Interval.parse("0.5m") == Interval.parse("30s") == Interval(seconds=30.0)
    assert Interval.parse("2h") == Interval(seconds=7200.0)
    assert Interval.parse("0") == Interval()
    assert Interval.parse("auto") == Interval(seconds=300.0, share=0.02)
