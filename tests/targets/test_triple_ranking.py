"""Ranks of heads and tails against their definitions, with ties, and simple rules by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.messages import refused
from tests.targets.test_triple_split import as_set, knowledge, store, triples_of
from vrgcn.graph.graph import Graph
from vrgcn.graph.triples import Triples
from vrgcn.pairs.decoders import DECODERS
from vrgcn.targets import ranking
from vrgcn.targets.best import best_partners
from vrgcn.targets.ranking import OF_TRIPLES, EmbeddedEdges, Rule, score_edges
from vrgcn.targets.triple_rules import FrequentTargets, OtherRelations
from vrgcn.targets.triple_split import split_triples


class Table(Rule):
    """Scores as an array (directions, nodes, nodes) has them."""

    def __init__(self, scores: Tensor, triples: Triples) -> None:
        self.scores, self.edges = scores, triples

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        targets = self.edges.ends(direction).targets
        return self.scores[direction, sources, targets.start : targets.stop]


@pytest.mark.parametrize("whole", [knowledge(), store()])
@pytest.mark.parametrize("entries", [1 << 23, 100])
def test_scores_are_means_over_all_orders_of_tied_candidates(
    whole: Graph, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "ENTRIES", entries)
    triples = triples_of(split_triples(whole, (0.5, 0.1, 0.4)))
    count, nodes = len(triples.directions), triples.num_nodes
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(4, (count, nodes, nodes), generator=generator).float()
    true = as_set(triples.both_ways(torch.cat([triples.train, triples.val, triples.test])))
    reciprocal, among = [], {1: [], 3: [], 10: []}  # type: ignore[var-annotated]
    for one, direction, own in triples.both_ways(triples.test).tolist():
        start, stop = triples.spans[direction].tolist()
        others = [
            scores[direction, one, node]
            for node in range(start, stop)
            if node != own and (one, direction, node) not in true
        ]
        here = scores[direction, one, own]
        first = sum(score > here for score in others) + 1
        places = range(first, first + sum(score == here for score in others) + 1)
        reciprocal.append(sum(1 / place for place in places) / len(places))
        for k, found in among.items():
            found.append(sum(place <= k for place in places) / len(places))
    wanted = {"mrr": sum(reciprocal) / len(reciprocal)}
    wanted |= {f"hits@{k}": sum(found) / len(found) for k, found in among.items()}
    assert score_edges(Table(scores, triples), triples, "test", OF_TRIPLES) == pytest.approx(
        wanted, abs=1e-12
    )


def test_equal_scores_of_all_candidates_are_no_success() -> None:
    """A collapsed model: the rank of a partner is anything from 1 to about 30."""
    triples = triples_of(split_triples(knowledge(), (0.5, 0.1, 0.4)))
    scores = score_edges(Table(torch.zeros(6, 30, 30), triples), triples, "test", OF_TRIPLES)
    assert scores["hits@1"] < 0.05
    assert scores["hits@10"] < 0.5


@pytest.mark.parametrize("decoder", ["distmult", "complex", "mlp"])
def test_scores_of_single_triples_are_those_against_all_nodes(decoder: str) -> None:
    torch.manual_seed(0)
    made = DECODERS[decoder](6, True, 4)
    none = torch.empty(0, 3, dtype=torch.int64)
    spans = torch.tensor([[0, 9]] * 4)
    triples = Triples(("a", "b", "rev_a", "rev_b"), ("",) * 4, spans, 9, none, none, none)
    scorer = EmbeddedEdges(made, torch.randn(9, 6), triples)
    rows = torch.cartesian_prod(torch.arange(4), torch.arange(9), torch.arange(9))[:, [1, 0, 2]]
    wanted = torch.stack([scorer.against(torch.arange(9), direction) for direction in range(4)])
    assert torch.allclose(scorer.score(rows), wanted.flatten(), atol=1e-5)
    assert not torch.allclose(wanted[0], wanted[1])


def test_complex_scores_are_those_of_complex_numbers() -> None:
    torch.manual_seed(0)
    decoder = DECODERS["complex"](6, True, 2)
    u, v = torch.randn(2, 5, 6)
    relation = torch.tensor([0, 1, 1, 0, 1])
    r = decoder.weight[relation]

    def as_complex(x: Tensor) -> Tensor:
        return torch.complex(x[:, :3], x[:, 3:])

    wanted = (as_complex(u) * as_complex(r) * as_complex(v).conj()).sum(1).real
    assert torch.allclose(decoder(decoder.query(u, relation), v), wanted)


def test_decoders_that_cannot_score_relations_are_refused() -> None:
    with refused():
        DECODERS["dot"](4, True, 3)
    with refused():
        DECODERS["complex"](5, True, 3)
    with refused():
        DECODERS["complex"](4, False)


def small() -> Graph:
    """Relation b is nearly the reverse of a: 0-a-1, 2-a-3, 4-a-5 and 1-b-0, 3-b-2, 5-b-3."""
    return Graph.from_kinds(
        {"node": 6},
        {
            ("node", "a", "node"): torch.tensor([[0, 2, 4], [1, 3, 5]]),
            ("node", "b", "node"): torch.tensor([[1, 3, 5], [0, 2, 3]]),
        },
    )


def test_simple_rules_count_training_triples() -> None:
    triples = triples_of(split_triples(small(), (1.0, 0.0, 0.0)))
    assert triples.directions[2] == "node-rev_a-node"
    frequent = [FrequentTargets(triples).against(torch.tensor([5]), place)[0] for place in (0, 2)]
    assert torch.stack(frequent).tolist() == [[0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]]
    rule = OtherRelations(triples)
    # Of the nodes that rev_b links, 0-1, 2-3 and 3-5, a links two; of those of rev_a b links two.
    found = torch.cat([rule.against(torch.tensor([s]), place) for s, place in ((3, 0), (5, 1))])
    assert found[0].argmax().item() == 5
    assert found[0, 5].item() == pytest.approx(2 / 3, abs=1e-5)
    assert found[1].argmax().item() == 4
    assert found[1, 4].item() == pytest.approx(2 / 3, abs=1e-5)


def test_the_best_new_targets_of_one_relation_are_of_the_kind_and_not_known() -> None:
    torch.manual_seed(0)
    triples = triples_of(split_triples(store(), (0.6, 0.2, 0.2)))
    scorer = EmbeddedEdges(DECODERS["distmult"](6, True, 4), torch.randn(28, 6), triples)
    true = as_set(triples.both_ways(torch.cat([triples.train, triples.val, triples.test])))
    direction = triples.find("bought")
    sources = torch.tensor([3, 0])
    scores = scorer.against(sources, direction)
    (found,) = best_partners(scorer, triples, sources, 4, direction)
    wanted = []
    for row, source in enumerate(sources.tolist()):
        new = [node for node in range(20, 28) if (source, direction, node) not in true]
        new.sort(key=lambda node: -scores[row, node - 20].item())
        wanted += [[source, node] for node in new[:4]]
    assert found.pairs.tolist() == wanted
    middle = torch.full((len(found.pairs), 1), direction)
    rows = torch.cat([found.pairs[:, :1], middle, found.pairs[:, 1:]], dim=1)
    assert torch.allclose(scorer.score(rows), found.scores)


def test_relations_are_found_by_name_with_and_without_kinds() -> None:
    triples = triples_of(split_triples(store()))
    assert triples.find("user-bought-item") == triples.find("bought") == 0
    assert triples.find("rev_follows") == triples.reverse(triples.find("follows")) == 3
    with refused():
        triples.find("user-buys-item")
