"""Encode columns of lists of numbers, all of one length: a feature for each place."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.cells import (
    Lists,
    cell_lists,
    describe_lists,
    list_decimal,
    reads_lists,
    told_delimiter,
)
from vrgcn.data.tables.encoders.encoder import Look, Rejection, Tell, drop_advice
from vrgcn.data.tables.encoders.filling import FilledColumn, Filling
from vrgcn.data.tables.encoders.sample import ColumnSample
from vrgcn.data.tables.overrides import Fill
from vrgcn.data.tables.values import to_numbers
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted


class VectorColumn(FilledColumn):
    """Encodes lists of `width` numbers as features `x[0]`, `x[1]`, ...

    delimiter: the text between two numbers, see `cell_lists`
    """

    kind: ClassVar[str] = "numbers"
    option: ClassVar[str] = "what stands between two of them"
    turn: ClassVar[int] = 40
    stored: ClassVar[tuple[str, ...]] = ("width", "delimiter", "decimal")

    def __init__(
        self,
        column: str,
        width: int,
        fill: Fill | Filling,
        delimiter: str | None = None,
        decimal: str | None = None,
    ) -> None:
        super().__init__(column, fill)
        self.width = width
        self.delimiter = delimiter
        self.decimal = decimal

    @classmethod
    def reads(cls, kind: pa.DataType) -> bool:
        return reads_lists(kind) or super().reads(kind)

    @classmethod
    def recognise(cls, sample: ColumnSample) -> Look | Rejection:
        lists = sample.lists
        return Rejection() if lists is None or not lists.width else cls._look(sample, lists)

    @classmethod
    def told(cls, sample: ColumnSample, option: str, found: Look) -> Look:
        delimiter = told_delimiter(sample.cells, cls.kind, option, found.options.get("delimiter"))
        lists = describe_lists(sample.cells, delimiter, sample.spec.decimal)
        if not lists.width:
            raise InputError(f"looks like {lists.words}, not like lists of as many numbers each")
        return replace(cls._look(sample, lists), missing=lists.missing)

    @staticmethod
    def _look(sample: ColumnSample, lists: Lists) -> Look:
        options = {"width": lists.width, "delimiter": lists.delimiter}
        options |= {"decimal": sample.spec.decimal}
        return Look(lists.words, sample.gaps + lists.missing, options=options)

    @property
    def names(self) -> list[str]:
        return [f"{self.column}[{place}]" for place in range(self.width)] + self._mark

    def fit(self, cells: pa.Array) -> None:
        self.filling.see(self._matrix(cells)[0].ravel())

    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        values, texts, short, lengths = self._matrix(cells)
        with np.errstate(over="ignore"):
            out[:, : self.width] = values
        numbers = out[:, : self.width]
        drop = drop_advice(self.column)
        tell("holds a list with something that is no number", texts, cells.take(texts), drop)
        what = f"holds a list of another length than {self.width}"
        advice = f"as categories: {setting('column', f'{self.column}=categories')}; or {drop}"
        tell(what, short, lengths.take(pa.array(short)), advice)
        numbers[short], numbers[texts] = 0, 0
        finite = np.isfinite(numbers)
        if self.filling.fill.mark:
            out[:, -1] = ~finite.all(1)
        if self.filling.fill.how == "error":
            self.filling.see(values.ravel())
            rows = np.flatnonzero(np.isnan(numbers).any(1))
            tell("is missing or NaN", rows, None, self._fill_advice)
            rows = np.flatnonzero(np.isinf(numbers).any(1))
            tell("is infinite, or too large for 32 bits", rows, None, self._fill_advice)
        if not finite.all():
            numbers[~finite] = self.filling.put(int((~finite).sum()))

    def plan(self) -> str:
        return f"{counted(len(self.names), 'feature')}{self.filling}"

    def _matrix(
        self, cells: pa.Array
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], pa.Array]:
        """Return the numbers, (cells, width), NaN where missing; the rows with a value that is no
        number; the rows of another length; and the length of every row."""
        lists, wrong = cell_lists(cells, self.delimiter)
        lengths = pc.fill_null(pc.list_value_length(lists), 0)
        right = np.equal(lengths.to_numpy(), self.width)
        valid = lists.is_valid().to_numpy(zero_copy_only=False)
        flat = lists.filter(pa.array(right)).flatten()
        decimal = list_decimal(self.delimiter, self.decimal)
        values, texts = to_numbers(flat, np.float64, decimal=decimal)
        matrix = np.full((len(cells), self.width), np.nan)
        matrix[right] = values.reshape(-1, self.width)
        rows = np.flatnonzero(right)[np.unique(texts // self.width)]
        return matrix, np.union1d(rows, wrong), np.flatnonzero(~right & valid), lengths
