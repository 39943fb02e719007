"""The one place where a graph gets its target and split: training, resuming, evaluation, reports,
searches, live models, diagnoses and audits all see the same training, validation and test rows; and
`find_target`: what training predicts on such a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn, cast

from vrgcn.data.edge_tables import with_given_negatives
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import COLUMN, SHARES, setting
from vrgcn.graph.graph import Graph
from vrgcn.targets.edges import EdgeTarget
from vrgcn.targets.known_until import frozen, repeated
from vrgcn.targets.label_split import random_split, split_by_time
from vrgcn.targets.labels import Labels
from vrgcn.targets.links import Links
from vrgcn.targets.pair_split import pairs_split
from vrgcn.targets.predicted import Kind, check_predicted, check_used, offered
from vrgcn.targets.relations import Relations
from vrgcn.targets.scored import scored_edges
from vrgcn.targets.spec import TargetSpec
from vrgcn.targets.triple_split import split_triples
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
                f"{field.name} {value!r} is of the usual loss, and has no effect on a "
                "loss of your own: leave it out"
            )


def open_target(spec: TargetSpec, graph: Graph, folder: Path | None = None) -> Graph:
    """Return the graph with what is predicted on it and its split: edges that are left carry
    messages.

    graph: as it was opened, with features as they are
    folder: of a graph on disk, which may say the names of its labels
    """
    check_predicted(spec.predict, graph, folder)
    if spec.labels:
        return _labels(spec, graph, folder)
    if spec.kind == "relations":
        found = split_triples(graph, spec.ratio, spec.split_seed, split_column=spec.split_column)
    else:
        found = pairs_split(graph, spec)
    return _with_negatives(spec, found)


def check_trainable(graph: Graph, folder: Path | None = None) -> None:
    """Raise if a graph that `open_target` returned has nothing to train on."""
    predicted = (graph.labels, graph.pairs, graph.triples)
    if len(graph.train) and any(each is not None for each in predicted):
        return
    if graph.labels is None:
        _refuse_labels(graph, folder)
    raise InputError(
        "the graph has no labelled training nodes; draw some with "
        f"{setting('ratio', SHARES)}, or import it again with {setting('label', COLUMN)} "
        f"and {setting('split')} or {setting('ratio')}"
    )


def _labels(spec: TargetSpec, graph: Graph, folder: Path | None) -> Graph:
    graph = _split(spec, graph, folder)
    return graph if spec.known_until is None else frozen(graph, spec.known_until)


def for_training(spec: TargetSpec, graph: Graph, folder: Path | None = None) -> Graph:
    """Return the graph that `open_target` returns, as a model is trained on it: with training rows
    repeated if facts stop at a date.

    graph, folder: as in `open_target`
    """
    if spec.known_until is None or not spec.labels:
        return open_target(spec, graph, folder)
    check_predicted(spec.predict, graph, folder)
    return repeated(_split(spec, graph, folder), spec.known_until)


def _split(spec: TargetSpec, graph: Graph, folder: Path | None) -> Graph:
    """Return the graph with the split of its labelled nodes."""
    until = spec.train_until
    if until is None and spec.ratio is None:
        return graph
    if graph.labels is None:
        _refuse_labels(graph, folder)
    if until is not None:
        return split_by_time(graph, until, spec.val_until, spec.time_column, spec.split_seed)
    assert spec.ratio is not None
    return random_split(graph, spec.ratio, spec.split_seed)


def _with_negatives(spec: TargetSpec, graph: Graph) -> Graph:
    files = {"val": spec.val_negatives, "test": spec.test_negatives}
    given = {split: file for split, file in files.items() if file is not None}
    return with_given_negatives(graph, given) if given else graph


def _refuse_labels(graph: Graph, folder: Path | None) -> NoReturn:
    """Raise the error of a graph without labels, which says what to predict instead."""
    links = offered(graph, folder)
    example = f"; predict its links: {setting('predict', links[0])}" if links else ""
    raise InputError(
        f"the graph has no labels{example}, or import it again with "
        f"{setting('label', COLUMN, command='import')}"
    )
