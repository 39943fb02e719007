"""Numbers as texts."""

from __future__ import annotations

import pytest

from vrgcn.tasks.spread import number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(0.0123456, "0.012346"), (8_893.64, "8,893.6"), (41_234.6, "41,235"), (7.0, "7")],
        *[(-1.7e9, "-1,700,000,000"), (1e20, "1e+20"), (0.0, "0")],
    ],
)
def test_numbers_are_written_for_people(value: float, text: str) -> None:
    assert number_text(value) == text
