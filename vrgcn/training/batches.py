"""The minibatches that a config stands for, and the histories that are refreshed beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from vrgcn.engine.estimators import Estimator, find_estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.samplers import SETTINGS
from vrgcn.engine.setup import Setup, look
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.training.config import TrainConfig
from vrgcn.training.objective import Objective, build_objective


def build_minibatches(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    *,
    estimator: Estimator | None = None,
    propagation: PropagationLike | None = None,
    objective: Objective | None = None,
    directory: Path | None = None,
    setup: Setup | None = None,
) -> MiniBatches:
    """The minibatches that `fit` trains on.

    setup: the model on the graph as `look_at` found it; P X is then the caller's to fill
    """
    objective = objective or build_objective(graph, config)
    batches = MiniBatches(
        model,
        graph,
        estimator=estimator or config.estimator,
        fanout=config.fanout,
        nodes=visited_nodes(config, objective, estimator),
        trained=objective.trained,
        batch_size=config.batch_size,
        run=min(config.block, config.batch_size) if config.batches == "blocks" else 1,
        propagation=config.propagation if propagation is None else propagation,
        preprocess=config.preprocess,
        inductive=config.inductive,
        sampling={name: getattr(config, name) for name in SETTINGS},
        history_dtype=config.history_dtype,
        history_cap=config.history_cap,
        directory=directory,
        seed=config.seed,
        setup=setup,
    )
    if not bool(batches.trained[batches.nodes].any()):
        raise ValueError(
            "none of the nodes that an epoch visits counts in the loss: an objective says which "
            "nodes do by `trained`, and which are visited by `visit`"
        )
    return batches


def look_at(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    propagation: PropagationLike | None = None,
) -> Setup:
    """A model on a graph as a config says, looked at once; P X is not computed yet."""
    return look(
        model,
        graph,
        propagation=config.propagation if propagation is None else propagation,
        preprocess=config.preprocess,
        inductive=config.inductive,
    )


def visited_nodes(config: TrainConfig, objective: Objective, estimator: Estimator | None) -> Any:
    """What epochs visit (TrainConfig.visit): `auto` are all nodes where gradients have a history,
    since then they pass through unlabelled nodes too, and else what the objective says."""
    if objective.visit != "auto":
        return objective.visit
    two_way = (estimator or find_estimator(config.estimator)).gradient_history
    return "all" if two_way else "train"


def refreshed_nodes(batches: MiniBatches, refresh: str) -> Tensor | None:
    """Nodes whose histories to refresh before each epoch (TrainConfig.refresh); None for none."""
    if refresh == "never" or not batches.estimator.history:
        return None
    if refresh == "auto" and batches.samples_neighbours:
        return None
    nodes = batches.unvisited()
    return nodes if len(nodes) else None
