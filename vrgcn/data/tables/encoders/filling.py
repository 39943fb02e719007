"""What is put where a number is missing, and how it is found: mean, median, or as the user says."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.encoders.reservoir import Reservoir
from vrgcn.data.tables.overrides import Fill
from vrgcn.data.tables.wording import counted

MEDIAN_ROWS = 1 << 18  # the median of a longer column is that of so many of its numbers


class Filling:
    """Learns the number that fills a column's gaps from the finite ones it sees.

    expected: gaps are no surprise
    """

    def __init__(self, fill: Fill, expected: bool = True) -> None:
        self.fill = fill
        self.expected = expected
        self.filled = 0
        self._sum, self._count = 0.0, 0
        self._sample = Reservoir(MEDIAN_ROWS, seed=0) if fill.how == "median" else None

    @property
    def known(self) -> bool:
        """Nothing has to be seen before gaps can be filled."""
        return self.fill.how not in ("mean", "median") or self.fill.value is not None

    def see(self, values: NDArray[np.float64]) -> None:
        with np.errstate(over="ignore"):
            finite = values[np.isfinite(values.astype(np.float32))]
        self._sum += float(finite.sum())
        self._count += len(finite)
        if self._sample is not None:
            self._sample.add(pa.array(finite))

    def finish(self) -> None:
        if self.known:
            return
        value = self._mean()
        if self._sample is not None and self._count:
            value = float(np.median(self._sample.values().to_numpy()))
        self.fill = self.fill.known(value)

    def put(self, gaps: int) -> float:
        """The number to put into so many gaps."""
        self.filled += gaps
        return self.fill.value or 0.0

    def notes(self) -> list[str]:
        if not self.filled or self.expected:
            return []
        some = counted(self.filled, "missing value")
        return [f"{some}, of which there were none before, filled with {self.fill.value or 0:g}"]

    def state(self) -> dict[str, Any]:
        """A column that lacked nothing keeps its mean: tomorrow's table may lack something."""
        value = self._mean() if self.fill.how == "error" else self.fill.value
        how = self.fill.how if self.expected else "error"
        return {"how": how, "value": value, "mark": self.fill.mark}

    @staticmethod
    def from_state(state: dict[str, Any]) -> Filling:
        surprise = state["how"] == "error"
        how = "constant" if surprise else state["how"]
        return Filling(Fill(how, state["value"], state["mark"]), expected=not surprise)

    def _mean(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def __str__(self) -> str:
        if self.fill.how == "error":
            return ""
        value = "the " + self.fill.how if self.fill.how in ("mean", "median") else str(self.fill)
        return f"; missing: {value}" + (", and a mark" if self.fill.mark else "")


class FilledColumn(Encoder):
    """What encoders have in common whose gaps are filled with a number."""

    def __init__(self, column: str, fill: Fill | Filling) -> None:
        self.column = column
        self.filling = fill if isinstance(fill, Filling) else Filling(fill)

    @classmethod
    def make(cls, column: str, fill: Fill, options: dict[str, Any]) -> Self:
        return cls(column, fill=fill, **options)

    @property
    def fitted(self) -> bool:
        return self.filling.known

    def finish(self) -> None:
        self.filling.finish()

    def notes(self) -> list[str]:
        return self.filling.notes()
