"""All tests draw the same random numbers each time, and a sleep in one says why it is there."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("turn", [1, 2])
def test_random_numbers_do_not_depend_on_the_tests_before(turn: int) -> None:
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(1)))
    assert np.random.rand() == np.random.RandomState(1).rand()
    assert random.random() == random.Random(1).random()


def test_hypothesis_tries_the_same_examples_each_time() -> None:
    tried: list[int] = []

    @given(st.integers())
    def remember(number: int) -> None:
        tried.append(number)

    remember()
    first = tried.copy()
    tried.clear()
    remember()
    assert len(set(first)) > 10
    assert tried == first
    assert settings().deadline is None


def test_every_sleep_says_why() -> None:
    """A test that sleeps until something has happened fails where it takes longer: see
    tests/waiting.py."""
    silent = [
        f"{path}:{number}"
        for path in Path(__file__).parent.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\btime\.sleep\([^#]*$", line)
    ]
    assert not silent
