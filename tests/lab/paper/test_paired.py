"""The paired test over seeds, against SciPy's own and by what it must tell apart."""

from __future__ import annotations

import pytest
from scipy.stats import ttest_rel

from lab.paper.paired import compare


def by_seed(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_p_is_that_of_the_one_sided_paired_t_test():
    first, second = [0.52, 0.55, 0.51, 0.58], [0.5, 0.51, 0.52, 0.5]
    for below, alternative in ((False, "greater"), (True, "less")):
        found = compare(by_seed(*first), by_seed(*second), below=below)
        assert found is not None
        expected = ttest_rel(first, second, alternative=alternative).pvalue
        assert found.p == pytest.approx(expected)
        assert found.difference == pytest.approx(0.0325)


def test_what_the_seed_moves_in_both_does_not_hide_a_difference():
    spread = [0.1, 0.5, 0.9, 1.7]
    above = [value + 0.01 + 1e-4 * place for place, value in enumerate(spread)]
    assert compare(by_seed(*above), by_seed(*spread)).differs is True
    assert compare(by_seed(*spread), by_seed(*above)).differs is False
    assert compare(by_seed(*spread), by_seed(*above), below=True).differs is True
    shuffled = [above[place] for place in (2, 0, 3, 1)]
    assert compare(by_seed(*shuffled), by_seed(*spread)).differs is False


def test_only_seeds_that_both_have_count():
    found = compare({0: 1.0, 1: 2.0, 5: 100.0}, {0: 0.5, 1: 1.5, 6: -100.0})
    assert (found.first, found.second, found.seeds) == (1.5, 1.0, 2)
    assert compare({0: 1.0}, {1: 1.0}) is None


def test_one_run_decides_nothing_and_equal_differences_count_by_their_signs():
    alone = compare({0: 2.0}, {0: 1.0})
    assert (alone.differs, alone.p_text) == (None, "1 run")
    assert (alone.shown, alone.refuted) == (None, None)
    assert compare(by_seed(2.0, 3.0), by_seed(1.0, 2.0)).p == 0.25
    assert compare(by_seed(1.0, 2.0), by_seed(1.0, 2.0)).p == 1
    ten, less = by_seed(*range(10)), by_seed(*(value - 1 for value in range(10)))
    assert compare(ten, less).differs is True


def test_few_runs_that_show_nothing_say_nothing_unless_they_lean_the_other_way():
    above, exact = by_seed(0.50, 0.30, 0.55), by_seed(0.10, 0.11, 0.12)
    found = compare(above, exact)
    assert found.differs is False  # five times as much, and p = 0.03
    assert (found.shown, found.refuted) == (None, None)
    found = compare(above, exact, below=True)
    assert (found.shown, found.refuted) == (None, True)
    five = by_seed(0.1, -0.1, 0.2, -0.2, 0.01)
    found = compare(five, dict.fromkeys(range(5), 0.0))
    assert (found.leans, found.shown, found.refuted) == (True, False, True)


def test_p_is_written_in_two_digits_or_as_very_small():
    close = compare(by_seed(2.0, 3.0, 4.0), by_seed(1.0, 2.0001, 3.0))
    assert close.p_text == "p < 0.0001"
    assert compare(by_seed(1.0, 2.0, 3.0), by_seed(1.1, 1.8, 3.0)).p_text == "p = 0.37"
