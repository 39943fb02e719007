"""`find_target`: what training predicts on a graph, from its labels or pairs and the settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, cast

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.targets.edges import EdgeTarget
from vrgcn.targets.labels import Labels
from vrgcn.targets.links import Links
from vrgcn.targets.predicted import Kind, check_used
from vrgcn.targets.relations import Relations
from vrgcn.targets.scored import scored_edges
from vrgcn.targets.values import Values
from vrgcn.tasks.config import LossConfig
from vrgcn.training.config import TrainConfig
from vrgcn.training.objective import Objective, build_objective, check_labels
from vrgcn.training.own_loss import Loss, OwnLoss
from vrgcn.training.target import Target

_OF_EDGES: dict[Kind, Callable[[Any, Graph, TrainConfig], EdgeTarget]] = {
    "links": Links,
    "values": Values,
    "relations": Relations,
}
_MEMBERS = [name for name in (*Objective.__annotations__, *vars(Objective)) if name[0] != "_"]


def find_target(
    graph: Graph, config: TrainConfig | None = None, objective: Objective | Loss | None = None
) -> Target:
    """Return the target of a graph that `open_target` returned.

    objective: of the user's own for single nodes, or only a loss for the graph's labels; None: the
        usual one
    """
    config = config or TrainConfig()
    edges = scored_edges(graph) if objective is None else None
    check_used(config, "labels" if edges is None else edges.kind)
    if objective is not None:
        return Labels(_own_objective(objective, graph, config), graph)
    if edges is None:
        return Labels(build_objective(graph, config), graph)
    return _OF_EDGES[edges.kind](edges, graph, config)


def _own_objective(given: Objective | Loss, graph: Graph, config: TrainConfig) -> Objective:
    if isinstance(given, type) or not hasattr(given, "loss"):
        if not callable(given):
            raise TypeError(f"objective: {given!r} is neither an Objective nor a function")
        _check_usual(config)
        check_labels(graph)
        return OwnLoss(graph, config, given)
    lacking = [name for name in _MEMBERS if not hasattr(given, name)]
    if lacking:
        raise TypeError(
            f"objective: {given!r} is no Objective: it lacks {', '.join(lacking)}; "
            "docs/guides/objectives.md has an example"
        )
    return cast(Objective, given)


def _check_usual(config: TrainConfig) -> None:
    """Raise if settings of the usual loss were given beside a loss of the user's own."""
    for field in fields(LossConfig):
        value = getattr(config, field.name)
        if value != field.default:
            raise InputError(
                f"{field.name} {value!r} is of the usual loss, and means nothing for a "
                "loss of one's own: leave it out"
            )
