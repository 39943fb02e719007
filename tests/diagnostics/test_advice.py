"""Advice follows from the numbers by its rules, and from nothing else."""

from __future__ import annotations

import pytest

from tests.diagnostics.made_up import NOTHING, diagnosis, measured, table, unseen
from vrgcn.diagnostics.advice import Advice, added_error, added_noise, advise
from vrgcn.diagnostics.diagnosis import Diagnosis, Measured
from vrgcn.diagnostics.gradients import Gradients
from vrgcn.training.moments import Deviation


def said(of: Diagnosis) -> list[str]:
    """The advice as it is printed."""
    return [str(advice) for advice in advise(of)]


def test_noise_above_that_of_ns_is_named_with_rate_layer_and_remedies():
    (advice,) = said(diagnosis(cv=measured((0, 1.5), (0, 0.6))))
    assert advice == (
        "at learning rate 0.02 cv's noise is 3.0 times that of ns at layer 2: start warm "
        "(warm_start=True), lower the rate, or raise the fan-out"
    )
    (warm,) = said(diagnosis(cv=measured((0, 1.5), (0, 0.6)), warm_start=True))
    assert "warm_start=" not in warm
    (alike,) = said(diagnosis(cv=measured((0, 0.52), (0, 0.6))))  # against 0.5: no "1.0 times"
    assert "nothing to change" in alike
    (calm,) = said(diagnosis(cv=measured((0, 0.4), (0, 0.6))))
    assert calm.startswith("cv's gradient is off by 60% a step")
    assert "nothing to change" in calm


def test_what_to_do_and_why_are_two_things():
    (advice,) = advise(diagnosis(cv=measured((0, 1.5), (0, 0.6))))
    assert advice.action == "start warm (warm_start=True), lower the rate, or raise the fan-out"
    assert advice.reason == "at learning rate 0.02 cv's noise is 3.0 times that of ns at layer 2"
    # A reason may have colons of its own.
    assert str(Advice("stop", "it is late: past ten")) == "it is late: past ten: stop"


def test_gradients_that_no_minibatch_has_are_not_compared():
    none = {name: unseen(measured((0, 0.2)), trained=0) for name in ("exact", "ns", "cv")}
    first, last = advise(diagnosis(cv=none.pop("cv"), **none, tables=[table(unwritten=0.2)]))
    assert "never written" in first.reason
    assert last.reason == (
        "gradients cannot be compared, for none of the 10 minibatches of 9 nodes that were drawn "
        "has a training node"
    )
    assert "passes=" in last.action
    zero = {name: unseen(measured((0, 0.2)), trained=4) for name in ("exact", "ns")}
    (advice,) = advise(diagnosis("exact", **zero))
    assert "that of exact training is zero" in advice.reason


def test_dropouts_own_noise_is_not_held_against_the_estimator():
    exact = measured((0, 0.4), (0, 0.4))
    cv = measured((0, 0.5), (0, 0.5))
    assert added_noise(cv.gradient, exact.gradient) == pytest.approx(0.3)
    biased = added_error(Deviation(0.4, 0, 0.5), exact.gradient)
    assert (biased.least, biased.most) == pytest.approx((0.5, 0.5))
    unseen = added_error(Deviation(0.2, 0.4, 0.5), exact.gradient)
    assert (unseen.least, unseen.most) == pytest.approx((0.3, 0.5))
    assert added_noise(exact.gradient, cv.gradient) == 0
    ns = measured((0, 0.45), (0, 0.6))
    (advice,) = said(diagnosis(exact=exact, cv=cv, ns=ns))
    assert "cv's noise is 1.5 times that of ns" in advice  # 0.3 to 0.206


def test_a_bias_is_named_with_its_cause_where_it_stands_out_of_the_noise():
    biased = measured((0, 0.1), (0.3, 0.1))
    (stale,) = said(diagnosis(cv=biased, tables=[table(0.25)]))
    assert "cv's gradient is biased by 30%" in stale
    assert "off by 25% of the activations: lower the learning rate" in stale
    (fresh,) = said(diagnosis(cv=biased, tables=[table(0.05)]))
    assert "raise the fan-out" in fresh
    assert "lower" not in fresh
    (history,) = said(diagnosis("history", history=biased, tables=[table(0.05)]))
    assert 'keep gradients of neighbours (estimator="two-way") or sample some' in history
    gradients = [table(0.15), table(0.4, kind="g")]
    (both,) = said(diagnosis("two-way", **{"two-way": biased}, tables=gradients))
    assert "gradients it reads of neighbours are off by 40%: lower the learning rate" in both
    assert both.endswith('raise the fan-out, or correct them by samples (estimator="two-way-cv")')
    (sampled,) = said(diagnosis("two-way-cv", **{"two-way-cv": biased}, tables=gradients))
    assert sampled.endswith("lower the learning rate, raise the fan-out")
    (slow,) = said(diagnosis("two-way", **{"two-way": biased}, tables=[table(0.05, kind="g")]))
    assert slow.endswith("lower the learning rate")
    hidden = measured((0, 0.1), (0.3, 0.1), floor=0.4)
    assert "biased" not in said(diagnosis(cv=hidden))[0]
    small = measured((0, 0.1), (0.09, 0.1))
    assert "biased" not in said(diagnosis(cv=small))[0]


def test_rows_that_were_never_written_come_first():
    first, *_ = said(diagnosis(cv=measured((0, 1.5)), tables=[table(unwritten=0.2)]))
    assert first.startswith("20% of the histories that this minibatch reads at layer 2 were never")
    gradients = [table(unwritten=0.2, kind="g")]
    first, *_ = said(diagnosis(cv=measured((0, 1.5)), tables=gradients))
    assert "20% of the gradients" in first
    assert "warm_start=" not in first
    assert "never written" not in said(
        diagnosis(cv=measured((0, 0.1), (0, 0.5)), tables=[table(unwritten=0.04)])
    )[0]  # fmt: skip


def test_a_much_better_estimator_is_named():
    better = {"cvd": measured((0, 0.1), (0, 0.2))}
    (advice,) = said(diagnosis("ns", **better))
    assert advice.startswith("the gradient of cvd is off by 20% on the same minibatches, that")
    assert advice.endswith('try estimator="cvd"')
    (biased,) = said(diagnosis("ns", history=measured((0, 0.1), (0.09, 0))))
    assert "; but more of it is bias, 9% against 0%, which does not average out" in biased
    (other,) = said(diagnosis("ns", **{"gradient-only": measured((0, 0.1), (0, 0.2))}))
    assert other.endswith('try estimator="gradient-only"')
    (same,) = said(diagnosis("ns", cvd=measured((0, 0.4), (0, 0.4))))
    assert "nothing to change" in same


def test_a_better_estimator_is_only_a_guess_where_the_floor_is_large():
    history = measured((0, 0.1), (0.0, 0.0), floor=0.9)
    ns = measured((0, 0.9), (0, 0.9))
    cvd = measured((0, 0.1), (0, 0.85))
    (advice,) = said(diagnosis("cvd", cvd=cvd, ns=ns, history=history))
    assert "try" not in advice
    assert advice.startswith(
        "history may have a better gradient than cvd, off by 0% to 90% and 85%"
    )
    assert advice.endswith("measure with more passes (passes=)")
    assert "off by 50%" in said(diagnosis("exact", history=history))[0]  # that of ns is certain


def test_where_dropout_makes_most_of_the_noise_a_larger_fan_out_is_no_remedy():
    exact, cvd = measured((0, 0.3), (0, 0.5)), measured((0, 0.31), (0, 0.51))
    (advice,) = said(diagnosis("cvd", exact=exact, cvd=cvd, ns=measured((0, 0.6), (0, 0.6))))
    assert "make the gradient of exact training vary by 50%, cvd adds 10%" in advice


def test_exact_training_and_training_without_estimates_are_told_so():
    assert "ns comes closest, its gradient off by 50%" in said(diagnosis("exact"))[0]
    empty = Measured({}, NOTHING, Gradients(NOTHING, {}, {}, 3, known=True))
    nothing = diagnosis("cv", exact=empty, ns=empty, cv=empty)
    assert said(nothing)[0].startswith("nothing is estimated")
    assert "was not among" in said(diagnosis("cvd"))[0]


def test_a_larger_fan_out_is_not_asked_for_and_refused_at_once():
    """Against a bias it helps, however little of the noise is by sampling."""
    others = {"exact": measured((0, 0.3), (0, 0.5)), "ns": measured((0, 0.9), (0, 0.9))}
    biased = {"two-way": measured((0, 0.3), (0.3, 0.5))}
    (advice,) = said(diagnosis("two-way", **others, **biased, tables=[table(0.4)]))
    assert "raise the fan-out" in advice
    calm = {"two-way": measured((0, 0.3), (0.05, 0.5))}
    (advice,) = said(diagnosis("two-way", **others, **calm))
    assert "leave the fan-out" in advice


def test_what_decides_how_many_neighbours_are_computed_is_named_by_sampler():
    biased, calm = measured((0, 0.1), (0.3, 0.1)), measured((0, 0.4), (0, 0.6))
    (advice,) = said(diagnosis("is", **{"is": biased}))
    assert advice.endswith("does not average out: raise the sample size (sample_size=)")
    (advice,) = said(diagnosis("is", **{"is": calm}))
    assert advice.endswith("; a larger sample size (sample_size=) lowers the noise")
    (advice,) = said(diagnosis("history", history=biased, tables=[table(0.25)]))
    assert advice.endswith('lower the learning rate, or refresh (visit="all", refresh="always")')
    noisy = {"exact": measured((0, 0.3), (0, 0.5)), "ns": measured((0, 0.9), (0, 0.9))}
    quiet = measured((0, 0.3), (0.05, 0.5))
    (advice,) = said(diagnosis("history", **noisy, history=quiet))
    assert advice.endswith(": nothing to change")


def test_where_exact_training_is_cheap_there_is_something_to_change():
    cheap = Advice('try estimator="exact"', "it costs hardly more")
    fine = diagnosis(cv=measured((0, 0.4), (0, 0.6)))
    assert "nothing to change" in advise(fine)[0].action
    assert advise(fine, cheap) == [cheap]
    noisy = diagnosis(cv=measured((0, 1.5), (0, 0.6)))
    assert advise(noisy, cheap) == [cheap, *advise(noisy)]
