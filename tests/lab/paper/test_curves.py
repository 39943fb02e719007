"""The two figures of convergence: what they decide from given curves."""

from __future__ import annotations

import pytest

from lab.paper import curves as module
from lab.paper import fig_accuracy, fig_loss
from lab.paper.experiment import Choice
from vrgcn.pages.page import Page

SHARES = (0.999, 1.001, 1.0, 1.0005, 0.9995)


def curves(field, ends, quick=False, dataset="cora", seeds=5, **more):
    """Runs of twenty epochs for each algorithm that settle around the given value; what the seed
    decides moves all algorithms alike, up to a thousandth of their own."""
    return [
        {"dataset": dataset, "label": dataset.title(), "algorithm": algorithm, "seed": seed,
         "quick": quick, "epochs": 400, "every": 20, "diverged": None,
         field: [2.0] * 18 + [end * SHARES[seed] * (1 + 1e-4 * ((seed + number) % 3))] * 2}
        | more
        for number, (algorithm, end) in enumerate(ends.items())
        for seed in range(seeds)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cv", "biased", "expected"),
    [
        (0.5, 0.8, [True, True]),
        (0.502, 0.8, [False, True]),  # 0.4% above, but in every run
        (0.40, 0.8, [True, True]),  # below exact's is reached too
        (0.5, 0.5, [True, False]),
    ],
)
def test_cv_has_to_reach_the_exact_loss_and_the_biased_ones_must_not(
    tmp_path, cv, biased, expected
):
    ends = {"M1+PP": 0.5, "CV+PP": cv, "NS": 0.9, "NS+PP": biased, "IS+PP": 0.9}
    page = Page("")
    verdicts = fig_loss.render(curves("measured", ends), page, tmp_path)
    assert [verdict.holds for verdict in verdicts] == expected
    assert f"1%): {cv:.4f}"[:9] in verdicts[0].text
    assert "IS+PP 0.90" in verdicts[1].text
    assert "+80%, p < 0.0001" in verdicts[1].text
    assert "at 1%" in verdicts[0].text
    assert (tmp_path / "fig-loss.png").exists()
    assert (tmp_path / "fig-loss.svg").exists()


def test_small_losses_are_told_apart_where_every_run_says_so(tmp_path):
    """No margin in nats: on an easy data set all losses are near zero."""
    ends = {"M1+PP": 1e-5, "CV+PP": 1e-5, "NS+PP": 5e-4}
    reached, above = fig_loss.render(curves("measured", ends), Page(""), tmp_path)
    assert reached.holds
    assert above.holds


def test_a_difference_of_one_run_alone_decides_nothing(tmp_path):
    ends = {"M1+PP": 0.5, "CV+PP": 0.5, "NS+PP": 0.8}
    verdicts = fig_loss.render(curves("measured", ends, seeds=1), Page(""), tmp_path)
    assert [verdict.holds for verdict in verdicts] == [None, None]
    assert "1 run" in verdicts[1].text


def test_each_data_set_is_decided_by_itself(tmp_path):
    good = {"M1+PP": 0.5, "CV+PP": 0.5, "NS+PP": 0.9, "IS+PP": 0.9}
    records = curves("measured", good)
    records += curves("measured", good | {"CV+PP": 0.7, "IS+PP": 0.5}, dataset="pubmed")
    verdicts = fig_loss.render(records, Page(""), tmp_path)
    assert [verdict.holds for verdict in verdicts] == [True, False, True, False]
    assert verdicts[1].text.startswith("Pubmed: ")
    assert verdicts[1].text.endswith("Not so.")
    assert verdicts[3].text.endswith("Not so: IS+PP.")


def test_few_runs_that_are_worse_leave_the_claim_open(tmp_path):
    few = curves("measured", {"M1+PP": 0.5, "CV+PP": 0.5, "NS+PP": 0.9, "IS+PP": 0.5}, seeds=2)
    for record, share in zip(few[2:4], (1.3, 2.0), strict=True):  # CV+PP: 30% and 100% above
        record["measured"] = [value * share for value in record["measured"]]
    reaches, others = fig_loss.render(few, Page(""), tmp_path)
    assert (reaches.holds, others.holds) == (None, None)
    for record in few[2:4]:
        record["measured"] = [0.4] * 20
    assert fig_loss.render(few, Page(""), tmp_path)[0].holds


def test_points_are_drawn_at_their_epochs(tmp_path, monkeypatch):
    drawn: list[list[int]] = []
    monkeypatch.setattr(module, "_draw_algorithm", lambda *of: drawn.append(of[-1]))
    records = curves("val", {"M1+PP": 0.5}, epochs=10, at=[4, 8, 10], val=[0.1, 0.2, 0.3])
    older = curves("val", {"M1+PP": 0.5}, epochs=12, every=4, val=[0.1, 0.2, 0.3])
    for group in (records, older):
        fig_accuracy.render(group, Page(""), tmp_path)
    assert drawn[0] == [4, 8, 10]
    assert drawn[-1] == [4, 8, 12]


def test_runs_that_diverged_are_counted_and_settle_nowhere(tmp_path):
    records = curves("measured", {"M1+PP": 0.5, "CV+PP": 0.5})
    records += curves("measured", {"IS+PP": 0.5}, diverged="the training loss became inf")
    page = Page("")
    _, others = fig_loss.render(records, page, tmp_path)
    assert others.holds is None
    assert "5 of IS+PP's runs diverged" in others.text
    assert "– (5 diverged)" in page.html()


@pytest.mark.parametrize(("cvd", "holds"), [(0.8, True), (0.82, True), (0.79, False)])
def test_cvd_has_to_reach_the_exact_accuracy(tmp_path, cvd, holds):
    ends = {"M1+PP": 0.8, "CVD+PP": cvd, "NS+PP": 0.5}
    verdict, cv = fig_accuracy.render(curves("val", ends), Page(""), tmp_path)
    assert verdict.holds is holds
    assert f": {100 * cvd:.1f} to 80.0, {100 * (cvd - 0.8):+.1f}" in verdict.text
    assert cv.holds is None  # CV+PP was not run


@pytest.mark.parametrize("figure", [fig_loss, fig_accuracy])
def test_quick_runs_and_single_algorithms_decide_nothing(tmp_path, figure):
    ends = {"M1+PP": 0.5, "CV+PP": 0.5, "CVD+PP": 0.5, "NS+PP": 0.9, "IS+PP": 0.9}
    for records in (curves(figure.FIELD, ends, quick=True), curves(figure.FIELD, {"M1+PP": 0.5})):
        verdicts = figure.render(records, Page(""), tmp_path)
        assert [verdict.holds for verdict in verdicts] == [None] * len(verdicts)


@pytest.mark.parametrize("lost", [1, 2])
def test_an_algorithm_with_runs_that_diverged_has_not_reached_exact(tmp_path, lost):
    records = curves("measured", {"M1+PP": 0.5, "CV+PP": 0.5})
    for record in records[-lost:]:
        record["diverged"] = "the training loss became inf"
    reaches, _ = fig_loss.render(records, Page(""), tmp_path)
    assert reaches.holds is False
    assert reaches.text.endswith(f": {lost} of its runs diverged.")
    records = curves("val", {"M1+PP": 0.5, "CVD+PP": 0.5})
    for record in records[-lost:]:
        record["diverged"] = "the training loss became inf"
    reaches, _ = fig_accuracy.render(records, Page(""), tmp_path)
    assert reaches.holds is False
    assert reaches.text.endswith(f": {lost} of its runs diverged.")


def test_the_caption_says_what_was_cut_and_that_two_way_is_ours(tmp_path):
    page = Page("")
    fig_loss.render(
        curves("measured", {"M1+PP": 0.5, "two-way": 0.5}, epochs=40, every=2), page, tmp_path
    )
    html = page.html()
    assert "Cut for time: Cora 40 of 400 epochs, 5 of 10 runs." in html
    assert "two-way is not the paper" in html


def test_all_algorithms_of_a_seed_come_before_the_next():
    units = fig_loss.units(Choice(("communities",), runs=2))
    assert [unit.key["seed"] for unit in units] == [0] * 6 + [1] * 6
    assert {unit.key["algorithm"] for unit in units} == {*fig_loss.ALGORITHMS}
