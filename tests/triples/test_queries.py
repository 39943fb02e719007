"""Queries and their candidates: which are negatives, how often they are drawn, what a loss is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.targets.test_triple_split import as_set, knowledge, store, triples_of
from vrgcn.pairs.terms import LOSSES
from vrgcn.targets.triple_split import split_triples
from vrgcn.triples.queries import Asked, QuerySource


def source_of(
    graph: Any, loss: Any = "softmax", negatives: int = 10**9, **more: Any
) -> QuerySource:
    triples = triples_of(split_triples(graph, (0.6, 0.2, 0.2)))
    return QuerySource(triples, loss, negatives, **more)


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def negatives(asked: Asked) -> list[set[int]]:
    """The negatives of each query."""
    free = torch.ones(len(asked), len(asked.candidates), dtype=torch.bool)
    free[asked.no_negative] = False
    return [{*asked.candidates[row].tolist()} for row in free]


def test_the_terms_of_all_queries_are_the_training_triples_and_their_reverses() -> None:
    source = source_of(knowledge())
    asked = source.ask(torch.arange(source.queries), drawn())
    terms = torch.stack(
        [asked.sources[asked.rows], asked.directions[asked.rows], asked.targets], dim=1
    )
    triples = source.triples
    assert len(terms) == source.terms == 2 * len(triples.train)
    assert as_set(terms) == as_set(triples.both_ways(triples.train))
    assert len(as_set(torch.stack([asked.sources, asked.directions], dim=1))) == source.queries


@pytest.mark.parametrize("count", [7, 10**9])
@pytest.mark.parametrize("graph", [knowledge(), store()])
@pytest.mark.parametrize("sampling", ["uniform", "degree"])
def test_negatives_are_all_candidates_of_the_kind_but_the_training_targets(
    graph: Any, count: int, sampling: Any
) -> None:
    source = source_of(graph, negatives=count, sampling=sampling)
    triples = source.triples
    true = as_set(triples.both_ways(triples.train))
    places = torch.arange(0, source.queries, 3)
    asked = source.ask(places, drawn())
    for query, found in enumerate(negatives(asked)):
        one, direction = int(asked.sources[query]), int(asked.directions[query])
        start, stop = triples.spans[direction].tolist()
        wanted = {
            node
            for node in asked.candidates.tolist()
            if start <= node < stop and (one, direction, node) not in true
        }
        assert found == wanted


def test_validation_and_test_targets_are_negatives_as_any_other_node_is() -> None:
    """To leave them out would tell the model which they are."""
    source = source_of(knowledge())
    triples = source.triples
    asked = source.ask(torch.arange(source.queries), drawn())
    among = {
        (int(one), int(direction), node)
        for one, direction, found in zip(
            asked.sources, asked.directions, negatives(asked), strict=True
        )
        for node in found
    }
    held = as_set(triples.both_ways(torch.cat([triples.val, triples.test])))
    asked_for = as_set(torch.stack([asked.sources, asked.directions], dim=1))
    reachable = {triple for triple in held if triple[:2] in asked_for}
    assert len(reachable) > 20
    assert reachable <= among


@pytest.mark.parametrize("sampling", ["uniform", "degree"])
def test_the_sum_over_drawn_negatives_is_on_average_the_sum_over_all(sampling: Any) -> None:
    """4,000 draws of 12 candidates; the relative error of the mean is below 3% for each query."""
    source = source_of(knowledge(), negatives=12, sampling=sampling)
    everything = source_of(knowledge())
    scores = torch.randn(source.queries, 30, generator=drawn(1), dtype=torch.float64)
    places, generator = torch.arange(12), drawn()
    if sampling == "degree":  # a node that no training triple ends in is never drawn
        ends = torch.bincount(source.targets, minlength=30)
        scores[:, ends == 0] = -100
    total = torch.zeros(12, dtype=torch.float64)
    for _ in range(4000):
        total += _sum(source.ask(places, generator), scores)
    wanted = _sum(everything.ask(places, generator), scores)
    assert torch.allclose(total / 4000, wanted, rtol=0.03)


def _sum(asked: Asked, scores: Tensor) -> Tensor:
    """Σ exp s₋ as the softmax has it, from its loss with a true score of 0."""
    rows = torch.arange(len(asked))
    bare = Asked(
        asked.sources, asked.directions, rows, rows, asked.candidates, asked.expected,
        asked.no_negative,
    )  # fmt: skip
    zero = torch.zeros(len(asked), dtype=torch.float64)
    found = scores[: len(asked)][:, asked.candidates]
    return bare.losses("softmax", zero, found).exp() - 1


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_those_of_the_definition(loss: Any) -> None:
    source = source_of(store(), loss)
    asked = source.ask(torch.arange(source.queries), drawn())
    scores = torch.randn(source.queries, 28, generator=drawn(1), dtype=torch.float64)
    true = scores[asked.rows, asked.targets]
    found = asked.losses(loss, true, scores)
    free = negatives(asked)
    for term, (row, plus) in enumerate(zip(asked.rows.tolist(), true, strict=True)):
        minus = scores[row, sorted(free[row])]
        if loss == "softmax":
            wanted = -torch.log(plus.exp() / (plus.exp() + minus.exp().sum()))
        elif loss == "logistic":
            wanted = -F.logsigmoid(plus) - F.logsigmoid(-minus).mean()
        else:
            wanted = -F.logsigmoid(plus - minus).mean()
        assert found[term].item() == pytest.approx(wanted.item(), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_query_without_negatives_has_a_finite_loss_and_gradient(loss: Any) -> None:
    """Every node is a target."""
    none = torch.zeros(4, dtype=torch.int64), torch.arange(4)
    asked = Asked(
        torch.tensor([0]), torch.tensor([0]), torch.zeros(4, dtype=torch.int64),
        torch.arange(4), torch.arange(4), torch.ones(4), none,
    )  # fmt: skip
    true = torch.randn(4, generator=drawn(), requires_grad=True)
    scores = torch.randn(1, 4, generator=drawn(), requires_grad=True)
    asked.losses(loss, true, scores).sum().backward()
    assert true.grad is not None
    assert true.grad.isfinite().all()
    assert scores.grad is not None
    assert not scores.grad.any()
