"""Splits of a relation's edges into training, validation and test pairs, without leaks.

A graph that `split_pairs` returns has `pairs`, and its edges are those that messages may use:
validation and test pairs are in it in neither direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import NamedTuple

import torch
from torch import Tensor

from vrgcn.files.setting_names import setting
from vrgcn.graph.blocks import scale_columns
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import EDGES, Pairs
from vrgcn.graph.propagation import is_symmetric
from vrgcn.graph.relations import REVERSE, with_reverses
from vrgcn.graph.sparse import CSR, offsets
from vrgcn.pairs.degree_features import degree_features, has_degree_features
from vrgcn.pairs.negatives import drawn_negatives

RATIO = (0.85, 0.05, 0.1)  # as in the experiments with GAE
RULES = (
    "validation and test pairs and their reverses carry no messages",
    "negatives contain no pair of any split",
)
RULE_OF_DEGREES = "features made of degrees count training pairs alone"
RULE_OF_KINDS = "features made of the predicted relation's edges are set to zero"


def split_pairs(
    graph: Graph,
    relation: str = EDGES,
    ratio: Sequence[float] = RATIO,
    seed: int = 0,
    *,
    leave_one_out: bool = False,
) -> Graph:
    """The graph whose edges are to be predicted: messages use its training pairs alone.

    relation: "edges", the one relation of a graph without kinds; or the name of a relation between
        kinds, such as "user-bought-item"
    ratio: shares of training, validation and test pairs, drawn at random; both directions of an
        edge are in one of them
    seed: of the split and of the negatives that scores compare with
    leave_one_out: in place of the ratio, one pair of each source with at least three is a test pair
        and another one a validation pair

    It has no labels, and all nodes are training nodes: features of all nodes are known. Features
    that the import made of the predicted relation's own edges are set to zero: they know
    validation and test pairs.
    """
    found = _find(graph, relation)
    generator = torch.Generator().manual_seed(seed)
    A = found.adjacency
    targets, sources = A.row_of_entry, A.indices
    directed = found.kinds is not None and found.kinds[0] != found.kinds[1]
    directed = directed or not is_symmetric(A)
    one, other = torch.minimum(sources, targets), torch.maximum(sources, targets)
    key, place = torch.unique(one * graph.num_nodes + other, return_inverse=True)
    loop = torch.div(key, graph.num_nodes, rounding_mode="floor") == key % graph.num_nodes
    drawn = torch.zeros(len(key), dtype=torch.int64)  # 0 train, 1 val, 2 test; loops stay
    if leave_one_out:
        drawn[~loop] = _one_out(_sources(sources, place, len(key))[~loop], generator)
    else:
        drawn[~loop] = drawn_parts(int((~loop).sum()), ratio, generator)
    of_entry = drawn[place]
    counted = sources != targets
    if not directed:
        counted &= sources < targets
    ends = torch.stack([sources, targets], dim=1)
    train, val, test = (ends[counted & (of_entry == number)] for number in range(3))
    pairs = Pairs(
        relation,
        directed,
        found.sources,
        found.targets,
        train,
        val,
        test,
        kinds=found.kinds,
        rules=_rules(graph),
    )
    negatives = {
        name: drawn_negatives(pairs, len(pairs.split(name)), generator)
        for name in ("val", "test")
        if len(pairs.split(name))
    }
    pairs = replace(pairs, negatives=negatives)
    return message_graph(graph, pairs, kept_entries(A, of_entry == 0))


def _rules(graph: Graph) -> tuple[str, ...]:
    """What is done against leaks in a graph, a sentence each."""
    degrees = (RULE_OF_DEGREES,) if has_degree_features(graph) else ()
    return (*RULES, *(degrees if graph.kinds is None else (RULE_OF_KINDS,)))


class _Found(NamedTuple):
    """A relation in a graph: its edges, the nodes at either end, their kinds."""

    adjacency: CSR
    sources: range
    targets: range
    kinds: tuple[str, str] | None


def message_graph(graph: Graph, pairs: Pairs, adjacency: CSR) -> Graph:
    """The same nodes with the edges that messages may use, and pairs in place of labels.

    adjacency: the edges of the predicted relation that stay
    """
    nodes = torch.arange(graph.num_nodes)
    splits = {"train": nodes, "val": nodes[:0], "test": nodes[:0]}
    names = replace(graph.names, classes=None)
    if graph.kinds is None:
        degrees = has_degree_features(graph)
        features = degree_features(graph, adjacency) if degrees else graph.features
        found = Graph.from_parts(adjacency, features, None, splits, 0, names)
    else:
        given = (part for part in graph.relations.values() if part.reverse_of is None)
        relations = with_reverses(
            replace(part, adjacency=adjacency) if part.name == pairs.relation else part
            for part in given
        )
        features = without_columns(graph, [pairs.relation.split("-")[1]])
        found = Graph.from_parts(
            None, features, None, splits, 0, names, kinds=graph.kinds, relations=relations
        )
    found.pairs = pairs
    found.scaling = graph.scaling
    return found


def without_columns(graph: Graph, relations: Iterable[str]) -> Tensor:
    """The features, zero where they are means over the edges of the predicted relations.

    relations: such as "bought"
    """
    own = tuple(f"{prefix}{middle}." for middle in {*relations} for prefix in ("", REVERSE))
    names = enumerate(graph.names.features or [])  # such as item.bought.price
    known = [column for column, name in names if name.partition(".")[2].startswith(own)]
    if not known:
        return graph.features
    keep = torch.ones(graph.num_features, dtype=graph.features.dtype)
    keep[torch.tensor(known)] = 0
    return scale_columns(graph.features, keep)


def _find(graph: Graph, relation: str) -> _Found:
    if graph.kinds is not None:
        part = graph.relations.get(relation)
        if part is None or part.reverse_of is not None:
            given = [name for name, r in graph.relations.items() if r.reverse_of is None]
            near = get_close_matches(relation, given, n=1)
            hint = f"; did you mean {setting('predict', near[0])}?" if near else ""
            raise ValueError(
                f"{setting('predict', relation)}: the graph has the relations "
                f"{', '.join(given)}{hint}"
            )
        spans = graph.kinds.range(part.source), graph.kinds.range(part.target)
        found = _Found(part.adjacency, *spans, (part.source, part.target))
    else:
        if relation != EDGES:
            raise ValueError(
                f"{setting('predict', relation)}: a graph of one kind has one relation, "
                f"{setting('predict', EDGES)}"
            )
        everything = range(graph.num_nodes)
        found = _Found(graph.adjacency, everything, everything, None)
    if not found.adjacency.num_entries:
        raise ValueError(f"{setting('predict', relation)}: the graph has no edges")
    return found


def _sources(sources: Tensor, place: Tensor, count: int) -> Tensor:
    """(count,) the source of each pair; of one without a direction, either end."""
    found = torch.empty(count, dtype=torch.int64)
    found[place] = sources
    return found


def _one_out(sources: Tensor, generator: torch.Generator) -> Tensor:
    """(pairs,) of 0, 1 and 2: of each source with at least three pairs one is 1 and one is 2."""
    order = torch.randperm(len(sources), generator=generator)
    order = order[sources[order].argsort(stable=True)]
    _, counts = torch.unique_consecutive(sources[order], return_counts=True)
    ends = counts.cumsum(0)
    found = torch.zeros(len(sources), dtype=torch.int64)
    enough = counts >= 3
    found[order[ends[enough] - 1]] = 2
    found[order[ends[enough] - 2]] = 1
    return found


def drawn_parts(count: int, ratio: Sequence[float], generator: torch.Generator) -> Tensor:
    """(count,) of 0, 1 and 2 in the shares of the ratio, in random order."""
    val, test = int(ratio[1] * count), int(ratio[2] * count)
    train = int(ratio[0] * count) if sum(ratio) < 1 - 1e-9 else count - val - test
    if train < 1:
        raise ValueError(
            f"{setting('ratio', tuple(ratio))} leaves none of {count} edges to train on"
        )
    found = torch.full((count,), 3)  # in no split, and in no message
    order = torch.randperm(count, generator=generator)
    for number, part in enumerate(order[: train + val + test].split([train, val, test])):
        found[part] = number
    return found


def kept_entries(A: CSR, keep: Tensor) -> CSR:
    """Part of the entries of A. keep: (entries,) bool"""
    counts = torch.bincount(A.row_of_entry[keep], minlength=A.num_rows)
    values = None if A.values is None else A.values[keep]
    return CSR(offsets(counts), A.indices[keep], values, A.columns)
