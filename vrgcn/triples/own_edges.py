"""The edges of a graph of triples, of which some training triples can be taken out."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from vrgcn.engine.setup import Setup
from vrgcn.graph.edges import kept_entries
from vrgcn.graph.triples import Triples


class TripleEdges:
    """setup: the model on the graph, with all training triples"""

    def __init__(self, setup: Setup, triples: Triples) -> None:
        self._setup = setup
        self._triples = triples
        self._relations = [setup.graph.relations[name] for name in triples.relations]

    def without(self, held: Tensor) -> Setup:
        """The same model on the edges without some triples and their reverses, of both directions
        between their nodes in their relation. held: (triples, 3)"""
        out = torch.isin(self._entries, self._keys(*held.unbind(1)))
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
        """(edges,) keys of the edges of all relations."""
        return torch.cat(
            [
                self._keys(part.adjacency.indices, torch.tensor(n), part.adjacency.row_of_entry)
                for n, part in enumerate(self._relations)
            ]
        )

    def _keys(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """A number for each triple, the same in both directions."""
        low, high = torch.minimum(heads, tails), torch.maximum(heads, tails)
        nodes = self._triples.num_nodes
        return (relations * nodes + low) * nodes + high
