"""What to change, said from the measured numbers by the rules in docs/diagnostics.md.

All rules speak of the estimator that trains. *Added noise* is what it adds to the noise that
dropout gives the exact algorithm, √(std² - std of exact²), and *added error* that and its bias.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from vrgcn.diagnostics.diagnosis import REFERENCE, Diagnosis
from vrgcn.engine.estimators import find_estimator
from vrgcn.engine.samplers import sampler_class
from vrgcn.training.moments import ROUNDING, Deviation

NOISIER = 1.1  # times the added noise of `ns` at a layer: above, the history does harm
BIASED = 0.1  # of the gradient's norm
STALE = 0.1  # relative distance of a table from the present activations
UNWRITTEN = 0.05  # share of the rows read
BETTER = 1.5  # times smaller added error of the gradient: another estimator is worth a try
DROPOUT = 2.0  # times the added noise: dropout's own noise is what matters


def advise(diagnosis: Diagnosis) -> list[str]:
    """Sentences, the most pressing first; at least one."""
    if not any(measured.layers for measured in diagnosis.estimators.values()):
        return ["nothing is estimated: the model propagates only what is computed once, exactly"]
    used = diagnosis.config.estimator
    if used not in diagnosis.estimators:
        return [f"{used}, which trains here, was not among the estimators measured"]
    if used == REFERENCE:
        return [_of_exact(diagnosis)]
    found = [
        *_unwritten(diagnosis, used),
        *_noisier_than_ns(diagnosis, used),
        *_biased(diagnosis, used),
        *_better(diagnosis, used),
        *_dropout(diagnosis, used),
    ]
    return found or [_fine(diagnosis, used)]


def added_noise(estimate: Deviation, exact: Deviation) -> float:
    """√(std² - std of exact²), zero where rounding is all there is."""
    added = math.sqrt(max(estimate.std**2 - exact.std**2, 0.0))
    return added if added > ROUNDING else 0.0


def added_error(estimate: Deviation, exact: Deviation) -> float:
    """√(bias² + added noise²): how far one pass is from the exact algorithm, dropout aside."""
    return math.hypot(estimate.bias, added_noise(estimate, exact))


def _unwritten(diagnosis: Diagnosis, used: str) -> Iterator[str]:
    for table in diagnosis.staleness.get(used, []):
        if table.unwritten > UNWRITTEN:
            yield (
                f"{table.unwritten:.0%} of the histories that this minibatch reads at layer "
                f"{table.level + 1} were never written and count as zero: start warm "
                "(--warm-start), visit all nodes (--visit all) or refresh (--refresh always)"
            )


def _noisier_than_ns(diagnosis: Diagnosis, used: str) -> Iterator[str]:
    estimators = diagnosis.estimators
    if not (find_estimator(used).history and _random(used)) or "ns" not in estimators:
        return
    for call, layer in estimators[used].layers.items():
        exact = estimators[REFERENCE].layers[call]
        mine, theirs = added_noise(layer, exact), added_noise(estimators["ns"].layers[call], exact)
        if mine > NOISIER * theirs > 0:
            warm = "" if diagnosis.config.warm_start else "start warm (--warm-start), "
            yield (
                f"at learning rate {diagnosis.config.learning_rate:g} {used}'s noise is "
                f"{mine / theirs:.1f} times that of ns at layer {call + 1}: {warm}lower the rate, "
                "or raise the fan-out"
            )


def _random(used: str) -> bool:
    """Whether an estimator samples neighbours at random."""
    sampler = find_estimator(used).sampler
    kind = sampler_class(sampler) if isinstance(sampler, str) else sampler
    return bool(kind.random)


def _biased(diagnosis: Diagnosis, used: str) -> Iterator[str]:
    gradient = diagnosis.estimators[used].gradient
    if not (gradient.biased and gradient.bias > BIASED):
        return
    stale = max((table.relative for table in diagnosis.staleness.get(used, [])), default=0.0)
    if stale > STALE:
        why = (
            f"the histories it reads are off by {stale:.0%} of the activations: lower the learning "
            "rate, raise the fan-out, or refresh (--visit all, --refresh always)"
        )
    elif _random(used):
        why = "noise that passes through nonlinear layers does not average out: raise the fan-out"
    else:
        why = "neighbours have no gradient of their own: sample some (--estimator cvd)"
    yield (
        f"{used}'s gradient is biased by {gradient.bias:.0%} of its norm (noise alone "
        f"could show as {gradient.floor:.0%}); {why}"
    )


def _better(diagnosis: Diagnosis, used: str) -> Iterator[str]:
    errors = _gradient_errors(diagnosis)
    best = min(errors, key=errors.__getitem__)
    if errors[best] * BETTER < errors[used] and errors[used] > ROUNDING:
        theirs, mine = (diagnosis.estimators[name].gradient for name in (best, used))
        more = theirs.biased and theirs.bias > mine.bias
        yield (
            f"the gradient of {best} is off by {errors[best]:.0%} on the same minibatch, that of "
            f"{used} by {errors[used]:.0%} (dropout's own noise aside): try {best}"
            + (
                f"; but more of it is bias, {theirs.bias:.0%} against {mine.bias:.0%}, which does "
                "not average out over steps"
                if more
                else ""
            )
        )


def _dropout(diagnosis: Diagnosis, used: str) -> Iterator[str]:
    exact = diagnosis.estimators[REFERENCE].gradient
    added = added_noise(diagnosis.estimators[used].gradient, exact)
    if exact.std > DROPOUT * added and exact.std > ROUNDING:
        yield (
            f"dropout alone makes the gradient vary by {exact.std:.0%}, {used} adds {added:.0%}: "
            "a larger fan-out would lower its noise little"
        )


def _fine(diagnosis: Diagnosis, used: str) -> str:
    gradient = diagnosis.estimators[used].gradient
    return (
        f"{used}'s gradient is off by {_gradient_errors(diagnosis)[used]:.0%} a step, dropout's "
        f"own noise aside (noise {gradient.std:.0%}, bias {gradient.bias:.0%}), and none of the "
        "others is much better: nothing to change; a larger fan-out lowers the noise"
    )


def _of_exact(diagnosis: Diagnosis) -> str:
    errors = _gradient_errors(diagnosis)
    if not errors:
        return "nothing was compared with exact training"
    best = min(errors, key=errors.__getitem__)
    return (
        f"training is exact; of the others {best} comes closest, its gradient off by "
        f"{errors[best]:.0%} a step, dropout's own noise aside"
    )


def _gradient_errors(diagnosis: Diagnosis) -> dict[str, float]:
    """The added error of each estimator's gradient, exact left out."""
    exact = diagnosis.estimators[REFERENCE].gradient
    return {
        name: added_error(measured.gradient, exact)
        for name, measured in diagnosis.estimators.items()
        if name != REFERENCE
    }
