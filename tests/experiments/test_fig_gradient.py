"""fig-gradient: bias and standard deviation of gradients along one trajectory."""

from __future__ import annotations

from typing import Any

import pytest

from vrgcn.experiments import fig_gradient
from vrgcn.experiments.experiment import Choice, Record


@pytest.fixture(scope="module")
def outcome(run_quick):
    return run_quick(fig_gradient.EXPERIMENT)


def test_every_algorithm_is_measured_at_every_moment_with_and_without_dropout(outcome):
    moments = [(record["dropout"], record["epoch"]) for record in outcome.records]
    assert moments == [(False, 1), (False, 3), (True, 1), (True, 3)]
    for record in outcome.records:
        assert tuple(record["algorithms"]) == fig_gradient.ALGORITHMS
        for part in record["algorithms"].values():
            assert part["std"] > 0
            assert part["floor"] > 0
            assert part["bias"] > 0
        # The reference is the exact algorithm, which varies by dropout alone.
        assert (record["exact_std"] > 0) == record["dropout"]


def test_the_figures_are_as_the_estimators_promise(outcome):
    for record in outcome.records:
        ns, ns_pp, _, cv, cvd = (record["algorithms"][name] for name in fig_gradient.ALGORITHMS)
        assert (cv == cvd) == (not record["dropout"])  # without dropout they are the same
        assert cvd["std"] < ns["std"]
        if not record["dropout"]:
            assert ns["corrected"] > ns["corrected_floor"]  # the bias of NS is beyond noise
            assert cv["std"] < ns_pp["std"] < ns["std"]
            assert cv["corrected"] < ns["corrected"] / 2


def test_the_figures_and_the_table_are_there(outcome):
    assert outcome.figures() == {"fig-gradient.png", "fig-gradient.svg"}
    ns = outcome.records[0]["algorithms"]["NS"]
    assert f"{ns['bias']:.3f} ({ns['floor']:.3f}), {ns['std']:.2f}" in outcome.page
    assert len(outcome.verdicts) == 2


def record(dropout: bool, epoch: int, **corrected: tuple[float, float]) -> Record:
    """corrected: (bias, its floor and also the standard deviation) of ns, cv and cvd"""
    names = {"ns": ("NS", "NS+PP", "IS+PP"), "cv": ("CV+PP",), "cvd": ("CVD+PP",)}
    parts: dict[str, Any] = {
        label: {
            "bias": bias, "floor": floor, "std": floor, "corrected": bias, "corrected_floor": floor,
        }
        for key, (bias, floor) in corrected.items()
        for label in names[key]
    }  # fmt: skip
    return {
        "dataset": "cora", "label": "Cora", "seed": 0, "passes": 10, "batch": 5,
        "dropout": dropout, "epoch": epoch, "algorithms": parts,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cv", "holds"),
    [((0.04, 0.01), True), ((0.06, 0.01), False), ((0.0, 0.2), None), ((0.06, 0.05), None)],
    ids=["below a tenth", "above a tenth", "too noisy to grant", "too noisy to refuse"],
)
def test_almost_unbiased_means_a_tenth_of_ns_beyond_noise(
    cv: tuple[float, float], holds: bool | None
):
    first = record(False, 1, ns=(0.5, 0.1), cv=(0.5, 0.1), cvd=(0.5, 0.1))  # not counted
    later = record(False, 10, ns=(0.5, 0.1), cv=cv, cvd=cv)
    dropped = record(True, 10, ns=(0.5, 0.1), cv=(0.5, 0.1), cvd=(0.5, 0.1))
    assert fig_gradient.almost_unbiased("Cora", [first, later, dropped]).holds is holds
    assert fig_gradient.almost_unbiased("Cora", [first]).holds is None


def test_usually_smaller_counts_bias_and_deviation_apart():
    good = record(True, 1, ns=(0.5, 2.0), cv=(0.1, 1.0), cvd=(0.1, 1.0))
    noisy = record(True, 1, ns=(0.5, 2.0), cv=(0.1, 3.0), cvd=(0.1, 3.0))
    assert fig_gradient.usually_smaller("Cora", [good]).holds
    verdict = fig_gradient.usually_smaller("Cora", [noisy])
    assert verdict.holds is False
    assert "bias in 4 of 4, std in 0 of 4" in verdict.text


def test_moments_are_shares_of_the_papers_epochs():
    assert fig_gradient.moments("cora", Choice()) == [1, 10, 50, 200]
    assert fig_gradient.moments("communities", Choice()) == [1, 2, 8, 30]
