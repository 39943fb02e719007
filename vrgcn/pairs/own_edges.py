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
from vrgcn.graph.predicted_edges import PredictedEdges
from vrgcn.graph.relations import kept_entries

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
    """The edges of a graph whose edges are predicted, of which training edges can be taken out.

    setup: the model on the graph, with all training edges
    """

    def __init__(self, setup: Setup, predicted: PredictedEdges) -> None:
        self._setup = setup
        self._num_nodes = predicted.num_nodes
        self._relations = [setup.graph.relations[name] for name in predicted.relations]

    def without(self, held: Tensor) -> Setup:
        """The same model on the edges without some training edges and their reverses, in both
        directions between their nodes in their relation.

        held: rows of them; those that are no edges change nothing
        """
        relations = held[:, 1] if held.shape[1] == 3 else 0
        out = torch.isin(self._entries, self._keys(held[:, 0], held[:, -1], relations))
        parts = out.split([part.num_edges for part in self._relations])
        left = {
            part.name: kept_entries(part.adjacency, ~taken)
            for part, taken in zip(self._relations, parts, strict=True)
        }
        found = self._setup.on_edges_of(self._setup.graph.replace(edges=left))
        found.fill()
        return found

    @cached_property
    def _entries(self) -> Tensor:
        """(entries,) keys of the edges of all predicted relations."""
        every = [part.adjacency for part in self._relations]
        return torch.cat(
            [self._keys(A.indices, A.row_of_entry, place) for place, A in enumerate(every)]
        )

    def _keys(self, sources: Tensor, targets: Tensor, relations: Tensor | int) -> Tensor:
        """(edges,) a number for each, the same in both directions."""
        low, high = torch.minimum(sources, targets), torch.maximum(sources, targets)
        return (relations * self._num_nodes + low) * self._num_nodes + high
