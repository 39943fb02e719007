"""`auto`: chooses the estimator of a run if the user named none.

lab/studies/staleness_map.py compares the estimators after equal seconds (docs/ideas/two-way.md has
the map). Histories of both kinds win where nodes have many neighbours. Where they have few, exact
training computes hardly more nodes, and it has neither noise nor staleness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import nn

from vrgcn.costs.epoch_cost import HARDLY_MORE, Cost, counted, epoch_costs
from vrgcn.engine.setup import Setup
from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.training.config import TrainConfig
from vrgcn.training.target import Target

EXACT = "exact"
# Tried in this order: the first that can train the model is compared with exact training. Sparse
# features under dropout have no history of their own; cvd computes them exactly.
CANDIDATES = ("two-way", "cvd")


@dataclass(frozen=True)
class EstimatorChoice:
    """The chosen estimator.

    estimator: its name; reason: one line for the user who did not choose
    """

    estimator: str
    reason: str


def choose_estimator(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    propagation: PropagationLike | None = None,
    target: Target | None = None,
) -> tuple[TrainConfig, EstimatorChoice | None]:
    """Return the config with an estimator in place of `auto`, and the choice; None for the choice
    if the config names an estimator."""
    if config.estimator != AUTO:
        return config, None
    costs = candidate_costs(model, graph, config, propagation=propagation, target=target)
    choice = choice_by(costs)
    return replace(config, estimator=choice.estimator), choice


def candidate_costs(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    *,
    propagation: PropagationLike | None = None,
    target: Target | None = None,
    setup: Setup | None = None,
) -> dict[str, Cost]:
    """Return the costs of an epoch by each estimator that `auto` may stand for. They do not depend
    on the seed, so that runs with different seeds are comparable."""
    plain = replace(config, seed=0)
    names = (EXACT, *CANDIDATES)
    return epoch_costs(
        model, graph, plain, names, propagation=propagation, target=target, setup=setup
    )


def choice_by(costs: Mapping[str, Cost], most: float = HARDLY_MORE) -> EstimatorChoice:
    """Return the estimator to use, given the cost of an epoch of each.

    most: exact training may take so many times the work of another estimator
    """
    if EXACT not in costs:  # then none can train here, and the run will report why
        return EstimatorChoice(CANDIDATES[0], "it is the usual one")
    exact = costs[EXACT]
    name = next((name for name in CANDIDATES if name in costs), EXACT)
    if not exact.neighbours:
        return EstimatorChoice(
            EXACT, "the model looks at no neighbours, so there is nothing to estimate"
        )
    if name == EXACT:
        return EstimatorChoice(
            EXACT, "no estimator with histories can train this model on this graph"
        )
    if exact.work <= most * costs[name].work:
        return EstimatorChoice(
            EXACT,
            f"in minibatches of this size it costs hardly more than {name} on this graph "
            f"({counted(exact.nodes)} nodes an epoch, {counted(costs[name].nodes)} by {name}), and "
            "it has no noise",
        )
    return EstimatorChoice(
        name,
        f"it computes {counted(costs[name].nodes)} nodes an epoch, {EXACT} training "
        f"{counted(exact.nodes)}",
    )
