"""Every test draws the same random numbers, whatever ran before it."""

from __future__ import annotations

import random

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
