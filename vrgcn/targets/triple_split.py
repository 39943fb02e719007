"""Splits of the edges of all relations into training, validation and test triples.

A graph that `split_triples` returns has `triples`, and its edges are those that messages may use:
validation and test triples are in it in neither direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.relations import Relation, kept_entries, reverse_triple
from vrgcn.graph.relations import relation_name as name_of
from vrgcn.graph.triples import RELATIONS, Triples
from vrgcn.targets.mean_features import without_columns
from vrgcn.targets.spec import PAIR_RATIO
from vrgcn.targets.visible import to_predict
from vrgcn.targets.ways import drawn_parts

RULES = (
    "validation and test triples and their reverses carry no messages",
    "training does not know validation and test triples, not even as candidates to leave out",
    "features made of the predicted edges are set to zero",
)


def split_triples(
    graph: Graph,
    ratio: Sequence[float] | None = None,
    seed: int = 0,
    *,
    split_column: str | None = None,
) -> Graph:
    """Return the graph whose edges of all relations are to be predicted: messages use only its
    training triples.

    ratio: shares of training, validation and test triples, drawn at random; both directions of two
        nodes in one relation are in one of them. None: the split that the graph keeps in a column
        of the edges of all relations, else 0.85, 0.05, 0.1
    seed: of the split
    split_column: the kept column that says train, val or test, where there are several

    It has no labels, and all nodes are training nodes: features of all nodes are known. Features
    that the import made of edges are set to zero: they know validation and test triples.
    """
    if not graph.kinds.named:
        raise InputError(
            f"{setting('predict', RELATIONS)} is for graphs with relations; this one has none: "
            f"{setting('predict', 'edges')} predicts its edges"
        )
    relations = list(graph.given.values())
    generator = torch.Generator().manual_seed(seed)
    column = _split_column(graph, relations, split_column, drawn=ratio is not None)
    if column is None:
        numbers = _drawn(relations, graph.num_nodes, ratio or PAIR_RATIO, generator)
    else:
        numbers = [graph.kept[part.name][column].values for part in relations]
    parts: list[list[Tensor]] = [[], [], []]
    for place, (relation, number) in enumerate(zip(relations, numbers, strict=True)):
        A = relation.adjacency
        middle = torch.full_like(A.indices, place)
        edges = torch.stack([A.indices, middle, A.row_of_entry], dim=1)
        for split in range(3):
            parts[split].append(edges[number == split])
    train, val, test = (torch.cat(part) for part in parts)
    if not len(train):
        raise InputError(f"{setting('predict', RELATIONS)}: there are no training triples")
    targets = [part.target for part in relations] + [part.source for part in relations]
    ranges = [graph.kinds.range(kind) for kind in targets]
    triples = Triples(
        tuple(_directions(relations)),
        tuple(targets),
        torch.tensor([[span.start, span.stop] for span in ranges]),
        graph.num_nodes,
        train,
        val,
        test,
        rules=RULES,
    )
    left = {
        part.name: kept_entries(part.adjacency, number == 0)
        for part, number in zip(relations, numbers, strict=True)
    }
    features = without_columns(graph, left)
    return to_predict(graph, left, features, torch.arange(graph.num_nodes)).replace(triples=triples)


def _split_column(
    graph: Graph, relations: Sequence[Relation], named: str | None, *, drawn: bool
) -> str | None:
    """The kept column that splits the edges; None to draw a split.

    drawn: whether shares were given
    """
    if named is not None and drawn:
        raise InputError(f"{setting('split_column', named)} and {setting('ratio')}: give one")
    splits = [
        {name for name, column in graph.kept.get(part.name, {}).items() if column.kind == "split"}
        for part in relations
    ]
    found = set.intersection(*splits) if splits else set()
    if named is not None and named not in found:
        lacking = next(
            part.name for part, own in zip(relations, splits, strict=True) if named not in own
        )
        want = Placeholder(f"{named}=split")
        raise InputError(
            f"{setting('split_column', named)}: the graph keeps no such split of the edges of "
            f"{lacking}; import it again with {setting('keep', want, command='import')}"
        )
    if named is None and not drawn and len(found) > 1:
        raise InputError(
            f"the edges have several splits, {', '.join(sorted(found))}: name one with "
            f"{setting('split_column')}, or draw one with {setting('ratio', PAIR_RATIO)}"
        )
    return named if drawn or named is not None else next(iter(found), None)


def _directions(relations: Sequence[Relation]) -> list[str]:
    names = [part.name for part in relations]
    return names + [name_of(reverse_triple(part.triple)) for part in relations]


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
