"""Warnings about suspicious data in an import: its edges, features, labels and split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.tables.adjacency import Adjacency, EdgeFile
from vrgcn.data.tables.feature_files import Features
from vrgcn.data.tables.labels import ClassLabels
from vrgcn.data.tables.narrowing import naming
from vrgcn.data.tables.nodes import Nodes
from vrgcn.data.tables.numbers import Numbers
from vrgcn.data.tables.read_tables import ReadKind, ReadRelation
from vrgcn.data.tables.sources import OpenedTables
from vrgcn.files.setting_names import COLUMN, SHARES, Placeholder, setting
from vrgcn.files.wording import counted
from vrgcn.tasks.spread import number_text

ONE_CLASS = 0.95  # share of the labelled nodes
SELF_LOOPS = 0.9  # share of the edges
CONTINUOUS = 12  # different numbers, some not whole; ratings in halves from 0 to 5 are 11
RELATION = Placeholder("RELATION")
_LIKELY_MISSING = {"-1", "nan", "na", "n/a", "null", "none", "?", "unknown"}


def warnings(
    source: OpenedTables,
    kinds: Sequence[ReadKind],
    relations: Sequence[ReadRelation],
    nodes: Nodes,
    isolated: float,
) -> Iterator[str]:
    """Yield all warnings. With several tables they begin with the name of a kind or relation.

    nodes: those of the kind that has the labels
    isolated: the share of nodes without edges
    """
    for relation in relations:
        title = f"{'-'.join(relation.triple)}: " if source.named else ""
        if source.named and not relation.adjacency.entries:
            yield f"{title}the relation has no edges"
        share = 0 if source.named else isolated
        found = _edge_warnings(relation.pairs, relation.adjacency, share)
        yield from (f"{title}{warning}" for warning in found)
    if source.like:
        return
    for kind in kinds:
        title = f"{kind.source.name}: " if source.named else ""
        if kind.features is not None:
            yield from (f"{title}{warning}" for warning in _feature_warnings(kind.features))
    with naming(source.labelled or ""):
        yield from _label_warnings(nodes, source.spec.task, source.named)


def _edge_warnings(pairs: EdgeFile, adjacency: Adjacency, isolated: float) -> Iterator[str]:
    """Yield warnings about the edges of a relation. isolated: the share of nodes without any"""
    if pairs.loops > SELF_LOOPS * pairs.rows:
        yield (
            f"{pairs.loops / pairs.rows:.0%} of the edges are self-loops; are the source and the "
            "target column right?"
        )
    if isolated > 0.5:
        yield f"{isolated:.0%} of the nodes are isolated"
    if pairs.weighted and adjacency.reciprocal:
        yield (
            f"{counted(adjacency.reciprocal, 'edge is', 'edges are')} listed in both directions, "
            "with the weights summed; if the file lists every edge twice, import it with "
            f"{setting('directed', True)}"
        )
    if pairs.zero:
        yield f"{counted(pairs.zero, 'edge has', 'edges have')} a weight of 0"
    if pairs.negative:
        yield (
            f"{counted(pairs.negative, 'edge has', 'edges have')} a negative weight; the built-in "
            "propagations gcn and mean cannot train on negative weights"
        )


def _feature_warnings(features: Features) -> Iterator[str]:
    """Yield a warning if features are the same for all nodes."""
    constant = features.constant
    if len(constant):
        shown = ", ".join(features.label(int(column)) for column in constant[:5])
        more = ", ..." if len(constant) > 5 else ""
        some = counted(len(constant), "feature column is", "feature columns are")
        yield f"{some} the same for all nodes: {shown}{more}"


def _label_warnings(nodes: Nodes, task: str, named: bool) -> Iterator[str]:
    """Yield warnings about labels and splits. task: as the user gave it; named: of kinds"""
    labels = nodes.labels
    if labels is None:
        predict = setting("predict", RELATION if named else "edges", command="train")
        yield f"the graph has no labels: you can predict links only ({predict})"
        return
    if not labels.known.any() or labels.classes == []:
        yield "no node has a label"
        return
    if isinstance(labels, Numbers):
        numbers = labels.values[labels.known]
        if (numbers == numbers[0]).all():
            yield f"all labels are the same number, {number_text(numbers[0])}"
    else:
        yield from _class_warnings(labels, task)
    yield from _split_warnings(nodes.split)
    if isinstance(labels, ClassLabels) and nodes.split is not None and (nodes.split == 0).any():
        yield from _untrained_classes(nodes.split, labels)


def _class_warnings(labels: ClassLabels, task: str) -> Iterator[str]:
    labelled, counts = int(labels.known.sum()), labels.counts()
    largest = int(counts.argmax())
    if len(counts) == 1 or counts[largest] >= ONE_CLASS * labelled:
        share = counts[largest] / labelled
        yield f"{share:.1%} of the labelled nodes are of class {labels.classes[largest]!r}"
    if task == "auto" and not labels.several and _looks_continuous(labels.classes):
        yield (
            f"the label looks continuous: {len(counts):,} different numbers among {labelled:,} "
            f"labels, each a class now; to predict the number, import it with "
            f"{setting('task', Numbers.task)}"
        )
    elif not labels.several and len(counts) > max(20, labelled / 2):
        yield f"{len(counts):,} classes for {labelled:,} labelled nodes; is the label column right?"
    spellings: dict[str, str] = {}
    for name in labels.classes:
        other = spellings.setdefault(name.strip().lower(), name)
        if other != name:
            yield (
                f"the classes {other!r} and {name!r} differ only in capital letters or spaces; if "
                "they are one, spell them alike"
            )
        if name.lower() in _LIKELY_MISSING:
            unknown = setting("missing", name)
            yield f"there is a class {name!r}; if that means unknown, give {unknown}"


def _looks_continuous(classes: list[str]) -> bool:
    """Return True if the classes are many numbers that are not all whole."""
    if len(classes) < CONTINUOUS:
        return False
    try:
        values = np.array(classes, dtype=np.float64)
    except ValueError:
        return False
    return bool((values != np.floor(values)).any())


def _split_warnings(split: NDArray[np.int8] | None) -> Iterator[str]:
    if split is None or not (split == 0).any():
        yield (
            f"no nodes are set apart for training; give {setting('split', COLUMN)} or "
            f"{setting('ratio', SHARES)}"
        )
        return
    for place, name in ((1, "validation"), (2, "test")):
        if not (split == place).any():
            yield f"no nodes are set apart for {name}"


def _untrained_classes(split: NDArray[np.int8], labels: ClassLabels) -> Iterator[str]:
    trained = np.bincount(labels.codes[split[labels.nodes] == 0], minlength=len(labels.classes))
    never = np.flatnonzero(trained == 0)
    if len(never):
        shown = ", ".join(repr(labels.classes[int(i)]) for i in never[:5])
        more = ", ..." if len(never) > 5 else ""
        yield f"no training node is of class {shown}{more}"
