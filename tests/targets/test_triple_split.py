"""Splits of the edges of all relations: what messages and features know."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.messages import refused
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import Column
from vrgcn.graph.triples import Triples
from vrgcn.targets.triple_split import split_triples

Edge = tuple[int, ...]


def knowledge(nodes: int = 30, relations: int = 3, edges: int = 90) -> Graph:
    """Random edges of several relations among nodes of one kind, without features."""
    generator = torch.Generator().manual_seed(0)
    return Graph.from_kinds(
        {"node": nodes},
        {
            ("node", f"r{number}", "node"): torch.randint(nodes, (2, edges), generator=generator)
            for number in range(relations)
        },
    )


def store() -> Graph:
    """Two kinds, one with a column that is a mean over edges."""
    generator = torch.Generator().manual_seed(1)
    users, items = (torch.randint(count, (80,), generator=generator) for count in (20, 8))
    bought = torch.stack([users, items])
    return Graph.from_kinds(
        {"user": 20, "item": torch.randn(8, 2, generator=generator)},
        {
            ("user", "bought", "item"): bought,
            ("user", "follows", "user"): torch.randint(20, (2, 40), generator=generator),
        },
        columns={"item": ["size", "bought.rating"]},
    )


def triples_of(graph: Graph) -> Triples:
    assert graph.triples is not None
    return graph.triples


def as_set(rows: Tensor) -> set[Edge]:
    return {tuple(row) for row in rows.tolist()}


@pytest.mark.parametrize("whole", [knowledge(), store()])
def test_every_edge_is_in_one_split_with_its_other_direction(whole: Graph) -> None:
    triples = triples_of(split_triples(whole, (0.6, 0.2, 0.2)))
    parts = [as_set(triples.split(name)) for name in ("train", "val", "test")]
    assert all(parts)
    edges = {
        (int(head), place, int(tail))
        for place, name in enumerate(triples.relations)
        for tail, head in zip(
            whole.relations[name].adjacency.row_of_entry,
            whole.relations[name].adjacency.indices,
            strict=True,
        )
    }
    assert set.union(*parts) == edges
    assert sum(map(len, parts)) == len(edges)
    for part in parts:
        turned = {(tail, relation, head) for head, relation, tail in part}
        assert turned & edges <= part


@pytest.mark.parametrize("whole", [knowledge(), store()])
def test_validation_and_test_triples_are_in_neither_direction_of_any_relation(whole: Graph) -> None:
    graph = split_triples(whole, (0.6, 0.2, 0.2))
    triples = triples_of(graph)
    assert {*graph.relations} == {*triples.directions}
    messages = {
        (int(source), triples.directions.index(name), int(target))
        for name, relation in graph.relations.items()
        for target, source in zip(
            relation.adjacency.row_of_entry, relation.adjacency.indices, strict=True
        )
    }
    assert messages == as_set(triples.both_ways(triples.train))
    held = as_set(triples.both_ways(torch.cat([triples.val, triples.test])))
    assert held
    assert not messages & held


def with_split(codes: dict[str, Tensor]) -> Graph:
    """The same graph, which keeps a number for each edge of each relation, from -1 to 2."""
    kept = {name: {"part": Column("split", values)} for name, values in codes.items()}
    return knowledge().replace(kept=kept)


def test_a_kept_split_is_taken_edge_by_edge() -> None:
    whole = knowledge()
    codes = {
        name: torch.arange(relation.num_edges) % 4 - 1  # -1: in no split, and in no message
        for name, relation in whole.relations.items()
        if relation.reverse_of is None
    }
    graph = split_triples(with_split(codes))
    triples = triples_of(graph)
    A, own = whole.relations["node-r1-node"].adjacency, codes["node-r1-node"]
    for number, name in enumerate(("train", "val", "test")):
        found = triples.split(name)
        found = found[found[:, 1] == 1]
        assert torch.equal(found[:, 0], A.indices[own == number])
        assert torch.equal(found[:, 2], A.row_of_entry[own == number])
    assert graph.relations["node-r1-node"].num_edges == int((own == 0).sum())
    named = triples_of(split_triples(with_split(codes), split_column="part"))
    assert torch.equal(named.test, triples.test)
    drawn = triples_of(split_triples(with_split(codes), (0.5, 0.2, 0.3)))
    assert len(drawn.train) > len(triples.train)


def test_a_split_that_some_relation_does_not_have_is_refused_by_name() -> None:
    codes = {f"node-r{n}-node": torch.zeros(90, dtype=torch.int64) for n in (0, 1)}
    with refused():
        split_triples(with_split(codes), split_column="part")
    with refused():
        split_triples(with_split(codes), (0.5, 0.2, 0.3), split_column="part")


def test_features_that_know_all_edges_are_set_to_zero() -> None:
    whole = store()
    graph = split_triples(whole)
    before, after = whole.features.to_dense(), graph.features.to_dense()
    assert before[:, 1].any()
    assert not after[:, 1].any()
    assert torch.equal(before[:, 0], after[:, 0])


def test_targets_are_those_of_the_kind_that_a_direction_leads_to() -> None:
    triples = triples_of(split_triples(store()))
    spans = dict(zip(triples.directions, triples.spans.tolist(), strict=True))
    assert spans == {
        "user-bought-item": [20, 28],
        "user-follows-user": [0, 20],
        "item-rev_bought-user": [0, 20],
        "user-rev_follows-user": [0, 20],
    }
    assert {*triples.kinds} == {"user", "item"}


def test_a_graph_without_relations_is_refused() -> None:
    graph = Graph(torch.tensor([[0, 1], [1, 2]]), torch.randn(3, 2))
    with refused():
        split_triples(graph)


def test_known_triples_hold_both_directions() -> None:
    triples = triples_of(split_triples(knowledge(), (0.6, 0.2, 0.2)))
    known = triples.known
    true = triples.both_ways(torch.cat([triples.train, triples.val, triples.test]))
    everything = torch.cartesian_prod(torch.arange(30), torch.arange(6), torch.arange(30))
    found = as_set(everything[known.has(*everything[:, [0, 2, 1]].unbind(1))])
    assert found == as_set(true)
    sources, directions = torch.tensor([4, 7, 4]), torch.tensor([1, 5, 1])
    rows, targets = known.partners(sources, directions)
    wanted = [
        (row, target)
        for row, (source, direction) in enumerate(zip(sources, directions, strict=True))
        for target in range(30)
        if (int(source), int(direction), target) in found
    ]
    assert [*zip(rows.tolist(), targets.tolist(), strict=True)] == wanted
