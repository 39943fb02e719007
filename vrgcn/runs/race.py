"""The rules of a race between candidates: who is trained next, for how long, and who goes on.

    round    all candidates that are still in come to the same number of epochs, or where links are
             predicted, to the same work; each round to twice that of the one before, up to `MOST`
             evaluations. A candidate is out if its best validation score so far is behind the best
             of all by more than a margin and the noise of scores
    work     n epochs of a candidate are n times its counted work of an epoch
    length   epochs that a candidate is taken to train in all if it wins: twice as many as to its
             best epoch so far, and its patience, and no less than `LEAST` evaluations
    budget   whoever may still win: the work of all others is at most half of its work by its length

A winner trains until its work is twice that of all others, even if its patience is at an end. So a
race costs at most half of the winner's training on top of it. If a round would exceed the budget,
the best candidate trains on, because its length grows with its curve; if that does not help, the
round is shorter; if no round is possible, the last one leaves, and of two the better one wins.

Everything here is a function of the candidates' curves. No clock has a part in it, and a race that
was interrupted continues from the curves of its candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vrgcn.tasks.metrics import Metric
from vrgcn.training.state import Epoch

SHARE = 0.5  # of the winner's work that all others may cost together
LEAST = 24  # evaluations of a winner that make a race worth its cost
MOST = 16  # evaluations of the usual candidate after which scores are not compared again
_FEWEST = 2  # evaluations of the usual candidate in the first round
_MARGIN = 0.02  # behind which a candidate is out, beside the noise of scores

Curves = Mapping[str, Sequence[Epoch]]


@dataclass(frozen=True)
class Racer:
    """A candidate as the rules see it.

    work: counted, of an epoch
    epochs: of its training at most; patience: evaluations without a better score that end it, 0 for
        never; every: epochs between evaluations
    pace: units of a round that an epoch is: 1 for rounds of equal epochs
    gain: by which its score has to be better than that of the first candidate
    """

    name: str
    work: float
    epochs: int
    patience: int = 0
    every: int = 1
    pace: float = 1.0
    gain: float = 0.0

    def reach(self, units: float) -> int:
        """Return the epochs that some units are enough for, up to one that is evaluated."""
        whole = int(units / self.pace + 1e-9) // self.every * self.every
        return min(whole, self.epochs)

    def least(self, spent: float) -> int:
        """Return the epochs after which others that cost some work were worth it."""
        return min(self.epochs, math.ceil(spent / (SHARE * self.work) - 1e-9))


@dataclass(frozen=True)
class Turn:
    """Train a candidate until it has so many epochs."""

    name: str
    epochs: int


@dataclass(frozen=True)
class Outcome:
    """The winner's name, and the scores of the candidates that were compared."""

    winner: str
    scores: dict[str, float]


@dataclass
class _Field:
    """Candidates that are still in, the epochs that each has had, the units of the last round, and
    the epochs of each up to it."""

    alive: list[Racer]
    done: dict[str, int]
    units: float = 0.0
    compared: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Race:
    """racers: the usual one first
    validated: validation nodes or edges that a score is taken of
    first: evaluations of the usual one in the first round
    spent: work that was spent before on candidates that are out
    share: of the winner's work that all others may cost together
    failed: candidates whose training failed
    """

    racers: Sequence[Racer]
    metric: Metric
    validated: int
    first: int = 2
    spent: float = 0.0
    share: float = SHARE
    failed: set[str] = field(default_factory=set)

    def next(self, curves: Curves, *, over: bool = False) -> Turn | Outcome:
        """Return what to do after the training so far.

        over: no more time: the best so far wins
        """
        field = _Field(list(self.racers), dict.fromkeys((r.name for r in self.racers), 0))
        while True:
            field.alive = [r for r in field.alive if r.name not in self.failed] or field.alive
            if len(field.alive) < 2:
                return self._outcome(field, curves)
            step = self._next(field, curves)
            if step is None and len(field.alive) > 2:
                field.alive.remove(self._placed(field, curves)[-1])
                continue
            if step is None:
                return self._outcome(field, curves)
            for racer, epochs in step.targets:
                curve = curves.get(racer.name, ())
                if len(curve) < epochs and not self._ended(racer, curves):
                    turn = Turn(racer.name, epochs)
                    return self._outcome(field, curves) if over else turn
                field.done[racer.name] = min(epochs, len(curve))
            if step.units:
                field.units = step.units
                field.compared |= {r.name: r.reach(step.units) for r in field.alive}
                self._drop(field, curves)

    def _next(self, field: _Field, curves: Curves) -> _Step | None:
        """Return the next round, as long as the budget allows; or the best candidate by itself, if
        its longer curve lets it pay for the round; None if nobody gets further."""
        first = self.racers[0]
        unit = first.every * first.pace
        before = round(field.units / unit)
        wanted = min(max(2 * before, self.first), max(MOST, self.first))
        leader = self._placed(field, curves)[0]
        for units in range(wanted, before or _FEWEST - 1, -1):
            step = _Step.round(field, units * unit)
            further = any(
                epochs > field.done[r.name] and not self._ended(r, curves, field.done[r.name])
                for r, epochs in step.targets
            )
            unpaid = self._unpaid(field, step, curves)
            if further and not unpaid:
                return step
            ahead = _Step(0.0, [(leader, field.done[leader.name] + leader.every)])
            ended = self._ended(leader, curves, field.done[leader.name])
            alone = not ended and ahead.targets[0][1] <= leader.epochs
            pays = units == wanted and unpaid == [leader] and alone
            if pays and not self._unpaid(field, ahead, curves):
                return ahead
        return None

    def _unpaid(self, field: _Field, step: _Step, curves: Curves) -> list[Racer]:
        """Return the candidates that could not pay for the others after a step, if they won."""
        done = field.done | {r.name: epochs for r, epochs in step.targets}
        total = self.spent + sum(r.work * done[r.name] for r in self.racers)
        return [
            r
            for r in field.alive
            if total - r.work * done[r.name]
            > self.share * r.work * self._length(r, curves, field.done[r.name]) + 1e-9
        ]

    def _length(self, racer: Racer, curves: Curves, done: int) -> int:
        """Return the length of a candidate's training, by its curve after some epochs."""
        if not racer.patience:
            return racer.epochs
        best = self._best(racer, curves, done)
        epoch = 0 if best is None else best.epoch
        longer = 2 * epoch + racer.patience * racer.every
        return min(racer.epochs, max(longer, LEAST * racer.every))

    def _ended(self, racer: Racer, curves: Curves, done: int | None = None) -> bool:
        """True if the epochs or the patience of a candidate are at their end, after some epochs or
        all that it had."""
        curve = curves.get(racer.name, ())[:done]
        if len(curve) >= racer.epochs:
            return True
        best = self._best(racer, curves, len(curve))
        behind = sum(p.val is not None for p in curve[0 if best is None else best.epoch :])
        return 0 < racer.patience <= behind

    def _drop(self, field: _Field, curves: Curves) -> None:
        """Let those leave who are too far behind."""
        scores = self._scores(field, curves)
        leader = self._placed(field, curves)[0].name
        if leader not in scores:
            return
        best = scores[leader]
        needed = moved(self.metric, best, -_MARGIN - score_noise(self.metric, best, self.validated))
        field.alive = [
            r
            for r in field.alive
            if r.name not in scores or not self.metric.better(needed, scores[r.name])
        ]

    def _best(self, racer: Racer, curves: Curves, epochs: int) -> Epoch | None:
        """Return the best of the first points of a candidate's curve; None before it is scored."""
        best: Epoch | None = None
        for point in curves.get(racer.name, ())[:epochs]:
            if point.val is None:
                continue
            if best is None or best.val is None or self.metric.better(point.val, best.val):
                best = point
        return best

    def _scores(self, field: _Field, curves: Curves) -> dict[str, float]:
        """Return the best score of each candidate up to the last round that it had."""
        bests = {r.name: self._best(r, curves, field.compared.get(r.name, 0)) for r in self.racers}
        return {name: b.val for name, b in bests.items() if b is not None and b.val is not None}

    def _placed(self, field: _Field, curves: Curves) -> list[Racer]:
        """Return those who are in, the best first; of equal scores the first named."""
        scores = self._scores(field, curves)
        worst = math.inf if self.metric.error else -math.inf
        ranked = {r.name: scores.get(r.name, worst) for r in field.alive}
        return sorted(field.alive, key=lambda r: ranked[r.name], reverse=not self.metric.error)

    def _outcome(self, field: _Field, curves: Curves) -> Outcome:
        scores, usual = self._scores(field, curves), self.racers[0]
        winner = field.alive[0]
        for r in field.alive[1:]:
            if winner.name not in scores or r.name not in scores:
                continue
            gain = r.gain if winner is usual else 0.0
            if self.metric.better(scores[r.name], moved(self.metric, scores[winner.name], gain)):
                winner = r
        return Outcome(winner.name, scores)


@dataclass(frozen=True)
class _Step:
    """Epochs that some candidates come to; units: of the round, 0 if it is none."""

    units: float
    targets: list[tuple[Racer, int]]

    @staticmethod
    def round(field: _Field, units: float) -> _Step:
        done = field.done
        return _Step(units, [(r, max(done[r.name], r.reach(units))) for r in field.alive])


def score_noise(metric: Metric, score: float, validated: int) -> float:
    """Return the standard error of a score of so many nodes or edges; of an error, as a gain (see
    `moved`)."""
    if metric.error:
        return 1 / (4 * math.sqrt(2 * validated))
    share = min(max(score, 0.0), 1.0)
    return math.sqrt(share * (1 - share) / validated)


def moved(metric: Metric, score: float, gain: float) -> float:
    """Return a score that is better by a gain; an error by four times that share of itself."""
    return score * (1 - 4 * gain) if metric.error else score + gain
