"""Summarise an import as numbers and as text, with warnings about suspicious data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.tables.adjacency import Adjacency, EdgeFile
from vrgcn.data.tables.feature_files import Features
from vrgcn.data.tables.labels import ClassLabels
from vrgcn.data.tables.nodes import Nodes
from vrgcn.data.tables.numbers import Numbers
from vrgcn.data.tables.wording import counted
from vrgcn.files.printable import printable
from vrgcn.files.setting_names import COLUMN, SHARES, Placeholder, setting
from vrgcn.graph.validation import SPLITS
from vrgcn.tasks import find_task
from vrgcn.tasks.spread import Spread, number_text

ONE_CLASS = 0.95  # share of the labelled nodes
SELF_LOOPS = 0.9  # share of the edges
CLASSES_SHOWN = 20
CONTINUOUS = 12  # different numbers, some not whole; ratings in halves from 0 to 5 are 11
BAR = 30
_LIKELY_MISSING = {"-1", "nan", "na", "n/a", "null", "none", "?", "unknown"}


@dataclass(frozen=True)
class ImportSummary:
    """The counts of an import.

    rows: rows of the table of edges that were read; skipped: rows that were skipped
    duplicates: rows that repeat an earlier one; reciprocal: rows that are the reverse of another,
        if direction does not count
    entries: entries of the adjacency matrix, two for an undirected edge and one for a self-loop
    self_loops: rows that join a node with itself
    isolated: nodes without an edge to another node
    histogram: (least degree, greatest degree, nodes), for 0, 1, 2-3, 4-7, ...
    classes: name -> nodes, if the labels are classes; numbers: spread of the labels, if they are
        numbers and some are known
    unlabelled: nodes without a known label
    splits: name -> nodes
    columns: lines that report which columns and files were used for what
    sparse: features that are stored sparse
    """

    out: Path
    nodes: int
    rows: int
    skipped: int
    entries: int
    duplicates: int
    reciprocal: int
    self_loops: int
    isolated: int
    directed: bool
    weighted: bool
    histogram: list[tuple[int, int, int]]
    width: int
    classes: dict[str, int] | None
    multilabel: bool
    numbers: Spread | None
    unlabelled: int
    splits: dict[str, int]
    columns: list[str]
    sparse: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def edges(self) -> int:
        """The number of different pairs of nodes, ordered pairs in a directed graph."""
        return self.rows - self.duplicates - self.reciprocal

    @property
    def labelled(self) -> int:
        """The number of nodes with a known label."""
        return self.nodes - self.unlabelled

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from map(printable, self.columns)
        yield ""
        yield f"nodes     {self.nodes:>14,}   {self.isolated:,} of them isolated"
        skipped = f", and {self.skipped:,} that were skipped" if self.skipped else ""
        yield f"rows      {self.rows:>14,}   in the table of edges{skipped}"
        pairs = "different pairs of nodes" + (" in their order" if self.directed else "")
        yield f"edges     {self.edges:>14,}   {pairs}; {self._edge_details()}"
        stored = "an edge is one" if self.directed else "an edge is two, a self-loop one"
        yield f"entries   {self.entries:>14,}   in the matrix; {stored}"
        if self.directed:
            size = 8 * (self.nodes + 1) + (12 if self.weighted else 8) * self.entries
            yield (
                f"reversed  {self.entries:>14,}   entries once more, for gradients to go back "
                f"along: {size / 1e6:,.1f} MB"
            )
        sparse = f"   {self.sparse:,} of them sparse" if self.sparse else ""
        yield f"features  {self.width:>14,}{sparse}"
        yield from self._histogram()
        yield from self._labels()
        yield from (f"warning: {printable(warning)}" for warning in self.warnings)

    def _edge_details(self) -> str:
        """Return words for the rows that are not counted as edges, and for the self-loops."""
        parts = [f"{counted(self.duplicates, 'row repeats', 'rows repeat')} another"]
        if not self.directed:
            parts.append(f"{self.reciprocal:,} reversed")
        parts.append(counted(self.self_loops, "self-loop"))
        return ", ".join(parts)

    def _histogram(self) -> Iterator[str]:
        yield ""
        yield "edges into a node, and how many nodes have so many"
        most = max((count for _, _, count in self.histogram), default=1)
        for least, greatest, count in self.histogram:
            name = f"{least:,}" if least == greatest else f"{least:,}-{greatest:,}"
            yield f"  {name:>17} {_bar(count, most)} {count:,}"

    def _labels(self) -> Iterator[str]:
        yield ""
        if self.numbers is not None:
            yield f"numbers from {self.numbers}; {self.unlabelled:,} of the nodes unlabelled"
        elif self.classes is not None:
            yield from self._classes(self.classes)
        else:
            yield "no labels"
            return
        yield "split     " + ", ".join(f"{name} {self.splits[name]:,}" for name in SPLITS)

    def _classes(self, counts: dict[str, int]) -> Iterator[str]:
        several = ", several per node" if self.multilabel else ""
        classes = counted(len(counts), "class", "classes")
        yield f"{classes}{several}; {self.unlabelled:,} of the nodes unlabelled"
        order = sorted(counts.items(), key=lambda item: -item[1])
        labelled = max(self.labelled, 1)
        most = max(counts.values(), default=1)
        for name, count in order[:CLASSES_SHOWN]:
            shown = f"{printable(name)[:17]:>17}"
            yield f"  {shown} {_bar(count, most)} {count:,} ({count / labelled:.1%})"
        if len(order) > CLASSES_SHOWN:
            yield f"  {'':>17} and {len(order) - CLASSES_SHOWN:,} more"


RELATION = Placeholder("RELATION")


def summarise(
    out: Path,
    nodes: Nodes,
    pairs: EdgeFile,
    adjacency: Adjacency,
    features: Features,
    columns: list[str],
    task: str,
    notes: list[str],
    to_predict: bool = False,
) -> ImportSummary:
    """Return the summary of an import.

    task: the task as the user gave it
    notes: warnings from earlier steps
    to_predict: the graph is for a model that is already trained
    """
    return ImportSummary(
        out=out,
        nodes=len(nodes.ids),
        rows=pairs.rows,
        skipped=pairs.skipped,
        entries=adjacency.entries,
        duplicates=adjacency.duplicates,
        reciprocal=adjacency.reciprocal,
        self_loops=pairs.loops,
        isolated=adjacency.isolated,
        directed=adjacency.directed,
        weighted=pairs.weighted,
        histogram=degree_histogram(adjacency.degree),
        width=features.width,
        **label_counts(nodes),
        columns=columns,
        sparse=features.sparse,
        warnings=[
            *notes,
            *edge_warnings(pairs, adjacency),
            *([] if to_predict else feature_warnings(features)),
            *([] if to_predict else label_warnings(nodes, task)),
        ],
    )


def label_counts(nodes: Nodes) -> dict[str, Any]:
    """Return the fields of a summary that are about labels and splits."""
    labels = nodes.labels
    classes = numbers = None
    if isinstance(labels, Numbers):
        numbers = Spread.of(labels.values[labels.known]) if labels.known.any() else None
    elif labels is not None:
        classes = dict(zip(labels.classes, labels.counts().tolist(), strict=True))
    sizes = dict.fromkeys(SPLITS, 0)
    if nodes.split is not None:
        sizes = {name: int((nodes.split == code).sum()) for code, name in enumerate(SPLITS)}
    return {
        "classes": classes,
        "multilabel": labels is not None and find_task(labels.task).several,
        "numbers": numbers,
        "unlabelled": 0 if labels is None else int((~labels.known).sum()),
        "splits": sizes,
    }


def degree_histogram(degree: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Count nodes by degree in powers of two: (least, greatest, nodes), from 0 to the largest
    degree."""
    place = np.where(degree == 0, 0, np.frexp(degree.astype(np.float64))[1])
    counts = np.bincount(place).tolist()
    bounds = [(0, 0)] + [(2 ** (i - 1), 2**i - 1) for i in range(1, len(counts))]
    return [(least, greatest, n) for (least, greatest), n in zip(bounds, counts, strict=True)]


def edge_warnings(pairs: EdgeFile, adjacency: Adjacency, isolated: bool = True) -> Iterator[str]:
    """Yield warnings about edges. isolated: warn if most nodes have none"""
    if pairs.loops > SELF_LOOPS * pairs.rows:
        yield (
            f"{pairs.loops / pairs.rows:.0%} of the edges are self-loops; are the source and the "
            "target column right?"
        )
    if isolated and adjacency.isolated > len(adjacency.degree) / 2:
        yield f"{adjacency.isolated / len(adjacency.degree):.0%} of the nodes are isolated"
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


def feature_warnings(features: Features) -> Iterator[str]:
    """Yield a warning if features are the same for all nodes."""
    constant = features.constant
    if len(constant):
        shown = ", ".join(features.label(int(column)) for column in constant[:5])
        more = ", ..." if len(constant) > 5 else ""
        some = counted(len(constant), "feature column is", "feature columns are")
        yield f"{some} the same for all nodes: {shown}{more}"


def label_warnings(nodes: Nodes, task: str) -> Iterator[str]:
    """Yield warnings about labels and splits. task: as the user gave it"""
    labels = nodes.labels
    if labels is None:
        predict = setting("predict", RELATION, command="train")
        yield f"without labels, pairs alone can be predicted ({predict})"
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


def _bar(count: int, most: int) -> str:
    filled = round(BAR * count / most) if most else 0
    return ("#" * max(filled, int(count > 0))).ljust(BAR)
