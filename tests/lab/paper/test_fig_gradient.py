"""fig-gradient: bias and standard deviation of gradients along one trajectory."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest

from lab.harness.records import Record
from lab.paper import fig_gradient
from lab.paper.experiment import Choice
from lab.paper.settings import setting


@pytest.fixture(scope="module")
def outcome(run_quick):
    return run_quick(fig_gradient.EXPERIMENT)


def test_every_algorithm_is_measured_with_and_without_dropout(outcome):
    assert [r["dropout"] for r in outcome.records] == [False, True]
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
        parts = record["algorithms"]
        ns, ns_pp, cv, cvd = (parts[name] for name in ("NS", "NS+PP", "CV+PP", "CVD+PP"))
        assert (cv == cvd) == (not record["dropout"])  # without dropout they are the same
        assert cvd["std"] < ns["std"]
        if not record["dropout"]:
            assert ns["corrected"] > ns["corrected_floor"]  # the bias of NS is beyond noise
            assert cv["std"] < ns_pp["std"] < ns["std"]
            assert cv["corrected"] < ns["corrected"] / 2
            # Nothing is sampled, and every history was written in the epoch before.
            assert parts["two-way"]["std"] < ns["std"]
            assert parts["two-way"]["corrected"] < ns["corrected"]


def test_two_way_with_all_neighbours_computed_has_the_exact_gradient_on_average(monkeypatch):
    """If every node has at most `fanout` neighbours, the mean over minibatches is exact for any
    tables: the measured error is that of a minibatch, not a wrong scale."""
    paper = setting("communities")
    own = replace(paper, two_way={**paper.two_way, "fanout": (10_000,)})
    monkeypatch.setattr(fig_gradient, "setting", lambda _: own)
    monkeypatch.setattr(fig_gradient, "PASSES", 30)
    found = fig_gradient.run("communities", False, 0, Choice(quick=True))["algorithms"]["two-way"]
    assert found["corrected"] < max(3 * found["corrected_floor"], 0.05)


def test_the_figures_and_the_table_are_there(outcome):
    assert outcome.figures() == {"fig-gradient.png", "fig-gradient.svg"}
    runs = [r["algorithms"]["NS"] for r in outcome.records if not r["dropout"]]
    bias, floor, std = (fmean(run[name] for run in runs) for name in ("bias", "floor", "std"))
    assert f"{bias:.3f} ({floor:.3f}), {std:.2f}" in outcome.page
    assert len(outcome.verdicts) == 2


def record(dropout: bool, seed: int, **corrected: tuple[float, float]) -> Record:
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
        "dataset": "cora", "label": "Cora", "seed": seed, "passes": 10, "batch": 5, "epochs": 200,
        "dropout": dropout, "algorithms": parts,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cv", "holds"),
    [((0.04, 0.01), True), ((0.06, 0.01), False), ((0.0, 0.2), None), ((0.06, 0.05), None)],
    ids=["below a tenth", "above a tenth", "too noisy to grant", "too noisy to refuse"],
)
def test_almost_unbiased_means_a_tenth_of_ns_beyond_noise_in_every_run(
    cv: tuple[float, float], holds: bool | None
):
    good = record(False, 0, ns=(0.5, 0.1), cv=(0.01, 0.01), cvd=(0.01, 0.01))
    other = record(False, 1, ns=(0.5, 0.1), cv=cv, cvd=cv)
    dropped = record(True, 0, ns=(0.5, 0.1), cv=(0.5, 0.1), cvd=(0.5, 0.1))
    assert fig_gradient.almost_unbiased("Cora", [good, other, dropped]).holds is holds
    assert fig_gradient.almost_unbiased("Cora", [dropped]).holds is None


def test_usually_smaller_counts_bias_and_deviation_apart():
    good = record(True, 0, ns=(0.5, 2.0), cv=(0.1, 1.0), cvd=(0.1, 1.0))
    noisy = record(True, 0, ns=(0.5, 2.0), cv=(0.1, 3.0), cvd=(0.1, 3.0))
    assert fig_gradient.usually_smaller("Cora", [good]).holds
    verdict = fig_gradient.usually_smaller("Cora", [noisy])
    assert verdict.holds is False
    assert "bias in 4 of 4, std in 0 of 4" in verdict.text


def test_the_paper_has_a_thousand_passes_and_one_moment():
    assert fig_gradient.PASSES == 1000
    assert not {"cora", "citeseer", "pubmed"} & fig_gradient.FEWER_PASSES.keys()
    keys = [unit.key for unit in fig_gradient.units(Choice(("communities",), runs=1))]
    assert [key["dropout"] for key in keys] == [False, True]
