"""Tests that are marked as too long for `make test`: `@pytest.mark.soak`."""

from __future__ import annotations

import sys

import pytest


def main() -> None:
    sys.exit(pytest.main(["-m", "soak", "--durations", "0", "--durations-min", "1"]))


if __name__ == "__main__":
    main()
