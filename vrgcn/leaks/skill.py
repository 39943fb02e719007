"""How well one feature alone tells a target, measured on nodes that the rule was not made of.

The rule is the simplest there is: a bin of the feature's values predicts what the nodes of one half
have in it, and the other half of the nodes says how right that is.

    skill   of classes: (balanced accuracy - guessing) / (1 - guessing), classes counting the same;
            of numbers: R². 0 is a guess, 1 is always right
    AUC     of each class against all others
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

LEAST = 10  # nodes of a class in either half

Floats = NDArray[np.float64]


def halves(count: int) -> NDArray[np.bool_]:
    """(count,) bool, a random half of some nodes: the rule is made of these."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(1)).numpy()
    return np.asarray(order < count // 2)


@dataclass(frozen=True, eq=False)
class Members:
    """The target of some nodes as classes.

    of: (nodes, classes) 0 or 1; each class has some and lacks some nodes in either half
    names: (classes,) numbers of the classes
    exclusive: a node has one class
    fitted: (nodes,) the half that rules are made of
    """

    of: Floats
    names: NDArray[np.int64]
    exclusive: bool
    fitted: NDArray[np.bool_]

    @staticmethod
    def make(of: Floats, exclusive: bool) -> Members | None:
        """The classes that enough nodes have and lack; None if there are fewer than two of them,
        or none where a node may have several."""
        fitted = halves(len(of))
        enough: NDArray[np.bool_] = np.ones(of.shape[1], bool)
        for half in (fitted, ~fitted):
            had = of[half].sum(0)
            enough = np.asarray(enough & (had >= LEAST) & (half.sum() - had >= LEAST))
        if enough.sum() < (2 if exclusive else 1):
            return None
        kept = of[:, enough].any(1) if exclusive else np.ones(len(of), bool)
        members = of[:, enough] * np.asarray(kept)[:, None]
        return Members(members, np.flatnonzero(enough), exclusive, fitted)


@dataclass(frozen=True, eq=False)
class Skill:
    """skill: of all classes together; auc: (classes,) of each against all others"""

    skill: float
    auc: Floats


def skill_of_bins(codes: NDArray[np.int64], members: Members) -> Skill:
    """The skill of one feature. codes: (nodes,) its bins"""
    size = int(codes.max(initial=0)) + 1
    made, held = (
        _counts(codes[half], members.of[half], size) for half in (members.fitted, ~members.fitted)
    )
    return _judged(made, held, members.exclusive)


def _counts(codes: NDArray[np.int64], of: Floats, size: int) -> Floats:
    """(bins, 2, classes) how many nodes of each bin have a class, and lack it."""
    had = np.zeros((size, of.shape[1]))
    np.add.at(had, codes, of)
    every = np.bincount(codes, minlength=size)[:, None]
    return np.stack([had, every - had], axis=1)


def _judged(made: Floats, held: Floats, exclusive: bool) -> Skill:
    """made, held: (bins, 2, classes) counts of both halves"""
    shares = made / np.maximum(made.sum(0), 1)
    odds = shares[:, 0] / np.maximum(shares[:, 0] + shares[:, 1], 1e-12)
    order = np.argsort(odds, axis=0)
    had, lacked = (np.take_along_axis(held[:, side], order, 0) for side in (0, 1))
    below = np.cumsum(lacked, 0) - lacked
    tied = _tied(np.take_along_axis(odds, order, 0), lacked, below)
    auc = (had * tied).sum(0) / np.maximum(had.sum(0) * lacked.sum(0), 1)
    skill = 0.0
    if exclusive:
        chosen = shares[:, 0].argmax(1)
        right = held[np.arange(len(held)), 0, chosen]
        total = held[:, 0].sum(0)
        accuracy = float(np.bincount(chosen, right, minlength=len(total)) @ (1 / total))
        guess = 1 / len(total)
        skill = (accuracy / len(total) - guess) / (1 - guess)
    return Skill(skill, auc)


def _tied(odds: Floats, lacked: Floats, below: Floats) -> Floats:
    """(bins, classes) how many nodes without the class each bin beats, bins of equal odds counting
    half: bins without any node of the first half all have odds 0."""
    beaten = below + lacked / 2
    same = np.diff(odds, axis=0) == 0
    for label in same.any(0).nonzero()[0]:
        groups = np.concatenate([[0], np.cumsum(~same[:, label])])
        whole = np.bincount(groups, lacked[:, label])
        before = np.cumsum(whole) - whole
        beaten[:, label] = (before + whole / 2)[groups]
    return beaten


def skills_of_presence(present: Any, members: Members) -> tuple[Floats, Floats]:
    """(features,) skills and (features, classes) AUCs of features that a node has or lacks.

    present: (nodes, features) scipy CSR of 0 and 1
    """
    rates = []
    for half in (members.fitted, ~members.fitted):
        of = members.of[half]
        had = np.asarray(present[half].T @ of)
        every = np.asarray(present[half].sum(0)).ravel()[:, None]
        total = of.sum(0)
        rates.append((had / total, (every - had) / np.maximum(len(of) - total, 1)))
    (made, made_others), (held, held_others) = rates
    auc = 0.5 + np.sign(made - made_others) * (held - held_others) / 2
    classes = members.of.shape[1]
    with_it, without = made.argmax(1), made.argmin(1)
    rows = np.arange(len(made))
    accuracy = (held[rows, with_it] + 1 - held[rows, without]) / classes
    accuracy[with_it == without] = 1 / classes
    guess = 1 / classes
    return (accuracy - guess) / (1 - guess), auc


def r2_of_bins(codes: NDArray[np.int64], numbers: Floats, fitted: NDArray[np.bool_]) -> float:
    """R² of predicting numbers by the mean of their bin."""
    size = int(codes.max(initial=0)) + 1
    count = np.bincount(codes[fitted], minlength=size)
    mean = numbers[fitted].mean()
    sums = np.bincount(codes[fitted], numbers[fitted] - mean, minlength=size)
    predicted = mean + sums / np.maximum(count, 1)
    return _r2(predicted[codes[~fitted]], numbers[~fitted])


def r2_of_presence(present: Any, numbers: Floats, fitted: NDArray[np.bool_]) -> Floats:
    """(features,) R² of predicting numbers by whether a node has a feature."""
    mean = numbers[fitted].mean()
    made, held = present[fitted], present[~fitted]
    of_made, of_held = numbers[fitted] - mean, numbers[~fitted] - mean
    count = np.asarray(made.sum(0)).ravel()
    sums = np.asarray(made.T @ of_made).ravel()
    high = sums / np.maximum(count, 1)
    low = -sums / np.maximum(fitted.sum() - count, 1)
    count, sums = np.asarray(held.sum(0)).ravel(), np.asarray(held.T @ of_held).ravel()
    rest, rest_sums = len(of_held) - count, of_held.sum() - sums
    gained = 2 * (high * sums + low * rest_sums) - (high**2 * count + low**2 * rest)
    spread = float(np.square(of_held).sum())
    # relative to the mean of the first half, which is as good as that of the second
    return gained / spread if spread else np.zeros_like(gained)


def _r2(predicted: Floats, numbers: Floats) -> float:
    spread = float(np.square(numbers - numbers.mean()).sum())
    return 1 - float(np.square(numbers - predicted).sum()) / spread if spread else 0.0
