"""Sizes with units."""

from __future__ import annotations

import pytest

from vrgcn.files.sizes import bytes_text


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
