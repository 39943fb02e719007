"""Pairs in two splits, and relations that have the predicted pairs, are found."""

from __future__ import annotations

from dataclasses import replace

import torch

from vrgcn import Graph, split_pairs
from vrgcn.leaks.finding import FULL
from vrgcn.leaks.repeated_pairs import (
    pairs_in_messages,
    pairs_in_two_splits,
    triples_in_messages,
)
from vrgcn.targets.triple_split import split_triples

USERS, ITEMS = 60, 40
BOUGHT = ("user", "bought", "item")


def bought() -> torch.Tensor:
    every = torch.cartesian_prod(torch.arange(USERS), torch.arange(ITEMS))
    return every[torch.randperm(len(every))[:400]].t()


def store(**others: tuple[tuple[str, str, str], torch.Tensor]) -> Graph:
    edges = {BOUGHT: bought()}
    edges |= dict(others.values())
    features = {"user": torch.randn(USERS, 3), "item": torch.randn(ITEMS, 2)}
    return split_pairs(Graph.from_kinds(features, edges), "user-bought-item")


def test_a_split_of_one_relation_has_no_finding() -> None:
    graph = store()
    assert list(pairs_in_two_splits(graph, FULL)) == []
    assert list(pairs_in_messages(graph, FULL)) == []


def test_a_relation_with_other_pairs_is_no_finding() -> None:
    viewed = (("user", "viewed", "item"), torch.stack([torch.arange(40), torch.arange(40)]))
    assert list(pairs_in_messages(store(viewed=viewed), FULL)) == []


def test_a_relation_that_repeats_the_pairs_is_found_in_either_direction() -> None:
    torch.manual_seed(5)
    pairs = bought()
    torch.manual_seed(5)
    paid = (("user", "paid_for", "item"), pairs)
    [finding] = pairs_in_messages(store(paid=paid), FULL)
    assert finding.severity == "high"
    assert "100% of the validation and test pairs" in finding.text
    assert "user-paid_for-item" in finding.text
    torch.manual_seed(5)
    sold = (("item", "sold_to", "user"), pairs.flip(0)[:, :120])
    [finding] = pairs_in_messages(store(sold=sold), FULL)
    assert finding.severity == "medium"
    assert "item-sold_to-user in the other direction" in finding.text


def test_a_dense_relation_has_pairs_by_chance() -> None:
    every = torch.cartesian_prod(torch.arange(USERS), torch.arange(ITEMS)).t()
    near = (("user", "near", "item"), every[:, torch.randperm(every.shape[1])[:800]])
    assert list(pairs_in_messages(store(near=near), FULL)) == []


def test_a_pair_in_two_splits_and_its_reverse_are_found() -> None:
    edges = torch.randint(50, (2, 300))
    graph = split_pairs(Graph(edges, torch.ones(50, 1), undirected=True))
    pairs = graph.pairs
    assert pairs is not None
    assert list(pairs_in_two_splits(graph, FULL)) == []
    again = torch.cat([pairs.test, pairs.train[:2].flip(1)])
    graph = graph.replace(pairs=replace(pairs, test=again))
    [finding] = pairs_in_two_splits(graph, FULL)
    assert finding.text.startswith(f"2 of {len(again)} test pairs of edges are train pairs too")
    [finding] = pairs_in_messages(graph, FULL)
    assert finding.severity == "high"


def test_relations_that_reverse_each_other_make_triples_a_lookup() -> None:
    ends = torch.randint(200, (2, 300))
    married = {("node", "wife_of", "node"): ends, ("node", "husband_of", "node"): ends.flip(0)}
    graph = split_triples(Graph.from_kinds({"node": 200}, married))
    [finding] = triples_in_messages(graph, FULL)
    assert finding.severity == "high"
    assert "of the validation and test triples join nodes that a training triple joins" in (
        finding.text
    )
    other = {**married, ("node", "husband_of", "node"): torch.randint(200, (2, 300))}
    assert (
        list(triples_in_messages(split_triples(Graph.from_kinds({"node": 200}, other)), FULL)) == []
    )
