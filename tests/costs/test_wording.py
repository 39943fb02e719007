"""The predicted cost of a run, in words."""

from __future__ import annotations

import pytest

from vrgcn.costs.epoch_cost import Cost, cost_line, cost_rows, counted, exact_advice

CHEAP = Cost(1000, 2000, {"edges": 1_000_000, "features": 2_000_000, "weights": 100})
DEAR = Cost(9000, 500, {"edges": 1_000_000})


def test_a_line_and_a_row_say_nodes_neighbours_and_memory() -> None:
    line = cost_line("cv", CHEAP)
    assert line.startswith(
        "an epoch by cv computes about 1,000 nodes and averages 2,000 neighbours"
    )
    assert "about 3 MB of memory (features 2 MB, edges 1 MB)" in line
    assert "an epoch computes about 7 nodes and looks at no" in cost_line("cv", Cost(7, 0, {}))
    assert "disk" not in line
    on_disk = Cost(7, 9, {"weights": 100}, files={"histories": 5_000_000, "exact evaluation": 10})
    assert cost_line("cv", on_disk).endswith("Python and PyTorch, and 5 MB of disk for tables")
    assert cost_rows({"cv": CHEAP}) == [("cv", "1,000", "2,000", "3 MB")]


def test_exact_training_is_advised_where_it_costs_hardly_more() -> None:
    near = Cost(1400, 10, {})
    assert 'try estimator="exact", which costs hardly more' in str(
        exact_advice("cv", {"cv": CHEAP, "exact": near}, "exact")
    )
    assert "costs no more" in str(exact_advice("cv", {"cv": DEAR, "exact": near}, "exact"))
    assert exact_advice("cv", {"cv": CHEAP, "exact": DEAR}, "exact") is None
    assert exact_advice("exact", {"exact": near}, "exact") is None
    assert exact_advice("cv", {"cv": CHEAP, "exact": Cost(1000, 0, {})}, "exact") is None


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (7.4, "7"), (123.4, "123"), (1234, "1,230"), (98765, "98,800")]
)
def test_counts_have_three_digits(count: float, text: str) -> None:
    assert counted(count) == text
