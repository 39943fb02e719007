"""`auto`: which estimator a run uses where none was asked for.

lab/studies/staleness_map.py compares the estimators after equal seconds (docs/two-way.md has the
map). Histories of both kinds win where nodes have many neighbours. Where they have few, exact
training computes hardly more nodes, and it has neither noise nor staleness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import nn

from vrgcn.costs.epoch_cost import Cost, counted, epoch_costs
from vrgcn.engine.setup import Setup
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike
from vrgcn.training.config import AUTO, TrainConfig
from vrgcn.training.objective import Objective

EXACT = "exact"
# In this order: the first that can train the model is compared with exact training. Sparse features
# under dropout have no history of their own; cvd knows them exactly.
CANDIDATES = ("two-way", "cvd")
# Both by the map: a step takes as long as so many nodes, however few it has; and exact training is
# not behind where it takes up to so many times as long by this count: its epochs lead further.
STEP = 500
HARDLY_MORE = 2.0
# Entries of sparse features that take as long as a node, forward and backward.
ENTRIES = 80


@dataclass(frozen=True)
class Choice:
    """estimator: by name; reason: in a line, for whoever did not choose"""

    estimator: str
    reason: str


def choose_estimator(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    propagation: PropagationLike | None = None,
    objective: Objective | None = None,
) -> tuple[TrainConfig, Choice | None]:
    """The config with an estimator in place of `auto`, and the choice; None where the config names
    an estimator."""
    if config.estimator != AUTO:
        return config, None
    costs = candidate_costs(model, graph, config, propagation=propagation, objective=objective)
    choice = choice_by(costs)
    return replace(config, estimator=choice.estimator), choice


def candidate_costs(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    *,
    propagation: PropagationLike | None = None,
    objective: Objective | None = None,
    setup: Setup | None = None,
) -> dict[str, Cost]:
    """Costs of an epoch by each estimator that `auto` may stand for, whatever the seed: runs that
    differ in the seed alone are to be compared."""
    plain = replace(config, seed=0)
    names = (EXACT, *CANDIDATES)
    return epoch_costs(
        model, graph, plain, names, propagation=propagation, objective=objective, setup=setup
    )


def choice_by(costs: Mapping[str, Cost]) -> Choice:
    """Which estimator to take, by what an epoch of each costs."""
    if EXACT not in costs:  # then none can train here, and the run will say why
        return Choice(CANDIDATES[0], "it is the usual one")
    exact = costs[EXACT]
    name = next((name for name in CANDIDATES if name in costs), EXACT)
    if not exact.neighbours:
        return Choice(EXACT, "the model looks at no neighbours, so there is nothing to estimate")
    if name == EXACT:
        return Choice(EXACT, "no estimator with histories can train this model on this graph")
    if hardly_more(exact, costs[name]):
        return Choice(
            EXACT,
            f"in minibatches of this size it costs hardly more than {name} on this graph "
            f"({counted(exact.nodes)} nodes an epoch, {counted(costs[name].nodes)} by {name}), and "
            "it has no noise",
        )
    return Choice(
        name,
        f"it computes {counted(costs[name].nodes)} nodes an epoch, {EXACT} training "
        f"{counted(exact.nodes)}",
    )


def hardly_more(exact: Cost, other: Cost) -> bool:
    """Whether exact training costs about as much as another estimator, and so is worth it."""
    return _work(exact) <= HARDLY_MORE * _work(other)


def _work(cost: Cost) -> float:
    return cost.nodes + cost.entries / ENTRIES + STEP * cost.steps
