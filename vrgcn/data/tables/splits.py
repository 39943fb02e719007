"""Find the nodes for training, validation and test: from a column, or drawn at random by a
ratio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.labels import ClassLabels
from vrgcn.data.tables.numbers import Numbers
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.values import is_missing, to_text
from vrgcn.graph.validation import SPLIT_WORDS

NONE = -1
NO_SPLIT = "is none of train, val and test"  # the problem of a cell
_ROUNDING = 1e-9


class KnownLabels(Protocol):
    """Labels that a ratio can split.

    known: (nodes,) True if a node has a label
    """

    @property
    def known(self) -> NDArray[np.bool_]: ...

    def strata(self) -> NDArray[np.int64]:
        """Return the group of each known node, (known nodes,); a ratio splits each group on its
        own."""


def split_codes(
    given: pa.Array, missing: Sequence[str] = ()
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return texts as 0 train, 1 val, 2 test, -1 none, and the places of those that are no split.

    missing: texts that mean that the split is unknown, as an empty one does
    """
    text = pc.utf8_lower(pc.utf8_trim_whitespace(given))
    none = is_missing(given, missing) | is_missing(text, ())
    place = pc.index_in(text, pa.array(list(SPLIT_WORDS))).fill_null(len(SPLIT_WORDS))
    codes = np.array([*SPLIT_WORDS.values(), NONE], np.int64)[place.to_numpy()]
    codes[none] = NONE
    return codes, np.flatnonzero((codes == NONE) & ~none)


class SplitReader:
    """Collects the split column as numbers: 0 train, 1 val, 2 test, -1 none."""

    def __init__(
        self, table: Table, column: str, missing: Sequence[str], problems: Problems
    ) -> None:
        self._table = table
        self._column = column
        self._missing = missing
        self._problems = problems
        self._parts: list[NDArray[np.int8]] = []

    def add(self, start: int, batch: pa.RecordBatch) -> None:
        given = to_text(batch.column(self._column))
        codes, wrong = split_codes(given, self._missing)
        self._problems.add(NO_SPLIT, self._column, start + wrong, given.take(wrong))
        self._parts.append(codes.astype(np.int8))

    def finish(self, labels: ClassLabels | Numbers | None) -> tuple[NDArray[np.int8], list[str]]:
        """Return the split, and remarks for the user. A node without a label is in no split,
        because it can be neither trained on nor scored."""
        codes = np.concatenate(self._parts)
        if labels is None:
            return codes, []
        unlabelled = (codes != NONE) & ~labels.known
        left_out = Problems(self._table)
        left_out.add(
            "puts a node without a label into a split",
            self._column,
            np.flatnonzero(unlabelled),
            advice="it is left out of it",
        )
        codes[unlabelled] = NONE
        return codes, left_out.lines()


def draw_split(labels: KnownLabels, ratio: Sequence[float], seed: int) -> NDArray[np.int8]:
    """Split the labelled nodes at random: 0 train, 1 val, 2 test, -1 none; (nodes,).

    With one class per node, each class is split on its own, see `split_sizes`. With several classes
    per node, all labelled nodes are split together. With numbers, each tenth of the nodes by their
    number is split on its own.
    """
    nodes = np.flatnonzero(labels.known)
    group = labels.strata()
    random = np.random.default_rng(seed).random(len(nodes))
    order = np.lexsort((random, group))
    sizes = np.bincount(group)
    place = np.arange(len(nodes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ends = np.repeat(np.cumsum(split_sizes(sizes, ratio), axis=1), sizes, axis=0)
    codes = np.full(len(labels.known), NONE, np.int8)
    codes[nodes[order]] = np.select([place < end for end in ends.T], [0, 1, 2], NONE)
    return codes


def split_sizes(sizes: NDArray[np.int64], ratio: Sequence[float]) -> NDArray[np.int64]:
    """Return the number of nodes of each class for train, val and test: (classes, 3).

    Shares are rounded by largest remainder. The amount that rounding takes from a split in one
    class is owed to it in the next, so that small classes together follow the ratio too. Each class
    has a node for training, and if there are enough nodes each split with a share has one.
    """
    shares = np.array([*ratio, max(0.0, 1 - sum(ratio))])  # the last: share of nodes in no split
    counts = np.zeros((len(sizes), 4), np.int64)
    owed = np.zeros(4)
    for row in np.flatnonzero(sizes):
        share = sizes[row] * shares
        counts[row] = np.floor(share + _ROUNDING)
        owed += share
        wanting = np.where(share - counts[row] > _ROUNDING, owed - counts[row], -np.inf)
        left = sizes[row] - counts[row].sum()
        counts[row, np.argsort(-wanting, kind="stable")[:left]] += 1
        if counts[row, 0] == 0:
            counts[row, counts[row].argmax()] -= 1
            counts[row, 0] = 1
        owed -= counts[row]
    for split in (1, 2):
        if shares[split] > 0 and not counts[:, split].any() and len(counts):
            _give_one(counts, split)
    return counts[:, :3]


def _give_one(counts: NDArray[np.int64], split: int) -> None:
    """Move a node to a split that has none: from the nodes in no split, or else from the largest
    split."""
    totals = counts.sum(0)
    for donor in (3, *np.argsort(-totals[:3], kind="stable")):
        row = counts[:, donor].argmax()
        spare = counts[row, donor] > 1 if donor == 0 else totals[donor] > int(donor != 3)
        if spare:
            counts[row, donor] -= 1
            counts[row, split] += 1
            return
