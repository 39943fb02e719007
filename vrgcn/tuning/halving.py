"""Successive halving of trials that can be resumed: which continue, and which wait.

A trial is judged when it has cost as much as the first trial's first few epochs, then twice and
four times as much, and so on: the rungs. At each it continues if its score is in the better third
of the scores with which trials came to that rung, its own among them; else it is paused. Later
trials may be worse, and then a trial that was paused is in the better third after all: it is
promoted, and continues where it stopped. A trial that has ended keeps its score at all later rungs.
Nothing but scores and counted costs (costs/) decides, so the same trials are always judged alike;
one whose epochs cost twice as much is judged after half as many.

This is asynchronous successive halving (Li et al., MLSys 2020), but a trial that continues is not
interrupted: it waits only when it is behind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

_SPACING = 2  # times the cost of a rung is that of the next
_KEPT = 3  # one in so many continues


@dataclass(frozen=True)
class Course:
    """What a trial has come to.

    curve: its best score so far by epoch
    cost: of one of its epochs, in epochs of the first trial
    ended: True if it has been trained to its end
    paused: True if it can be resumed
    """

    number: int
    curve: Mapping[int, float]
    cost: float = 1.0
    ended: bool = False
    paused: bool = False

    @property
    def score(self) -> float | None:
        """The best score so far."""
        return self.curve[max(self.curve)] if self.curve else None


@dataclass(frozen=True)
class Halving:
    """first: epochs of the first trial that the first rung costs; larger: True if larger scores
    are better"""

    first: float
    larger: bool

    def rungs(self, course: Course) -> int:
        """Return how many rungs a trial has come to by its own epochs."""
        spent = course.cost * max(course.curve, default=0)
        return next(rung for rung in count() if spent < self.first * _SPACING**rung)

    def continues(self, course: Course, others: Sequence[Course]) -> bool:
        """Return True if a trial is in the better third at the last rung that it came to."""
        last = self.rungs(course) - 1
        if last < 0:
            return True
        own = self._score(course, last)
        assert own is not None
        every = (other for other in (*others, course))
        scores = [score for each in every if (score := self._score(each, last)) is not None]
        return own in sorted(scores, reverse=self.larger)[: math.ceil(len(scores) / _KEPT)]

    def promoted(self, courses: Sequence[Course], waiting: Sequence[int] = ()) -> Course | None:
        """Return the paused trial that is resumed next: of the highest rung the best, if it is in
        the better third there; None if no trial is.

        waiting: numbers of trials that are not resumed yet
        """
        ready = [
            course
            for course in courses
            if course.paused
            and course.number not in waiting
            and self.continues(course, [other for other in courses if other is not course])
        ]
        return self.best(ready, by_rung=True)

    def best(self, courses: Sequence[Course], *, by_rung: bool = False) -> Course | None:
        """Return the trial with the best score, of equal ones the first; None if none has a score.

        by_rung: among those that came to the highest rung
        """
        scored = [course for course in courses if course.score is not None]
        if by_rung and scored:
            highest = max(self.rungs(course) for course in scored)
            scored = [course for course in scored if self.rungs(course) == highest]
        sign = -1.0 if self.larger else 1.0
        return min(scored, key=lambda each: (sign * (each.score or 0.0), each.number), default=None)

    def _score(self, course: Course, rung: int) -> float | None:
        """Return the score with which a trial came to a rung; None if it has not."""
        needed = self.first * _SPACING**rung
        # If not every epoch is evaluated, several rungs may share one score.
        at_rung = (course.curve[e] for e in sorted(course.curve) if course.cost * e >= needed)
        return next(at_rung, course.score if course.ended else None)
