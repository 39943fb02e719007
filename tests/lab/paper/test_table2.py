"""table2: measured variances beside the formulas."""

from __future__ import annotations

import copy

import pytest
import torch

from lab.paper import table2
from lab.paper.variance_draws import PARTS, ROWS, Neighbourhood, measure
from vrgcn.graph.propagation import Propagation


@pytest.fixture(scope="module")
def outcome(run_quick):
    return run_quick(table2.EXPERIMENT)


def test_every_variance_is_that_of_its_formula(outcome):
    (record,) = outcome.records
    assert len(record["rows"]) >= 5
    for row in record["rows"]:
        assert row["R"] == row["degree"] / row["fanout"]
        assert row["S"] > 0
        for name in ROWS:
            for part in PARTS:
                measured, formula, off = row["estimators"][name][part]
                assert off < table2.TOLERANCE
                # 1500 draws: a standard error is a few percent.
                assert measured == pytest.approx(formula, rel=0.35, abs=1e-12)
        assert row["estimators"]["exact"]["sampling"][:2] == pytest.approx([0, 0], abs=1e-20)
        assert row["estimators"]["cv"]["sampling"][1] > 0  # the weights moved: μ is not μ̄
        dropout = {name: row["estimators"][name]["dropout"][1] - row["own"] for name in ROWS}
        factors = {name: value / row["S"] for name, value in dropout.items()}
        R = row["R"]
        expected = {"exact": 1, "ns": R, "cv": 2 * R - 1, "cvd": 1, "two-way": 1}
        assert factors == pytest.approx(expected, rel=1e-4)


def test_the_verdicts_grant_the_formulas_and_refuse_the_printed_one(outcome):
    right, printed, bias = table2.verdicts_of(outcome.records[0])
    assert right.holds
    assert printed.holds is False
    assert bias.holds
    (record,) = outcome.records
    worst = max(row["printed"][2] for row in record["rows"])
    assert worst > 2 * table2.TOLERANCE
    assert f"by {worst:.0f} at R" in printed.text
    assert outcome.figures() == {"table2.png", "table2.svg"}
    assert "(2R - 1) S" in outcome.page


def test_a_variance_that_is_off_is_reported(outcome):
    records = copy.deepcopy(outcome.records)
    records[0]["rows"][0]["estimators"]["cvd"]["dropout"][2] = 6.5
    right = table2.verdicts_of(records[0])[0]
    assert right.holds is False
    assert "6.5 off" in right.text


def test_at_r_4_nothing_is_said_of_the_printed_formula(outcome):
    records = copy.deepcopy(outcome.records)
    records[0]["rows"] = [row | {"R": 4.0} for row in records[0]["rows"]]
    assert table2.verdicts_of(records[0])[1].holds is None


def test_a_sampler_of_another_matrix_is_noticed():
    """The measurement comes from the real sampler and estimators, not from the formula."""
    matrix = torch.tensor([[0.5, 0.5, 0.25, 0.125], *[[0.0] * 4] * 3])
    P = Propagation.from_matrix(matrix)
    generator = torch.Generator().manual_seed(0)
    pool = torch.randn(50, 4, 2, generator=generator, dtype=torch.float64)
    around = Neighbourhood(
        0, torch.arange(1, 4), 0.5, matrix[0, 1:].double(), pool, pool.mean(0), pool.mean(0) + 1
    )
    row = measure(around, P, 1, 20_000, torch.Generator().manual_seed(1))
    assert all(row["estimators"][name][part][2] < 5 for name in ROWS for part in PARTS)
    wrong = measure(around, Propagation.from_matrix(2 * matrix), 1, 2_000, generator)
    assert wrong["estimators"]["exact"]["dropout"][2] < 5  # the textbook's product, by `around`
    assert wrong["estimators"]["ns"]["dropout"][2] > 20  # the sampler's edges are twice as heavy


def test_nodes_are_spread_from_the_lowest_degree_to_the_highest():
    degree = torch.tensor([9, 0, 2, 5, 1, 3])
    assert table2.spread_by_degree(degree, 3).tolist() == [2, 5, 0]
    assert table2.spread_by_degree(degree, 10).tolist() == [2, 5, 3, 0]
