"""Which training pairs carry messages while pairs are scored.

A training pair's own edge tells that the pair is linked; a validation or test pair has no such
edge. A model that is trained with it learns to look for it.

    keep      all training pairs carry messages, and all are scored
    redraw    in each epoch a new share of the training pairs is scored and carries no messages;
              the others carry messages and are not scored
    exclude   the true pairs of a minibatch carry no messages in it, all others do; for minibatches
              of pairs
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from vrgcn.engine.setup import Setup
from vrgcn.graph.edges import kept_entries
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.sparse import CSR

OwnEdges = Literal["keep", "redraw", "exclude"]


def own_edges_rule(rule: OwnEdges, share: float) -> str:
    """What a run says about the edges of pairs that are scored. share: of pairs that are redrawn"""
    if rule == "keep":
        return "a training pair's own edge carries a message while the pair is scored"
    if rule == "redraw":
        return (
            "a training pair's own edge carries no message while the pair is scored: each epoch "
            f"scores another {share:.0%} of the training pairs, and the others carry messages"
        )
    return (
        "a training pair's own edge carries no message while the pair is scored: the pairs of a "
        "minibatch carry none in it"
    )


class MessageEdges:
    """The edges of a graph of pairs, of which some training pairs can be taken out.

    setup: the model on the graph, with all training pairs
    """

    def __init__(self, setup: Setup, pairs: Pairs) -> None:
        self._setup = setup
        self._pairs = pairs

    def without(self, held: Tensor) -> Setup:
        """The same model on the edges without some training pairs and their reverses.

        held: (pairs, 2) of them; pairs that are no edges change nothing
        """
        graph = self._setup.graph
        out = torch.isin(self._entries, self._keys(held[:, 0], held[:, 1]))
        left = {self._pairs.relation: kept_entries(self._adjacency, ~out)}
        found = self._setup.on_edges_of(graph.replace(edges=left))
        found.fill()
        return found

    @property
    def _adjacency(self) -> CSR:
        return self._setup.graph.edges[self._pairs.relation]

    @cached_property
    def _entries(self) -> Tensor:
        """(entries,) keys of the adjacency's entries."""
        return self._keys(self._adjacency.indices, self._adjacency.row_of_entry)

    def _keys(self, sources: Tensor, targets: Tensor) -> Tensor:
        """(pairs,) a number for each pair, the same in both directions."""
        one, other = torch.minimum(sources, targets), torch.maximum(sources, targets)
        return one * self._pairs.num_nodes + other
