"""Advice on what to change, from the measured numbers by the rules in docs/guides/diagnostics.md.

All rules are about the estimator that trains. *Added noise* is the noise that it adds to that of
the exact algorithm, which comes from dropout and, for gradients, from the choice of minibatches:
√(std² - std of exact²). *Added error* combines it with the bias. A bias below its floor was not
seen: the error is then between that without a bias and that with one as large as the floor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from vrgcn.costs.epoch_cost import Advice
from vrgcn.diagnostics.diagnosis import REFERENCE, Diagnosis
from vrgcn.engine.estimators import find_estimator
from vrgcn.engine.samplers import sampler_class, size_of
from vrgcn.files.setting_names import setting
from vrgcn.training.moments import ROUNDING, Deviation

NOISIER = 1.1  # times the added noise of `ns` at a layer: above, the history does harm
BIASED = 0.1  # relative to the gradient's norm
STALE = 0.1  # relative distance of a table from the present activations
UNWRITTEN = 0.05  # share of the rows read
BETTER = 1.5  # times smaller added error of the gradient makes another estimator worth a try
DROWNED = 2.0  # times the added noise: above, the noise of exact training itself dominates
SAMPLING = "ns"  # the baseline for noise
NOTHING = "nothing to change"


def advise(diagnosis: Diagnosis, cheap: Advice | None = None) -> list[Advice]:
    """Return pieces of advice, the most pressing first; at least one.

    cheap: the advice on the cost, which comes first
    """
    if cheap is not None:  # then there is something to change
        return [cheap, *(piece for piece in advise(diagnosis) if NOTHING not in piece.action)]
    if not any(measured.layers for measured in diagnosis.estimators.values()):
        return [
            Advice(
                NOTHING,
                "nothing is estimated, for the model propagates only what is computed once, "
                "exactly",
            )
        ]
    used = diagnosis.config.estimator
    if used not in diagnosis.estimators:
        return [
            Advice("measure it too", f"{used}, which trains here, was not among the estimators")
        ]
    if not diagnosis.estimators[REFERENCE].gradients.known:
        advice = [*_unwritten(diagnosis, used), *_noisier_than_ns(diagnosis, used)]
        return [*advice, _no_gradient(diagnosis)]
    if used == REFERENCE:
        return [_of_exact(diagnosis)]
    more = [*_noisier_than_ns(diagnosis, used), *_biased(diagnosis, used)]
    advice = [*_unwritten(diagnosis, used), *more, *_better(diagnosis, used)]
    if not more:  # that advice may ask for a larger fan-out for reasons other than noise
        advice += _drowned(diagnosis, used)
    return advice or [_fine(diagnosis, used)]


def added_noise(estimate: Deviation, exact: Deviation) -> float:
    """Return √(std² - std of exact²); zero if only rounding is left."""
    added = math.sqrt(max(estimate.std**2 - exact.std**2, 0.0))
    return added if added > ROUNDING else 0.0


@dataclass(frozen=True)
class Error:
    """√(bias² + added noise²), the distance of one pass from the exact algorithm without its own
    noise. It is an interval, because the floor leaves the bias open."""

    least: float
    most: float

    def __str__(self) -> str:
        least, most = f"{self.least:.0%}", f"{self.most:.0%}"
        return most if least == most else f"{least} to {most}"


def added_error(estimate: Deviation, exact: Deviation) -> Error:
    noise = added_noise(estimate, exact)
    if estimate.biased:
        both = math.hypot(estimate.bias, noise)
        return Error(both, both)
    return Error(noise, math.hypot(max(estimate.bias, estimate.floor), noise))


def _unwritten(diagnosis: Diagnosis, used: str) -> Iterator[Advice]:
    for table in diagnosis.staleness.get(used, []):
        if table.unwritten > UNWRITTEN:
            what, remedy = {
                "h": (
                    "histories",
                    f"start warm ({setting('warm_start', True)}), visit all nodes "
                    f"({setting('visit', 'all')}) or refresh ({setting('refresh', 'always')})",
                ),
                "g": (
                    "gradients",
                    f"visit all nodes ({setting('visit', 'all')}), and give it an epoch to write "
                    "them",
                ),
            }[table.kind]
            yield Advice(
                remedy,
                f"{table.unwritten:.0%} of the {what} that this minibatch reads at layer "
                f"{table.level + 1} were never written and count as zero",
            )


def _noisier_than_ns(diagnosis: Diagnosis, used: str) -> Iterator[Advice]:
    estimators = diagnosis.estimators
    if not (find_estimator(used).history and _random(used)) or SAMPLING not in estimators:
        return
    for call, layer in estimators[used].layers.items():
        exact = estimators[REFERENCE].layers[call]
        mine = added_noise(layer, exact)
        theirs = added_noise(estimators[SAMPLING].layers[call], exact)
        if mine > NOISIER * theirs > 0:
            cold = not diagnosis.config.warm_start
            warm = f"start warm ({setting('warm_start', True)}), " if cold else ""
            yield Advice(
                f"{warm}lower the rate, or raise the fan-out",
                f"at learning rate {diagnosis.config.learning_rate:g} {used}'s noise is "
                f"{mine / theirs:.1f} times that of {SAMPLING} at layer {call + 1}",
            )


def _random(used: str) -> bool:
    """Return True if an estimator samples neighbours at random."""
    sampler = find_estimator(used).sampler
    kind = sampler_class(sampler) if isinstance(sampler, str) else sampler
    return bool(kind.random)


def _size(used: str) -> str:
    """Return the setting that decides how many neighbours an estimator computes; "" if it computes
    all of them, or none."""
    return size_of(find_estimator(used).sampler)


def _biased(diagnosis: Diagnosis, used: str) -> Iterator[Advice]:
    gradient = diagnosis.estimators[used].gradient
    if not (gradient.biased and gradient.bias > BIASED):
        return
    helps, cause = _remedy(diagnosis, used)
    yield Advice(
        helps,
        f"{used}'s gradient is biased by {gradient.bias:.0%} of its norm (noise alone "
        f"could show as {gradient.floor:.0%}); {cause}",
    )


def _remedy(diagnosis: Diagnosis, used: str) -> tuple[str, str]:
    """Return a remedy against a bias, and its cause."""
    estimator = find_estimator(used)
    stale = {"h": 0.0, "g": 0.0}
    for table in diagnosis.staleness.get(used, []):
        stale[table.kind] = max(stale[table.kind], table.relative)
    larger = f", raise the {_size(used)}" if _size(used) else ""
    if stale["g"] > max(STALE, stale["h"]):
        sampled = f", or correct them by samples ({setting('estimator', 'two-way-cv')})"
        correct = "" if _random(used) else sampled
        return (
            f"lower the learning rate{larger}{correct}",
            f"the gradients it reads of neighbours are off by {stale['g']:.0%}",
        )
    if stale["h"] > STALE:
        return (
            f"lower the learning rate{larger}, or refresh ({setting('visit', 'all')}, "
            f"{setting('refresh', 'always')})",
            f"the histories it reads are off by {stale['h']:.0%} of the activations",
        )
    if _random(used):
        return (
            f"raise the {_size(used)}",
            "noise that passes through nonlinear layers does not average out",
        )
    if estimator.backward == "none":
        return (
            f"keep gradients of neighbours ({setting('estimator', 'two-way')}) or sample some "
            f"({setting('estimator', 'cvd')})",
            "neighbours have no gradient of their own",
        )
    return (
        "lower the learning rate",
        "its histories are nearly fresh and what is left adds up",
    )


def _better(diagnosis: Diagnosis, used: str) -> Iterator[Advice]:
    errors = _gradient_errors(diagnosis)
    best = min(errors, key=lambda name: errors[name].most)
    mine, theirs = errors[used], errors[best]
    if theirs.most * BETTER < mine.least and mine.least > ROUNDING:
        yield Advice(
            f"try {setting('estimator', best)}" + _more_bias(diagnosis, best, used),
            f"the gradient of {best} is off by {theirs} on the same minibatches, that of {used} by "
            f"{mine} (the noise of exact training aside)",
        )
        return
    likely = min(errors, key=lambda name: errors[name].least)
    if errors[likely].least * BETTER < mine.least and mine.least > ROUNDING:
        yield Advice(
            f"measure with more passes ({setting('passes')})",
            f"{likely} may have a better gradient than {used}, off by {errors[likely]} and {mine} "
            "(the noise of exact training aside), but so few passes do not tell",
        )


def _more_bias(diagnosis: Diagnosis, best: str, used: str) -> str:
    theirs, mine = (diagnosis.estimators[name].gradient for name in (best, used))
    if not (theirs.biased and theirs.bias > mine.bias):
        return ""
    return (
        f"; but more of it is bias, {theirs.bias:.0%} against {mine.bias:.0%}, which does not "
        "average out over steps"
    )


def _drowned(diagnosis: Diagnosis, used: str) -> Iterator[Advice]:
    if not _size(used):
        return
    exact = diagnosis.estimators[REFERENCE].gradient
    added = added_noise(diagnosis.estimators[used].gradient, exact)
    if exact.std > DROWNED * added and exact.std > ROUNDING:
        yield Advice(
            f"leave the {_size(used)}: a larger one would lower the noise little",
            "the choice of minibatches and dropout make the gradient of exact training vary by "
            f"{exact.std:.0%}, {used} adds {added:.0%}",
        )


def _fine(diagnosis: Diagnosis, used: str) -> Advice:
    gradient = diagnosis.estimators[used].gradient
    bias = f"bias {gradient.bias:.0%}" if gradient.biased else f"bias below {gradient.floor:.0%}"
    larger = f"; a larger {_size(used)} lowers the noise" if _random(used) else ""
    return Advice(
        f"{NOTHING}{larger}",
        f"{used}'s gradient is off by {_gradient_errors(diagnosis)[used]} a step, the noise of "
        f"exact training aside (noise {gradient.std:.0%}, {bias}), and none of the others is much "
        "better",
    )


def _no_gradient(diagnosis: Diagnosis) -> Advice:
    """Return advice for when there was nothing to compare gradients with."""
    if diagnosis.estimators[REFERENCE].gradients.trained:
        return Advice(
            f"compare at other weights ({setting('epochs')}, {setting('learning_rate')})",
            "gradients cannot be compared, for that of exact training is zero",
        )
    return Advice(
        f"measure with more passes ({setting('passes')}) or larger minibatches "
        f"({setting('batch_size')})",
        f"gradients cannot be compared, for none of the {diagnosis.passes} minibatches of "
        f"{len(diagnosis.nodes):,} nodes that were drawn has a training node",
    )


def _of_exact(diagnosis: Diagnosis) -> Advice:
    errors = _gradient_errors(diagnosis)
    if not errors:
        return Advice(NOTHING, "nothing was compared with exact training")
    best = min(errors, key=lambda name: errors[name].most)
    return Advice(
        NOTHING,
        f"training is exact; of the others {best} comes closest, its gradient off by "
        f"{errors[best]} a step, the noise of exact training aside",
    )


def _gradient_errors(diagnosis: Diagnosis) -> dict[str, Error]:
    """Return the added error of each estimator's gradient, except exact's."""
    exact = diagnosis.estimators[REFERENCE].gradient
    return {
        name: added_error(measured.gradient, exact)
        for name, measured in diagnosis.estimators.items()
        if name != REFERENCE
    }
