"""Decides which nodes an epoch visits, and which of them need no backward pass.

If gradients have a history, they pass through every visited node, labelled or not. A node that no
gradient can reach has none to pass on: it is visited forward only, to keep its activations fresh,
and not at all if no node reads them. If all visited nodes fit into one minibatch, they form one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.graph.propagation import Propagation, with_neighbours
from vrgcn.graph.sparse import offsets


@dataclass(frozen=True)
class Visits:
    """backward: (nodes,) ids that are visited forward and backward
    forward: (nodes,) ids that are visited forward only
    """

    backward: Tensor
    forward: Tensor

    @property
    def count(self) -> int:
        return len(self.backward) + len(self.forward)

    def fitted(self, batch_size: int, count: int | None = None) -> Visits:
        """One minibatch, forward and backward, if all visited nodes fit into it; else the same.

        Such a step is full-batch training: were some of its nodes visited in another step, it
        would read zeros of them in the first epoch.

        count: nodes that all processes together visit; None: this is the only one
        """
        if (self.count if count is None else count) > batch_size or not len(self.forward):
            return self
        return all_visits(torch.cat([self.backward, self.forward]).sort().values)

    def batches(
        self, batch_size: int, generator: torch.Generator, run: int = 1
    ) -> list[tuple[Tensor, bool]]:
        """Minibatches in random order, each with whether it has a backward pass.

        The last of each kind may be smaller, or one node larger, and then comes at the end.

        run: minibatches are made of runs of so many nodes that follow each other
        """
        parts = [
            (part, back)
            for nodes, back in ((self.backward, True), (self.forward, False))
            for part in shuffled(nodes, run, generator).split(sizes(len(nodes), batch_size))
        ]
        if not len(self.forward):
            return parts
        whole = [part for part in parts if len(part[0]) == batch_size]
        rest = [part for part in parts if len(part[0]) != batch_size]
        order = torch.randperm(len(whole), generator=generator).tolist()
        return [whole[place] for place in order] + rest


def sizes(nodes: int, batch_size: int) -> list[int]:
    """Sizes of the minibatches for `nodes` nodes. A last minibatch of one node joins the one before
    it: a BatchNorm knows no deviation of one."""
    found = [batch_size] * (nodes // batch_size)
    left = nodes % batch_size
    if left == 1 and found:
        found[-1] += 1
    elif left:
        found.append(left)
    return found


def shuffled(nodes: Tensor, run: int, generator: torch.Generator) -> Tensor:
    """The nodes in random order; with run > 1, runs of so many neighbouring ones stay together.

    Where runs begin is drawn too, so that the same nodes are not together in every epoch. Every
    place of the order is equally likely for every run, and so for every node: a minibatch's sum of
    losses has the mean that it has in plain random order (but for the ends of the list, where runs
    are shorter), and each node is in one minibatch of the epoch.
    """
    if run == 1:
        return nodes[torch.randperm(len(nodes), generator=generator)]
    first = min(int(torch.randint(run, (1,), generator=generator)), len(nodes))
    start = torch.zeros(1 if first else 0, dtype=torch.int64)
    starts = torch.cat([start, torch.arange(first, len(nodes), run)])
    sizes = torch.cat([starts, torch.tensor([len(nodes)])]).diff()
    order = torch.randperm(len(starts), generator=generator)
    starts, sizes = starts[order], sizes[order]
    shift = torch.repeat_interleave(starts - offsets(sizes)[:-1], sizes)
    return nodes[shift + torch.arange(len(nodes))]


def all_visits(nodes: Tensor) -> Visits:
    """Every node forward and backward."""
    return Visits(nodes, nodes[:0])


def reached_visits(
    nodes: Tensor, trained: Tensor, matrices: Iterable[Iterable[Propagation]], num_nodes: int
) -> Visits:
    """Visits of `nodes` where the loss is that of the `trained` among them.

    trained: (nodes,) bool over all nodes of the graph
    matrices: of each level that is estimated, from the input up
    """
    if trained[nodes].all():
        return all_visits(nodes)
    # Gradients and reads start at the output.
    levels = [list(level) for level in matrices][::-1]
    visited = torch.zeros(num_nodes, dtype=torch.bool)
    visited[nodes] = True
    reached = (visited & trained).nonzero()[:, 0]
    for level in levels:
        reached = with_neighbours(reached, *level)
    backward = reached[visited[reached]]
    read = backward
    for level in levels:
        read = with_neighbours(read, *level)
    visited[backward] = False
    return Visits(backward, read[visited[read]])
