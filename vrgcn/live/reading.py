"""What a live model looks up in its world: slots of nodes, neighbours, partners, names; and
outputs of its tables.

The caller holds the lock that the lookup needs.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.graph.kinds import Kinds
from vrgcn.graph.names import Names
from vrgcn.live.changes import RefusedError
from vrgcn.live.ids import Id
from vrgcn.live.known_pairs import best_new, relation_of
from vrgcn.live.slots import ONLY
from vrgcn.live.world import World
from vrgcn.pairs.model import PairModel


class UnknownNodeError(RefusedError, KeyError):
    """There is no node with an id."""

    def __str__(self) -> str:
        return str(self.args[0])


def slot_of(world: World, kind: str, node: Any) -> int:
    """Return the slot of the node with an id; raise if there is none."""
    ids = world.ids[kind]
    key = ids.index.key(node)
    slot = None if key is None else ids.slot(key)
    if slot is None:
        of = "" if kind == ONLY else f" of kind {kind!r}"
        raise UnknownNodeError(f"there is no node {node!r}{of}")
    return slot


def neighbours_of(world: World, slot: int, kind: str, most: int) -> list[dict[str, Any]]:
    """Return relation, id, kind and weight of the edges that a node averages, at most so many of
    each relation."""
    neighbours = []
    for name, relation in world.relations.items():
        halves = [(name, relation.edges.into, relation.target, relation.source)]
        if relation.against is not None:
            halves.append((relation.reverse, relation.against, relation.source, relation.target))
        for title, half, mine, theirs in halves:
            if mine != kind:
                continue
            columns, weights = half.rows.row(slot)
            for index, other in enumerate(columns[:most].tolist()):
                neighbours.append(
                    {
                        "relation": title or None,
                        "kind": theirs or None,
                        "id": world.ids[theirs].id(other),
                        "weight": 1.0 if weights is None else float(weights[index]),
                    }
                )
    return neighbours


def new_partners(world: World, model: PairModel, slot: int, top: int) -> list[dict[str, Any]]:
    """Return id, kind and score of the best new partners of a node, best first."""
    relation = world.relations[relation_of(model)]
    state, slots = world.state, world.slots
    first = slots.first(relation.target)
    new = state.alive[first : first + slots.used[relation.target]].clone()
    partners, _ = relation.edges.out.rows.row(slot)
    new[torch.from_numpy(partners) - first] = False
    new[torch.tensor(relation.hidden.of(slot), dtype=torch.int64) - first] = False
    if relation.source == relation.target:
        new[slot - first] = False
    candidates = new.nonzero()[:, 0] + first
    best, scores = best_new(state, model.decoder, slot, candidates, top)
    ids, kind = world.ids[relation.target], relation.target or None
    return [
        {"id": ids.id(other), "kind": kind, "score": score}
        for other, score in zip(best.tolist(), scores.tolist(), strict=True)
    ]


def hidden_numbers(world: World, model: PairModel) -> Tensor:
    """(pairs, 2) numbers in the changed graph of known pairs that carry no messages."""
    alive = world.state.alive
    number = alive.cumsum(0) - 1
    hidden = world.relations[relation_of(model)].hidden
    ends = torch.tensor([pair[::-1] for pair in sorted(hidden)], dtype=torch.int64)
    ends = ends.reshape(-1, 2)
    return number[ends[alive[ends].all(1)]]


def names_of(nodes: list[Id], kind: str, text: bool) -> Names:
    """Return ids as the names of the nodes of a kind. text: whether ids are texts"""
    ids = pa.array([str(node) if text else int(node) for node in nodes])
    if kind == ONLY:
        return Names(ids)
    return Names(kinds=Kinds({kind: max(len(nodes), 1)}), by_kind={kind: ids})
