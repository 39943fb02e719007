"""Negatives: never a known pair, drawn in the shares that were asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.messages import refused
from tests.targets.test_pair_split import as_set, pairs_of, undirected_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.decoders import DECODERS
from vrgcn.pairs.negatives import NegativeSampler, drawn_negatives
from vrgcn.pairs.terms import LOSSES, TermSource
from vrgcn.targets.pair_split import split_pairs


@pytest.mark.parametrize("sampling", ["uniform", "degree"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("avoid", ["train", "all"])
def test_no_term_has_a_known_pair_as_a_negative(loss, sampling, avoid: Any) -> None:
    pairs = pairs_of(split_pairs(undirected_graph()))
    others = [] if avoid == "train" else [pairs.val, pairs.test]
    known = as_set(torch.cat([pairs.train, *others]))
    known |= {(v, u) for u, v in known}
    source = TermSource(pairs, loss, 5, sampling, avoid=avoid)
    for seed in range(5):
        terms = source.draw(torch.Generator().manual_seed(seed))
        assert len(terms) == source.count
        negatives = terms.nodes[:, 2:] if terms.labels is None else terms.nodes[:, 1:]
        sources = terms.nodes[:, :1].expand_as(negatives)
        drawn = torch.stack([sources, negatives], dim=2)
        if terms.labels is not None:
            drawn = drawn[terms.labels == 0]
        drawn = drawn.reshape(-1, 2)
        assert not as_set(drawn) & known
        assert (drawn[:, 0] != drawn[:, 1]).all()


def test_degrees_to_the_power_of_three_quarters_decide_how_often_a_node_is_drawn() -> None:
    """Nodes 10, 11 and 12 have 16, 4 and 1 training pairs; source 0 has none of them. 21,000 draws
    have a standard deviation below 0.0035."""
    ends = [(1 + n % 9, 10) for n in range(16)] + [(1 + n, 11) for n in range(4)] + [(1, 12)]
    train = torch.tensor(ends)
    pairs = Pairs("edges", True, range(10), range(10, 13), train, train[:0], train[:0])
    sampler = NegativeSampler(pairs, pairs.known, "degree")
    drawn = sampler.draw(
        torch.zeros(21_000, dtype=torch.int64), 1, torch.Generator().manual_seed(0)
    )
    found = torch.bincount(drawn[:, 0] - 10, minlength=3) / len(drawn)
    wanted = torch.tensor([16.0, 4.0, 1.0]).pow(0.75)
    assert torch.allclose(found, wanted / wanted.sum(), atol=0.015)


def test_the_one_negative_of_a_node_that_is_linked_to_all_others_is_found() -> None:
    nodes = 200
    train = torch.tensor([(0, v) for v in range(1, nodes - 1)])
    pairs = Pairs("edges", True, range(nodes), range(nodes), train, train[:0], train[:0])
    sampler = NegativeSampler(pairs, pairs.known)
    drawn = sampler.draw(torch.zeros(50, dtype=torch.int64), 3, torch.Generator().manual_seed(0))
    assert (drawn == nodes - 1).all()


def test_pairs_of_a_node_that_has_no_negative_are_left_out_of_the_loss() -> None:
    star = torch.tensor([[0] * 5, [1, 2, 3, 4, 5]])
    graph = split_pairs(Graph(star, torch.eye(6)), ratio=(1, 0, 0))
    assert pairs_of(graph).directed
    with refused():
        TermSource(pairs_of(graph), "logistic", 1)


def test_true_pairs_and_negatives_weigh_the_same_together() -> None:
    source = TermSource(pairs_of(split_pairs(undirected_graph())), "logistic", 4)
    terms = source.draw(torch.Generator().manual_seed(0))
    assert terms.labels is not None
    assert terms.weights is not None
    true, false = (terms.weights[terms.labels == label] for label in (1, 0))
    assert true.sum() == pytest.approx(false.sum().item())
    assert terms.weights.mean() == pytest.approx(1)


@pytest.mark.parametrize("sampling", ["uniform", "shared"])
def test_training_that_avoids_training_pairs_alone_knows_nothing_of_other_splits(
    sampling: Any,
) -> None:
    """The same training pairs with other validation and test pairs give the same terms and
    losses; known pairs of all splits would be told by never being negatives."""
    pairs = pairs_of(split_pairs(undirected_graph()))
    others = replace(pairs, val=pairs.test, test=pairs.val[:3])
    z = torch.randn(pairs.num_nodes, 4, generator=torch.Generator().manual_seed(0))
    decoder = DECODERS["dot"](4, False)

    def losses(of: Pairs, avoid: Any) -> Tensor:
        source = TermSource(of, "softmax", 30, sampling, avoid=avoid)
        terms = source.draw(torch.Generator().manual_seed(1))
        if not source.shared:
            rows = z[terms.nodes]
            return source.losses(terms, decoder(rows[:, :1], rows[:, 1:]))
        nodes = torch.arange(pairs.num_nodes)
        return source.sharing(nodes).pressure(decoder, nodes, z, z)

    assert torch.equal(losses(pairs, "train"), losses(others, "train"))
    assert not torch.equal(losses(pairs, "all"), losses(others, "all"))


def test_negatives_of_validation_do_not_tell_which_pairs_the_test_has() -> None:
    """Any test pair may be a negative of validation, and none of training or validation."""
    pairs = pairs_of(split_pairs(undirected_graph()))
    many = drawn_negatives(pairs, 20_000, torch.Generator().manual_seed(0), pairs.known_until_val)
    drawn = as_set(many) | as_set(many.flip(1))
    assert as_set(pairs.test) <= drawn
    assert not drawn & as_set(torch.cat([pairs.train, pairs.val]))
