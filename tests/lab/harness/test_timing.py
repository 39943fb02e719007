"""Turns, medians and ratios."""

from __future__ import annotations

import pytest

from lab.harness.timing import Spread, exponent, ratio, take_turns
from tests.messages import refused


def test_a_spread_is_the_median_with_the_quartiles():
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)
    assert Spread(3.0, 2.0, 4.0).times(10).text(1) == "30.0 (20.0–40.0)"


def test_a_ratio_is_formed_turn_by_turn():
    # Both are slowed tenfold in the second turn: medians would say 10 / 1.
    assert ratio([2.0, 20.0, 2.0], [1.0, 10.0, 1.0]) == Spread(2.0, 2.0, 2.0)
    with pytest.raises(ValueError, match="longer"):
        ratio([1.0], [1.0, 2.0])


def test_turns_rotate_and_the_first_is_not_kept():
    calls: list[str] = []

    def timer(name):
        def take() -> float:
            calls.append(name)
            return float(len(calls))

        return take

    times = take_turns({name: timer(name) for name in "abc"}, range(3))
    assert "".join(calls) == "abc" + "abc" + "bca" + "cab"
    assert times == {"a": [4.0, 9.0, 11.0], "b": [5.0, 7.0, 12.0], "c": [6.0, 8.0, 10.0]}


def test_without_warming_up_every_turn_is_kept():
    assert take_turns({"a": lambda: 1.0}, range(2), warm_up=False) == {"a": [1.0, 1.0]}


def test_the_exponent_is_the_power_of_the_size():
    sizes = [10, 20, 40, 80]
    assert exponent(sizes, [3 * n**1.5 for n in sizes]) == pytest.approx(1.5)
    assert exponent(sizes, [7.0] * 4) == pytest.approx(0.0, abs=1e-12)
    with refused():
        exponent([3, 3], [1, 2])
