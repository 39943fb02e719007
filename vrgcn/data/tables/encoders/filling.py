"""Fill missing numbers of a column with its mean, its median, or a constant that the user gives."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.encoder import Arrays, Encoder, drop_advice
from vrgcn.data.tables.encoders.reservoir import Reservoir
from vrgcn.data.tables.overrides import Fill
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted

MEDIAN_ROWS = 1 << 18  # the median of a longer column is taken over a sample of this size


class Filling:
    """Learns the number that fills a column's gaps from its finite numbers."""

    def __init__(self, fill: Fill) -> None:
        self.fill = fill
        self.filled = 0
        self._sum, self._count = 0.0, 0
        self._sample = Reservoir(MEDIAN_ROWS, seed=0) if fill.how == "median" else None

    @property
    def known(self) -> bool:
        """True if gaps can be filled without seeing the column first."""
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
        """Return the number that fills gaps, and count `gaps` of them as filled."""
        self.filled += gaps
        return self.fill.value or 0.0

    def notes(self) -> list[str]:
        if not self.filled or self.fill.expected:
            return []
        some = counted(self.filled, "missing value")
        return [f"{some}, of which there were none before, filled with {self.fill.value or 0:g}"]

    def state(self) -> dict[str, Any]:
        """Return the state to store. A column without gaps stores its mean, because a later table
        may have gaps."""
        value = self._mean() if self.fill.how == "error" else self.fill.value
        how = self.fill.how if self.fill.expected else "error"
        return {"how": how, "value": value, "mark": self.fill.mark}

    @staticmethod
    def from_state(state: dict[str, Any]) -> Filling:
        surprise = state["how"] == "error"
        how = "constant" if surprise else state["how"]
        return Filling(Fill(how, state["value"], state["mark"], expected=not surprise))

    def _mean(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def __str__(self) -> str:
        if self.fill.how == "error" or not self.fill.expected:
            return ""
        value = "the " + self.fill.how if self.fill.how in ("mean", "median") else str(self.fill)
        return f"; missing: {value}" + (", and a mark" if self.fill.mark else "")


class FilledColumn(Encoder):
    """Base class of the encoders whose gaps are filled with a number.

    stored: names of the arguments, besides the column and the fill, that `state` keeps
    """

    stored: ClassVar[tuple[str, ...]]

    def __init__(self, column: str, fill: Fill | Filling, **options: Any) -> None:
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

    def state(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.stored}
        return {"fill": self.filling.state(), **own}

    @classmethod
    def from_state(cls, column: str, state: dict[str, Any], arrays: Arrays) -> Self:
        options = {name: state[name] for name in cls.stored}
        return cls(column, fill=Filling.from_state(state["fill"]), **options)

    @property
    def _mark(self) -> list[str]:
        """The name of the feature that marks gaps, if there is one."""
        return [f"{self.column}.missing"] if self.filling.fill.mark else []

    @property
    def _fill_advice(self) -> str:
        """What to do about gaps that are errors."""
        fill = setting("fill", f"{self.column}=mean+mark")
        return f"give {fill}, or {drop_advice(self.column)}"
