"""Pairs that are known twice: in two splits, or as edges that carry messages."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.predicted_edges import KnownEdges
from vrgcn.graph.sparse import CSR
from vrgcn.leaks.columns import sample
from vrgcn.leaks.finding import Budget, Finding

SHARE, HIGH = 0.2, 0.5  # of held-out pairs that another relation has: worth a word, and severe
_TIMES = 5  # as often as by chance, at least
_PAIRS = 200_000


def pairs_in_two_splits(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find pairs that two splits have."""
    pairs = graph.pairs
    if pairs is None:
        return
    for one, other in (("train", "val"), ("train", "test"), ("val", "test")):
        if len(pairs.split(one)) > budget.entries:
            continue
        asked = pairs.split(other)
        known = KnownEdges.of(pairs.split(one), pairs)
        twice = int(known.has(asked[:, 0], asked[:, 1]).sum()) if len(asked) else 0
        if twice:
            yield Finding(
                "high",
                "pairs",
                f"{twice:,} of {len(asked):,} {other} pairs of {pairs.relation} are {one} pairs "
                "too",
                "give a pair to one split only; of repeated pairs the earliest says which",
            )


def pairs_in_messages(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find relations that have the validation and test pairs as edges, in either direction."""
    pairs = graph.pairs
    if pairs is None:
        return
    held = torch.cat([pairs.val, pairs.test])
    if not len(held):
        return
    held = held[sample(torch.arange(len(held)), _PAIRS)]
    for name, A in graph.edges.items():
        repeated = _share(A, held, budget)
        if repeated is None:
            continue
        words = "" if repeated[0] >= repeated[1] else " in the other direction"
        share, own = max(repeated), name == pairs.relation
        if (own and share > 0) or (not own and share >= max(SHARE, _TIMES * _by_chance(A, pairs))):
            yield _carried(pairs, name, share, words)


def triples_in_messages(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find validation and test triples whose nodes another relation joins in training, in either
    direction: where most are, a lookup answers them."""
    triples = graph.triples
    if triples is None or len(triples.train) > budget.entries:
        return
    held = torch.cat([triples.val, triples.test])
    if not len(held):
        return
    held = held[sample(torch.arange(len(held)), _PAIRS)]
    joined = torch.cat([triples.train[:, [0, 2]], triples.train[:, [2, 0]]])
    nodes = triples.num_nodes
    known = torch.isin(held[:, 0] * nodes + held[:, 2], joined[:, 0] * nodes + joined[:, 1])
    share = float(known.double().mean())
    if share >= HIGH:
        yield Finding(
            "high",
            "relation",
            f"{share:.0%} of the validation and test triples join nodes that a training triple "
            "joins too, in either direction",
            "relations that repeat or reverse each other make them a lookup: leave all but one of "
            "each out, or give all triples of two nodes to one split",
        )


def _carried(pairs: Pairs, relation: str, share: float, words: str) -> Finding:
    own = relation == pairs.relation
    advice = (
        "give both directions of an edge to one split"
        if own
        else "a model looks the pairs up there. If those edges come later than the pairs, or are "
        f"made of them, import the graph without {relation}; by time, "
        f"{setting('train_until')} leaves out what is later"
    )
    return Finding(
        "high" if own or share >= HIGH else "medium",
        "relation",
        f"{share:.0%} of the validation and test pairs of {pairs.relation} are edges of "
        f"{relation}{words}, which carries messages",
        advice,
    )


def _share(A: CSR, held: Tensor, budget: Budget) -> tuple[float, float] | None:
    """The shares of pairs that are edges of A, forwards and backwards; None if A is too large."""
    if A.num_entries > budget.entries or not A.num_entries:
        return None
    keys = A.row_of_entry * A.columns + A.indices
    sources, targets = held[:, 0], held[:, 1]
    asked = (targets * A.columns + sources, sources * A.columns + targets)
    forwards, backwards = (float(torch.isin(each, keys).double().mean()) for each in asked)
    return forwards, backwards


def _by_chance(A: CSR, pairs: Pairs) -> float:
    return A.num_entries / max(len(pairs.sources) * len(pairs.targets), 1)
