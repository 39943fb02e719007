"""Which nodes are for training, validation and test: from a column, or drawn class by class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.labels import Labels
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.values import is_missing, to_text

NONE = -1
_SPELLINGS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


class SplitReader:
    """Collects the split column as numbers: 0 train, 1 val, 2 test, -1 none."""

    def __init__(self, column: str, missing: Sequence[str], problems: Problems) -> None:
        self._column = column
        self._missing = missing
        self._problems = problems
        self._parts: list[NDArray[np.int8]] = []

    def add(self, start: int, batch: pa.RecordBatch) -> None:
        given = to_text(batch.column(self._column))
        text = pc.utf8_lower(pc.utf8_trim_whitespace(given))
        none = is_missing(given, self._missing) | is_missing(text, ())
        place = pc.index_in(text, pa.array(list(_SPELLINGS))).fill_null(len(_SPELLINGS))
        codes = np.array([*_SPELLINGS.values(), NONE], np.int8)[place.to_numpy()]
        codes[none] = NONE
        wrong = np.flatnonzero((codes == NONE) & ~none)
        self._problems.add(
            "is none of train, val and test", self._column, start + wrong, given.take(wrong)
        )
        self._parts.append(codes)

    def finish(self, labels: Labels | None) -> NDArray[np.int8]:
        codes = np.concatenate(self._parts)
        if labels is not None:
            self._problems.add(
                "puts a node without a label into a split",
                self._column,
                np.flatnonzero((codes != NONE) & ~labels.known),
                advice="give the labels or leave the split empty",
            )
        return codes


def draw_split(labels: Labels, ratio: tuple[float, float, float], seed: int) -> NDArray[np.int8]:
    """Split the labelled nodes at random: 0 train, 1 val, 2 test, -1 none; (nodes,).

    Of one class per node each class is split in the ratio on its own, with at least one node for
    training; of several, all labelled nodes are.
    """
    nodes = np.flatnonzero(labels.known)
    group = np.zeros(len(nodes), np.int64) if labels.several else labels.codes
    random = np.random.default_rng(seed).random(len(nodes))
    order = np.lexsort((random, group))
    sizes = np.bincount(group)
    place = np.arange(len(nodes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = np.repeat(sizes, sizes)
    train = np.maximum(1, np.rint(size * ratio[0]))
    val = np.maximum(train, np.rint(size * (ratio[0] + ratio[1])))
    test = np.maximum(val, np.rint(size * sum(ratio)))
    codes = np.full(len(labels.known), NONE, np.int8)
    codes[nodes[order]] = np.select([place < train, place < val, place < test], [0, 1, 2], NONE)
    return codes
