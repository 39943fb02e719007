"""Greedy selection of an average on validation predictions (Caruana et al., ICML 2004).

The average begins empty. Each round adds the member, new or again, that gives the average the best
score; after all rounds the best of these averages is kept. A member's weight is the share of the
rounds in which it was added. Ties go to the average of fewer members, then to the earlier member
and round.

Few validation nodes are easily fitted by chance. There the members far behind the best are left
out, the selection is repeated on bags, nodes drawn with replacement, and a member's weight is the
mean over the bags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError

_ROUNDS = 40
_ENOUGH = 2000  # validation nodes that are not drawn in bags
_BAGS, _BAG_ROUNDS = 20, 10
_LEAST = 0.02  # smallest weight that a member keeps


def evaluations(members: int, nodes: int) -> int:
    """Return how often a choice among members computes the score."""
    return members * (_ROUNDS if nodes >= _ENOUGH else _BAGS * _BAG_ROUNDS + 1)


@dataclass(frozen=True)
class Chosen:
    """The chosen average. weights: of the chosen members, with sum 1; score: of the average"""

    weights: dict[str, float]
    score: float


def choose_average(
    shares: Mapping[str, Tensor],
    score: Callable[[Tensor], float],
    better: Callable[[float, float], bool],
    rounds: int = _ROUNDS,
    over: Callable[[], bool] = bool,
) -> Chosen:
    """Return the best-scoring average that greedy selection finds.

    shares: (validation nodes, width) of each member, as `Task.shares` gives them
    score: of the mean of shares; better: True if a score is better than another
    over: True if no further round begins after the first
    """
    if not shares:
        raise InputError("there are no predictions to average")
    names, added = list(shares), Counter[str]()
    total: Tensor | None = None
    best: tuple[float, dict[str, float]] | None = None
    for count in range(1, rounds + 1):
        added_best: tuple[float, str] | None = None
        # Chosen members come first: of equal scores the first is taken.
        for name in sorted(names, key=lambda name: name not in added):
            sums = shares[name] if total is None else total + shares[name]
            value = score(sums / count)
            if added_best is None or better(value, added_best[0]):
                added_best = value, name
        assert added_best is not None
        value, name = added_best
        added[name] += 1
        total = shares[name] if total is None else total + shares[name]
        weights = {each: added[each] / count for each in names if each in added}
        if best is None or better(value, best[0]):  # later rounds have as many members or more
            best = value, weights
        if over():
            break
    assert best is not None
    return Chosen(best[1], best[0])


def choose_robustly(
    shares: Mapping[str, Tensor],
    labels: Tensor,
    score: Callable[[Tensor, Tensor], float],
    better: Callable[[float, float], bool],
    near: Callable[[float, float], bool] = lambda score, best: True,
    bags: int | None = None,
    over: Callable[[], bool] = bool,
) -> Chosen:
    """Return the average of `choose_average`, or its mean over bags of few validation nodes.

    shares: (validation nodes, width) of each member; labels: of these nodes
    score: of the mean of shares of some nodes, and their labels
    near: True if a member's score is not far behind that of the best member
    bags: how many; None: by the number of nodes
    over: True if no further round or bag begins after the first
    """
    count = len(labels)
    bags = (0 if count >= _ENOUGH else _BAGS) if bags is None else bags
    if not bags:
        return choose_average(shares, lambda mean: score(mean, labels), better, over=over)
    scores = {name: score(found, labels) for name, found in shares.items()}
    best = next(iter(scores.values()))
    for found in scores.values():
        best = found if better(found, best) else best
    shares = {name: found for name, found in shares.items() if near(scores[name], best)}
    generator, total = torch.Generator().manual_seed(0), Counter[str]()
    drawn_bags = 0
    while drawn_bags < bags and not (drawn_bags and over()):
        drawn_bags += 1
        nodes = torch.randint(count, (count,), generator=generator)
        of_bag = labels[nodes]

        def scored(mean: Tensor, of_bag: Tensor = of_bag) -> float:
            return score(mean, of_bag)

        drawn = {name: found[nodes] for name, found in shares.items()}
        total.update(choose_average(drawn, scored, better, _BAG_ROUNDS, over).weights)
    kept = {name: total[name] for name in shares if total[name] >= _LEAST * drawn_bags}
    weights = {name: weight / sum(kept.values()) for name, weight in kept.items()}
    mean = torch.stack([weight * shares[name] for name, weight in weights.items()]).sum(0)
    return Chosen(weights, score(mean, labels))
