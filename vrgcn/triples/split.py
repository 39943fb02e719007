"""Splits of the edges of all relations into training, validation and test triples.

A graph that `split_triples` returns has `triples`, and its edges are those that messages may use:
validation and test triples are in it in neither direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.relations import Relation, reverse_triple, with_reverses
from vrgcn.graph.relations import relation_name as name_of
from vrgcn.graph.triples import RELATIONS, Triples
from vrgcn.pairs.split import RATIO, drawn_parts, kept_entries, without_columns

RULES = (
    "validation and test triples and their reverses carry no messages",
    "training does not know validation and test triples, not even as candidates to leave out",
    "features made of the predicted edges are set to zero",
)


def split_triples(
    graph: Graph,
    ratio: Sequence[float] = RATIO,
    seed: int = 0,
    *,
    given: Mapping[str, Tensor] | None = None,
) -> Graph:
    """The graph whose edges of all relations are to be predicted: messages use its training triples
    alone.

    ratio: shares of training, validation and test triples, drawn at random; both directions of two
        nodes in one relation are in one of them
    seed: of the split
    given: in place of the ratio, a number for each edge of each relation by its name, in the order
        of its adjacency: 0 training, 1 validation, 2 test, any other one for no split

    It has no labels, and all nodes are training nodes: features of all nodes are known. Features
    that the import made of edges are set to zero: they know validation and test triples.
    """
    if graph.kinds is None:
        raise ValueError(
            f"{setting('predict', RELATIONS)} is for graphs with relations; this one has none: "
            f"{setting('predict', 'edges')} predicts its edges"
        )
    relations = [part for part in graph.relations.values() if part.reverse_of is None]
    generator = torch.Generator().manual_seed(seed)
    if given is None:
        numbers = _drawn(relations, graph.num_nodes, ratio, generator)
    else:
        numbers = [given[part.name] for part in relations]
    parts: list[list[Tensor]] = [[], [], []]
    for place, (relation, number) in enumerate(zip(relations, numbers, strict=True)):
        A = relation.adjacency
        middle = torch.full_like(A.indices, place)
        edges = torch.stack([A.indices, middle, A.row_of_entry], dim=1)
        for split in range(3):
            parts[split].append(edges[number == split])
    train, val, test = (torch.cat(part) for part in parts)
    if not len(train):
        raise ValueError(f"{setting('predict', RELATIONS)}: there are no training triples")
    triples = Triples(
        tuple(_directions(relations)),
        _spans(graph, relations),
        graph.num_nodes,
        train,
        val,
        test,
        kinds=tuple(
            kind
            for kind in graph.kinds.names
            if any(kind in (part.source, part.target) for part in relations)
        ),
        rules=RULES,
    )
    kept = [
        replace(part, adjacency=kept_entries(part.adjacency, number == 0))
        for part, number in zip(relations, numbers, strict=True)
    ]
    return triple_graph(graph, triples, kept)


def triple_graph(graph: Graph, triples: Triples, relations: Sequence[Relation]) -> Graph:
    """The same nodes with the edges that messages may use, and triples in place of labels.

    relations: with the edges that stay, without reverses
    """
    nodes = torch.arange(graph.num_nodes)
    splits = {"train": nodes, "val": nodes[:0], "test": nodes[:0]}
    found = Graph.from_parts(
        None,
        without_columns(graph, (part.triple[1] for part in relations)),
        None,
        splits,
        0,
        replace(graph.names, classes=None),
        kinds=graph.kinds,
        relations=with_reverses(relations),
    )
    found.triples = triples
    found.scaling = graph.scaling
    return found


def _directions(relations: Sequence[Relation]) -> list[str]:
    names = [part.name for part in relations]
    return names + [name_of(reverse_triple(part.triple)) for part in relations]


def _spans(graph: Graph, relations: Sequence[Relation]) -> Tensor:
    assert graph.kinds is not None
    ends = [part.target for part in relations] + [part.source for part in relations]
    ranges = [graph.kinds.range(kind) for kind in ends]
    return torch.tensor([[span.start, span.stop] for span in ranges])


def _drawn(
    relations: Sequence[Relation], nodes: int, ratio: Sequence[float], generator: torch.Generator
) -> list[Tensor]:
    """For each relation, the split of each of its edges."""
    keys, counts = [], []
    for place, relation in enumerate(relations):
        A = relation.adjacency
        one, other = A.indices, A.row_of_entry
        low, high = torch.minimum(one, other), torch.maximum(one, other)
        keys.append((place * nodes + low) * nodes + high)
        counts.append(A.num_entries)
    key, place_of = torch.unique(torch.cat(keys), return_inverse=True)
    drawn = drawn_parts(len(key), ratio, generator)
    return list(drawn[place_of].split(counts))
