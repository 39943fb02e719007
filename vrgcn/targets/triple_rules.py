"""Simple rules that score triples without training, to stand beside every model. They see training
triples alone.

    frequent targets    how many training triples the target has in the direction
    other relations     how likely two nodes are linked in the direction, given that they are linked
                        in another one: the largest share, over all other relations and reverses,
                        of their linked nodes that are linked in this one too. Relations that are
                        each other's reverse, or the same under two names, have shares near 1: where
                        this rule is good, the split leaks
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vrgcn.graph.sparse import offsets, slices
from vrgcn.graph.triples import Triples
from vrgcn.targets.ranking import Rule, Scorer

_TIE = 1e-6  # frequency decides among targets of one share


class FrequentTargets(Rule):
    """The number of training triples that end in the target in the direction."""

    def __init__(self, triples: Triples) -> None:
        self.edges = triples
        train = triples.both_ways(triples.train)
        count = len(triples.directions)
        flat = torch.bincount(
            train[:, 1] * triples.num_nodes + train[:, 2], minlength=count * triples.num_nodes
        )
        self.counts = flat.view(count, triples.num_nodes).to(torch.float32)

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        targets = self.edges.ends(direction).targets
        counts = self.counts[direction, targets.start : targets.stop]
        return counts.expand(len(sources), -1).clone()


class OtherRelations(Rule):
    """The largest share of another direction that links the two nodes; frequency decides ties."""

    def __init__(self, triples: Triples) -> None:
        self.edges = triples
        self.frequent = FrequentTargets(triples)
        train = triples.both_ways(triples.train).unique(dim=0)
        both, links = shared_links(triples)
        self.shares = both / links.clamp(min=1)
        order = train[:, 0].argsort(stable=True)
        source, self.directions, self.targets = train[order].unbind(1)
        self.starts = offsets(torch.bincount(source, minlength=triples.num_nodes))

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        first = self.starts[sources]
        rows, entries = slices(first, self.starts[sources + 1] - first)
        nodes, targets = self.edges.num_nodes, self.edges.ends(direction).targets
        share = self.shares[direction, self.directions[entries]]
        best = torch.zeros(len(sources) * nodes)
        best.scatter_reduce_(0, rows * nodes + self.targets[entries], share, "amax")
        scores = self.frequent.against(sources, direction) * _TIE
        return scores + best.view(-1, nodes)[:, targets.start : targets.stop]


def shared_links(triples: Triples) -> tuple[Tensor, Tensor]:
    """(directions, directions) how many pairs of nodes both directions link in training, 0 for a
    direction and itself; and (directions,) how many each links."""
    from scipy.sparse import csr_matrix

    train = triples.both_ways(triples.train).unique(dim=0)
    _, pair = torch.unique(train[:, 0] * triples.num_nodes + train[:, 2], return_inverse=True)
    ones = np.ones(len(train), np.float32)
    shape = (len(triples.directions), int(pair.max()) + 1)
    linked = csr_matrix((ones, (train[:, 1].numpy(), pair.numpy())), shape)
    both = torch.from_numpy((linked @ linked.T).toarray())
    links = both.diagonal().clone()
    return both.fill_diagonal_(0), links


def simple_rules(triples: Triples) -> dict[str, Scorer]:
    """The rules by name."""
    return {
        "frequent targets": FrequentTargets(triples),
        "other relations": OtherRelations(triples),
    }
