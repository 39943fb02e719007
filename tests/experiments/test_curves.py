"""The two figures of convergence: what they decide from given curves."""

from __future__ import annotations

import pytest

from vrgcn.experiments import fig_accuracy, fig_loss
from vrgcn.pages.page import Page


def curves(field, ends, quick=False, dataset="cora", **more):
    """Two runs of twenty epochs for each algorithm that settle around the given value."""
    return [
        {"dataset": dataset, "label": dataset.title(), "algorithm": algorithm, "seed": seed,
         "quick": quick, "epochs": 20, field: [2.0] * 18 + [end * share] * 2, "diverged": None}
        | more
        for algorithm, end in ends.items()
        for seed, share in enumerate((0.999, 1.001))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cv", "biased", "expected"),
    [
        (0.51, 0.8, [True, True]),
        (0.60, 0.8, [False, True]),
        (0.40, 0.8, [True, True]),  # below exact's is reached too
        (0.51, 0.51, [True, False]),
    ],
)
def test_cv_has_to_reach_the_exact_loss_and_the_biased_ones_must_not(
    tmp_path, cv, biased, expected
):
    ends = {"M1+PP": 0.5, "CV+PP": cv, "NS+PP": biased, "IS+PP": 0.9}
    page = Page("")
    verdicts = fig_loss.render(curves("measured", ends), page, tmp_path)
    assert [verdict.holds for verdict in verdicts] == expected
    assert f"Cora {cv:.4f} to 0.5000" in verdicts[0].text
    assert (tmp_path / "fig-loss.png").exists()
    assert (tmp_path / "fig-loss.svg").exists()


def test_small_losses_are_compared_in_nats():
    assert fig_loss.margin(0.5) == pytest.approx(0.025)
    assert fig_loss.margin(0.001) == 0.01


def test_one_data_set_that_is_not_reached_decides_the_claim(tmp_path):
    good = {"M1+PP": 0.5, "CV+PP": 0.5, "NS+PP": 0.9, "IS+PP": 0.9}
    records = curves("measured", good) + curves("measured", good | {"CV+PP": 0.7}, dataset="nell")
    reaches, _ = fig_loss.render(records, Page(""), tmp_path)
    assert not reaches.holds
    assert reaches.text.endswith("not so: Nell 0.7000 to 0.5000.")


def test_runs_that_diverged_are_counted_and_settle_nowhere(tmp_path):
    records = curves("measured", {"M1+PP": 0.5, "CV+PP": 0.5})
    records += curves("measured", {"IS+PP": 0.5}, diverged="the training loss became inf")
    page = Page("")
    _, others = fig_loss.render(records, page, tmp_path)
    assert others.holds is None
    assert "– (2 diverged)" in page.html()


@pytest.mark.parametrize(("cvd", "holds"), [(0.797, True), (0.82, True), (0.79, False)])
def test_cvd_has_to_reach_the_exact_accuracy(tmp_path, cvd, holds):
    ends = {"M1+PP": 0.8, "CVD+PP": cvd, "NS+PP": 0.5}
    (verdict,) = fig_accuracy.render(curves("val", ends), Page(""), tmp_path)
    assert verdict.holds is holds
    assert f"Cora {100 * cvd:.1f} to 80.0" in verdict.text


@pytest.mark.parametrize("module", [fig_loss, fig_accuracy])
def test_quick_runs_and_single_algorithms_decide_nothing(tmp_path, module):
    ends = {"M1+PP": 0.5, "CV+PP": 0.5, "CVD+PP": 0.5, "NS+PP": 0.9, "IS+PP": 0.9}
    for records in (curves(module.FIELD, ends, quick=True), curves(module.FIELD, {"M1+PP": 0.5})):
        verdicts = module.render(records, Page(""), tmp_path)
        assert [verdict.holds for verdict in verdicts] == [None] * len(verdicts)


@pytest.mark.parametrize("lost", [1, 2])
def test_an_algorithm_with_runs_that_diverged_has_not_reached_exact(tmp_path, lost):
    records = curves("measured", {"M1+PP": 0.5, "CV+PP": 0.5})
    for record in records[-lost:]:
        record["diverged"] = "the training loss became inf"
    reaches, _ = fig_loss.render(records, Page(""), tmp_path)
    assert reaches.holds is False
    assert f"Cora ({lost} of CV+PP's runs diverged)" in reaches.text
    records = curves("val", {"M1+PP": 0.5, "CVD+PP": 0.5})
    for record in records[-lost:]:
        record["diverged"] = "the training loss became inf"
    (reaches,) = fig_accuracy.render(records, Page(""), tmp_path)
    assert reaches.holds is False
    assert f"Cora ({lost} of CVD+PP's runs diverged)" in reaches.text
