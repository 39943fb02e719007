"""The one place where a graph gets its target and split: training, resuming, evaluation, reports,
searches, live models, diagnoses and audits all see the same training, validation and test rows."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from vrgcn.data.edge_tables import with_given_negatives
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import COLUMN, SHARES, setting
from vrgcn.graph.graph import Graph
from vrgcn.targets.label_split import random_split, split_by_time
from vrgcn.targets.pair_split import pairs_split
from vrgcn.targets.predicted import check_predicted, offered
from vrgcn.targets.spec import TargetSpec
from vrgcn.targets.triple_split import split_triples


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
