"""Durations."""

from __future__ import annotations

import pytest

from vrgcn.training.wording import seconds_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.004, "0.00 s"),
        (1.234, "1.23 s"),
        (99.9, "99.90 s"),
        (100, "1 min 40 s"),
        (3723, "62 min 3 s"),
    ],
)
def test_seconds_become_minutes_from_a_hundred_on(seconds, text):
    assert seconds_text(seconds) == text
