"""The parts of a trainer: minibatches, exact outputs, random numbers, counts of nodes.

One process builds them here; with several processes, each builds its own for its part of the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor, nn

from vrgcn.engine.estimators import Estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.setup import Setup
from vrgcn.graph.graph import Graph
from vrgcn.graph.randomness import RandomNumbers
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.training.batches import build_minibatches, refreshed_nodes
from vrgcn.training.config import TrainConfig
from vrgcn.training.monitor import Monitor
from vrgcn.training.target import Target


class Sweeps(Protocol):
    """Computes exact outputs.

    on_chunk: called with the number of nodes after each chunk
    """

    on_chunk: Callable[[int], None] | None

    def outputs(self, nodes: Tensor | None = None) -> Tensor:
        """Return outputs (nodes, outputs) of some nodes, or of all."""


@dataclass(frozen=True, eq=False)
class Components:
    """The objects that a trainer works with.

    minibatches: the minibatches of the training, with P X computed
    refreshed: nodes whose histories are refreshed before each epoch; None for none
    monitor: measures staleness and noise beside the training
    evaluation: exact outputs, for scores
    random: random numbers of the training
    trained, visited: numbers of nodes that count in the loss, and that an epoch visits, over all
        processes
    validated: True if any process has validation nodes
    """

    minibatches: MiniBatches
    refreshed: Tensor | None
    monitor: Monitor
    evaluation: Sweeps
    random: RandomNumbers
    trained: int
    visited: int
    validated: bool


def build_components(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    target: Target,
    setup: Setup,
    *,
    estimator: Estimator | None = None,
    directory: Path | None = None,
    on_begin: Callable[[int], None] | None = None,
    on_chunk: Callable[[int], None] | None = None,
) -> Components:
    """Build the components of training in one process.

    setup: the result of `look_at` for the model and the graph
    estimator: a composition of the user's own; None: the config's
    directory: keep histories, P X and tables of evaluation in files there instead of in memory
    on_begin, on_chunk: called with the progress of an evaluation, see ExactSweeps
    """
    setup = setup.kept_in(directory)
    batches = build_minibatches(
        model,
        graph,
        config,
        target,
        estimator=estimator,
        directory=directory,
        setup=setup,
    )
    setup.fill(batches.nodes)
    evaluation = ExactSweeps(
        model,
        setup.on_all_edges(),
        directory=None if directory is None else directory / "evaluation",
        on_chunk=on_chunk,
    )
    evaluation.on_begin = on_begin
    return Components(
        batches,
        refreshed_nodes(batches, config.refresh),
        Monitor(model, batches, config.diagnostics, config.seed, target),
        evaluation,
        RandomNumbers(config.seed, setup.device, default=setup.training.default_random),
        batches.counted,
        batches.visits.count,
        target.has("val"),
    )
