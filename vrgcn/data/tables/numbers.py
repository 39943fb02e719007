"""Labels that are numbers to be predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.store import write_array
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.values import comma_advice, to_numbers
from vrgcn.files.setting_names import setting
from vrgcn.tasks.regression import Number


@dataclass(frozen=True)
class Numbers:
    """Labels that are numbers.

    values: (nodes,) the number of each node, NaN where unknown
    """

    task: ClassVar[str] = Number.name
    classes: ClassVar[None] = None

    values: NDArray[np.float64]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Return True for each node whose number is known, (nodes,)."""
        return ~np.isnan(self.values)

    def strata(self) -> NDArray[np.int64]:
        """Return the tenth that each known node falls into by its number, (known nodes,), the
        smallest numbers first."""
        return Number().strata(self.values, self.known)

    def with_more(self, count: int) -> Numbers:
        """Return the labels extended by `count` nodes whose numbers are unknown."""
        return Numbers(np.append(self.values, np.full(count, np.nan)))

    def within(self, start: int, count: int) -> Numbers:
        """Return the labels as those of `count` nodes, of which these begin at `start`; the numbers
        of the others are unknown."""
        values = np.full(count, np.nan)
        values[start : start + len(self.values)] = self.values
        return Numbers(values)

    def write(self, folder: Path) -> None:
        """Write the labels as the graph's `labels.npy`."""
        write_array(folder, "labels", self.values)


class OneNumber:
    """Reads a column with the number of each node; an empty cell or NaN means unknown."""

    def __init__(
        self, column: str, missing: Sequence[str], decimal: str | None, problems: Problems
    ) -> None:
        self._column = column
        self._missing = missing
        self._decimal = decimal
        self._problems = problems
        self._parts: list[NDArray[np.float64]] = []

    def add(self, start: int, batch: pa.RecordBatch) -> None:
        column = batch.column(self._column)
        values, wrong = to_numbers(column, np.float64, self._missing, self._decimal)
        infinite = np.flatnonzero(np.isinf(values))
        text = f"for classes leave {setting('task', Numbers.task)} out"
        text += comma_advice(column, wrong)
        for what, rows, advice in (
            ("is a label that is no number", wrong, text),
            ("is an infinite label", infinite, "leave it empty where it is unknown"),
        ):
            cells = column.take(pa.array(rows))
            self._problems.add(what, self._column, start + rows, cells, advice)
        self._parts.append(values)

    def finish(self) -> Numbers:
        return Numbers(np.concatenate(self._parts))
