"""Finds the own nodes that an epoch visits when neighbours may belong to other processes.

The rules are those of `engine.visits`, but the nodes that reach a node are found in all processes,
level by level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from vrgcn.distributed.halo import Halo
from vrgcn.engine.visits import Visits
from vrgcn.graph.propagation import Propagation, with_neighbours


def grown(nodes: Tensor, halo: Halo, matrices: Sequence[Propagation]) -> Tensor:
    """Return the own nodes that any process's `nodes` average, and these nodes themselves,
    ascending.

    nodes: (...,) own nodes of this process
    """
    flags = torch.zeros(halo.nodes, dtype=torch.bool)
    flags[nodes] = True
    # A copy's row in the local graph has exactly the entries of own nodes.
    reached = with_neighbours(halo.spread(flags).nonzero()[:, 0], *matrices)
    return reached[reached < halo.own]


def reached_visits(
    nodes: Tensor, trained: Tensor, matrices: Iterable[Iterable[Propagation]], halo: Halo
) -> Visits:
    """Return the visits of own `nodes` if the loss is that of the `trained` among all processes'
    nodes.

    trained: (local nodes,) bool
    matrices: of each level that is estimated, from the input up
    """
    levels = [list(level) for level in matrices][::-1]
    visited = torch.zeros(halo.nodes, dtype=torch.bool)
    visited[nodes] = True
    reached = (visited & trained).nonzero()[:, 0]
    for level in levels:
        reached = grown(reached, halo, level)
    backward = reached[visited[reached]]
    read = backward
    for level in levels:
        read = grown(read, halo, level)
    visited[backward] = False
    return Visits(backward, read[visited[read]])
