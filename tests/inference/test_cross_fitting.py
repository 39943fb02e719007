"""Temperature and threshold: recovered if they help, left out if they do not, judged without
leaks."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from vrgcn.inference.calibration import (
    FOLDS,
    best_cut,
    choose_cut,
    choose_temperature,
    deal_folds,
    f1_score,
    fit_temperature,
    held_out_cuts,
    held_out_temperatures,
    median_cut,
)
from vrgcn.tasks import find_task
from vrgcn.tasks.reliability import brier, log_losses

CLASSES, SEVERAL = find_task("classes"), find_task("multilabel")


def drawn(count: int, temperature: float, classes: int = 3, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Outputs, and labels drawn from the softmax of outputs / temperature."""
    draw = torch.Generator().manual_seed(seed)
    outputs = 3 * torch.randn(count, classes, generator=draw, dtype=torch.float64)
    chances = (outputs / temperature).softmax(1)
    return outputs, torch.multinomial(chances, 1, generator=draw)[:, 0]


def two_classes(count: int, rate: float, seed: int) -> tuple[Tensor, Tensor]:
    """Margins around `rate` whose sigmoid is the chance of the second class, and who has it."""
    draw = torch.Generator().manual_seed(seed)
    margins = rate + 2 * torch.randn(count, generator=draw, dtype=torch.float64)
    return margins, torch.rand(count, generator=draw, dtype=torch.float64) < margins.sigmoid()


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0, 2.5])
def test_the_temperature_that_labels_were_drawn_with_is_found(temperature: float) -> None:
    drawn_at_one, labels = drawn(5000, 1.0)
    # Its deviation here is 2%.
    assert fit_temperature(temperature * drawn_at_one, labels) == pytest.approx(
        temperature, rel=0.06
    )
    folds = deal_folds(labels)
    chosen = choose_temperature(CLASSES, temperature * drawn_at_one, labels, folds)
    assert chosen == pytest.approx(temperature, rel=0.06)
    assert (chosen == 1) == (temperature == 1)


def test_several_classes_have_one_temperature() -> None:
    draw = torch.Generator().manual_seed(3)
    outputs = 3 * torch.randn(800, 5, generator=draw, dtype=torch.float64)
    labels = (torch.rand(800, 5, generator=draw, dtype=torch.float64) < outputs.sigmoid()).float()
    folds = deal_folds(torch.zeros(800, dtype=torch.int64))
    assert choose_temperature(SEVERAL, 2 * outputs, labels, folds) == pytest.approx(2, rel=0.1)


def test_a_calibration_that_hurts_is_not_used() -> None:
    """25 classes, 60 nodes, 97% right, which the model knows: by chance all 60 are right."""
    draw = torch.Generator().manual_seed(0)
    outputs = torch.randn(2060, 25, generator=draw, dtype=torch.float64)
    outputs[torch.arange(2060), torch.arange(2060) % 25] += 8
    labels = torch.multinomial(outputs.softmax(1), 1, generator=draw)[:, 0]
    right = outputs.argmax(1) == labels
    few = right.nonzero()[:60, 0]
    held = torch.ones(2060, dtype=torch.bool)
    held[few] = False
    fitted = fit_temperature(outputs[few], labels[few])
    assert fitted is not None
    assert fitted < 0.7
    before, after = (float(log_losses(outputs[held] / t, labels[held]).mean()) for t in (1, fitted))
    assert after > 1.1 * before
    folds = deal_folds(labels[few])
    assert choose_temperature(CLASSES, outputs[few], labels[few], folds) == 1


@pytest.mark.parametrize("scale", [1e-4, 1e6])
def test_a_bound_is_no_temperature(scale: float) -> None:
    outputs, labels = drawn(1000, 1.0)
    assert fit_temperature(scale * outputs, labels) is None
    assert choose_temperature(CLASSES, scale * outputs, labels, deal_folds(labels)) == 1


def test_nodes_that_are_all_right_do_not_drive_the_temperature_to_a_bound() -> None:
    outputs = 2 * torch.eye(5, dtype=torch.float64).repeat(8, 1)
    fitted = fit_temperature(outputs, outputs.argmax(1))
    assert fitted is not None
    assert 0.1 < fitted < 0.5


def test_a_few_probabilities_of_zero_do_not_decide() -> None:
    """Log loss asks for a high temperature, which makes the Brier score worse."""
    outputs, labels = drawn(1000, 1.0)
    outputs[:10] = torch.tensor([0.0, -60.0, -60.0], dtype=torch.float64)
    labels[:10] = 1
    fitted = fit_temperature(outputs, labels)
    assert fitted is not None
    assert fitted > 1.2
    before, after = (brier((outputs / t).softmax(1), labels) for t in (1, fitted))
    assert after > before
    assert choose_temperature(CLASSES, outputs, labels, deal_folds(labels)) == 1


def test_folds_have_equal_shares_of_each_class() -> None:
    labels = torch.tensor([0] * 52 + [1] * 10 + [2] * 7)
    folds = deal_folds(labels)
    counts = torch.stack([torch.bincount(labels[folds == f], minlength=3) for f in range(FOLDS)])
    assert (counts.max(0).values - counts.min(0).values <= 1).all()
    assert torch.bincount(folds).tolist() == [14, 14, 14, 14, 13]
    assert torch.equal(deal_folds(labels), folds)
    # Not in the order of the nodes: it may mean something.
    assert not torch.equal(folds[:50], torch.arange(50) % FOLDS)


@pytest.mark.parametrize("fold", [0, 3])
def test_labels_of_a_fold_do_not_reach_what_it_is_scored_with(fold: int) -> None:
    outputs, labels = drawn(400, 2.0, classes=2)
    margins, folds = outputs[:, 1] - outputs[:, 0], deal_folds(labels)
    inside = folds == fold
    changed = torch.where(inside, 1 - labels, labels)
    first, second = (held_out_temperatures(outputs, y, folds) for y in (labels, changed))
    assert first is not None
    assert second is not None
    assert torch.equal(first[inside], second[inside])
    assert (first[~inside] != second[~inside]).all()
    cuts = [held_out_cuts(margins, y == 1, folds) for y in (labels, changed)]
    assert torch.equal(cuts[0][inside], cuts[1][inside])
    assert (cuts[0][~inside] != cuts[1][~inside]).any()


def test_the_best_cut_has_the_best_f1_of_all() -> None:
    margins, actual = two_classes(300, -1.5, seed=0)
    found = best_cut(margins, actual)
    assert found is not None
    best = max(f1_score(margins >= cut, actual) for cut in margins)
    assert f1_score(margins >= found, actual) == best
    assert best_cut(margins, torch.zeros(300, dtype=torch.bool)) is None
    assert best_cut(margins, torch.ones(300, dtype=torch.bool)) == -math.inf
    tied = best_cut(torch.tensor([2.0, 1.0, 1.0, 0.0]), torch.tensor([True, True, False, False]))
    assert tied == 0.5


def test_the_threshold_of_few_positives_is_nearly_as_good_as_one_of_many() -> None:
    """100 nodes, some 13 positives: of 40 draws none ends below 0.5, as a quarter of the best
    cuts of half of the nodes do."""
    many, actual = two_classes(4000, -3.0, seed=100)
    usual = f1_score(many > 0, actual)
    chosen, half = [], []
    for seed in range(40):
        margins, few = two_classes(100, -3.0, seed)
        cut = choose_cut(margins, few, deal_folds(few.long()))
        chosen.append(f1_score(many >= (cut or 0.0), actual))
        half.append(f1_score(many >= (best_cut(margins[:50], few[:50]) or 0.0), actual))
    assert sum(score < usual for score in half) > 5
    assert min(chosen) >= usual
    assert sum(chosen) / 40 > usual + 0.04


def test_a_threshold_that_is_not_better_on_held_out_nodes_is_not_used() -> None:
    margins, actual = two_classes(60, 0.0, seed=5)
    folds = deal_folds(actual.long())
    cut = median_cut(margins, actual, folds)
    assert f1_score(margins >= cut, actual) > f1_score(margins > 0, actual)  # of the same nodes
    held = held_out_cuts(margins, actual, folds)
    assert f1_score(margins >= held, actual) <= f1_score(margins > 0, actual)
    assert choose_cut(margins, actual, folds) is None
    none = torch.zeros(60, dtype=torch.bool)
    assert choose_cut(margins, none, deal_folds(none.long())) is None
