"""The parts of a trainer: minibatches, exact outputs, random numbers, counts of nodes.

One process builds them here; with several processes, each builds its own for its part of the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from vrgcn.engine.config import EstimatorConfig
from vrgcn.engine.estimators import Estimator, find_estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.samplers import SETTINGS
from vrgcn.engine.setup import Setup, look
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.graph.randomness import RandomNumbers
from vrgcn.inference.sweeps import ExactSweeps
from vrgcn.training.config import TrainConfig
from vrgcn.training.monitor import Monitor
from vrgcn.training.target import Target


def build_minibatches(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    target: Target,
    *,
    estimator: Estimator | None = None,
    propagation: PropagationLike | None = None,
    directory: Path | None = None,
    setup: Setup | None = None,
) -> MiniBatches:
    """Return the minibatches that `fit` trains on.

    setup: the result of `look_at` for the model and the graph; the caller then fills P X
    """
    batches = target.minibatches(
        model,
        graph,
        estimator=estimator or config.estimator,
        fanout=config.fanout,
        nodes=visited_nodes(config, target, estimator),
        trained=target.trained,
        batch_size=config.batch_size,
        run=min(config.block, config.batch_size) if config.batches == "blocks" else 1,
        propagation=config.propagation if propagation is None else propagation,
        preprocess=config.preprocess,
        inductive=config.inductive or graph.visible is not None,
        sampling={name: getattr(config, name) for name in SETTINGS},
        history_dtype=config.history_dtype,
        history_cap=config.history_cap,
        directory=directory,
        seed=config.seed,
        setup=setup,
    )
    if not bool(batches.trained[batches.nodes].any()):
        raise InputError(
            "none of the nodes that an epoch visits counts in the loss: an objective says which "
            "nodes do by `trained`, and which are visited by `visit`"
        )
    return batches


def look_at(
    model: nn.Module,
    graph: Graph,
    config: EstimatorConfig,
    propagation: PropagationLike | None = None,
) -> Setup:
    """Inspect a model on a graph once, as the config says; P X is not computed yet."""
    return look(
        model,
        graph,
        propagation=config.propagation if propagation is None else propagation,
        preprocess=config.preprocess,
        inductive=config.inductive or graph.visible is not None,
    )


def visited_nodes(config: EstimatorConfig, target: Target, estimator: Estimator | None) -> Any:
    """Return the nodes that epochs visit (`visit`). If the target leaves it at `auto`:
    all nodes if gradients have a history, because they then pass through unlabelled nodes too;
    otherwise the training nodes."""
    if target.visit != "auto":
        return target.visit
    two_way = (estimator or find_estimator(config.estimator)).gradient_history
    return "all" if two_way else "train"


def refreshed_nodes(batches: MiniBatches, refresh: str) -> Tensor | None:
    """Return the nodes whose histories are refreshed before each epoch (`refresh`); None
    for none."""
    if refresh == "never" or not batches.estimator.history:
        return None
    if refresh == "auto" and batches.samples_neighbours:
        return None
    nodes = batches.unvisited()
    return nodes if len(nodes) else None


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
