"""Pairs of a live model that predicts them: known partners, and the best new ones.

Training pairs are edges that carry messages. Validation and test pairs carry none, but are known:
they are not recommended. A new edge carries messages and is known.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import EDGES, Pairs
from vrgcn.live.resolving import HiddenPairs
from vrgcn.live.slots import ONLY
from vrgcn.live.state import LiveState
from vrgcn.pairs.decoders import Decoder
from vrgcn.pairs.first_places import first_places
from vrgcn.pairs.model import PairModel


def hidden_pairs(graph: Graph, state_slots: Tensor) -> HiddenPairs:
    """Known pairs that carry no messages; of pairs without a direction, in both.

    state_slots: (nodes,) slots of the graph's nodes
    """
    edges = graph.predicted
    if edges is None:
        return HiddenPairs()
    hidden = edges.both_ways(torch.cat([edges.val, edges.test, edges.in_no_split]))
    sources, targets = (state_slots[hidden[:, end]].tolist() for end in (0, -1))
    return HiddenPairs(set(zip(targets, sources, strict=True)))


def relation_of(model: PairModel) -> str:
    """The relation that a model predicts, as live models name it."""
    name: str = model.arguments["relation"]
    return ONLY if name == EDGES else name


def with_pairs(graph: Graph, model: PairModel, hidden: Tensor) -> Graph:
    """The graph with its edges for training pairs. hidden: (pairs, 2) source and target of known
    pairs without messages"""
    name, directed = model.arguments["relation"], model.arguments["directed"]
    A, kinds = graph.edges[name], (graph.relations[name].source, graph.relations[name].target)
    sources, targets = (graph.kinds.range(kind) for kind in kinds)
    ends = torch.stack([A.indices, A.row_of_entry], dim=1)
    counted = ends[:, 0] != ends[:, 1] if directed else ends[:, 0] < ends[:, 1]
    if not directed:
        hidden = hidden[hidden[:, 0] < hidden[:, 1]]
    pairs = Pairs(
        *(name, directed, sources, targets, ends[counted], hidden, hidden[:0]),
        kinds=kinds,
    )
    return graph.replace(pairs=pairs)


@torch.no_grad()
def best_new(
    state: LiveState, decoder: Decoder, source: int, candidates: Tensor, top: int
) -> tuple[Tensor, Tensor]:
    """(rows,) slots of the best partners of a node, best first, and their scores. Of equal scores
    the slot that comes first is the better."""
    z = state.outputs
    scores = decoder.against(z[source][None], z[candidates])[0]
    best = first_places(scores, top)
    return candidates[best], scores[best]
