"""Sizes with units."""

from __future__ import annotations

import pytest

from vrgcn.files.wording import bytes_text, seconds_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1 kB"),
        (1_540_000, "1.54 MB"),
        (2.5e9, "2.5 GB"),
        (1.234e12, "1,234 GB"),
    ],
)
def test_bytes_are_in_the_unit_that_leaves_at_most_three_digits_before_the_point(size, text):
    assert bytes_text(size) == text


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
