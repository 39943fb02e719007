"""Encode columns of numbers, and of yes and no."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.encoder import Look, Rejection, Tell, drop_advice
from vrgcn.data.tables.encoders.filling import FilledColumn, Filling
from vrgcn.data.tables.encoders.sample import MOSTLY, ColumnSample, share
from vrgcn.data.tables.overrides import Fill
from vrgcn.data.tables.values import comma_advice, is_nothing, is_number, to_numbers, to_text
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted
from vrgcn.tasks.spread import number_text

EXACT = 2**24  # floats of 32 bits hold every whole number up to here
YES = ("true", "yes", "y", "t", "on", "1", "1.0")
NO = ("false", "no", "n", "f", "off", "0", "0.0")
_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$"
_COMMA_SURELY = r"^[+-]?(\d+,(\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+|\d{1,3}(\.\d{3})+,\d+)$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
_THOUSANDS_SURELY = r"^[+-]?\d{1,3}((,\d{3})+\.\d+|(,\d{3}){2,})$"
_WHOLE = r"^[+-]?(\d{1,18}|[1-8]\d{18})$"  # whole numbers that 64 bits hold


class NumberColumn(FilledColumn):
    """Encodes a column of numbers: one feature, and a second if missing numbers are marked.

    fill: a constant is given in the column's own numbers, so the offset is subtracted from it too
    decimal: see `to_numbers`
    lenient: a cell that is no number counts as missing
    offset: the number that is subtracted from all, so that large whole numbers that differ by
        little stay different in 32 bits; models are not affected, because features are standardised
    """

    kind: ClassVar[str] = "number"
    option: ClassVar[str] = (
        "lenient (whatever is no number counts as missing), or the decimal comma or point"
    )
    turn: ClassVar[int] = 20
    stored: ClassVar[tuple[str, ...]] = ("decimal", "lenient", "offset")
    plural: ClassVar[str] = "numbers"

    def __init__(
        self,
        column: str,
        fill: Fill | Filling,
        decimal: str | None = None,
        lenient: bool = False,
        offset: int = 0,
    ) -> None:
        # The offset is already subtracted in a filling that was stored.
        super().__init__(column, fill.less(offset) if isinstance(fill, Fill) else fill)
        self._gaps = str(fill if isinstance(fill, Filling) else Filling(fill))
        self.decimal = decimal
        self.lenient = lenient
        self.offset = offset
        self._rounded = 0
        self._example = 0.0

    @classmethod
    def allows(cls, option: str) -> bool:
        return option in ("lenient", ",", ".")

    @classmethod
    def recognise(cls, sample: ColumnSample) -> Look | Rejection:
        if sample.holds_ids:
            return Rejection()
        if not sample.is_text or sample.plain_numbers:
            return _look(sample, sample.cells, None)
        if sample.odd_codes:
            return Rejection()
        known, decimal = sample.known, sample.spec.decimal
        if _mostly_numbers(known, decimal):
            return _look(sample, known, decimal, sample.gaps)
        found = _with_commas(sample) if decimal is None else _with_the_other(sample, decimal)
        return Rejection() if found is None else found

    @classmethod
    def told(cls, sample: ColumnSample, option: str, found: Look) -> Look:
        decimal = found.options.get("decimal", sample.spec.decimal)
        look = _look(sample, sample.cells, option if option in (",", ".") else decimal)
        lenient = option == "lenient"
        return replace(look, gaps=lenient, options=look.options | {"lenient": lenient})

    @property
    def names(self) -> list[str]:
        return [self.column, *self._mark]

    def fit(self, cells: pa.Array) -> None:
        self.filling.see(self.values(cells)[0])

    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        values, wrong = self.values(cells)
        if self.lenient:
            wrong = wrong[:0]
        with np.errstate(over="ignore"):
            out[:, 0] = values
        self._tell_wrong(wrong, cells, tell)
        out[wrong, 0] = 0  # reported already; do not report it as missing too
        self._note_rounding(values, out[:, 0])
        empty = ~np.isfinite(out[:, 0])
        if self.filling.fill.mark:
            out[:, 1] = empty
        if self.filling.fill.how == "error":
            self.filling.see(values)
            self._tell_missing(cells, out[:, 0], tell)
        if empty.any():
            out[empty, 0] = self.filling.put(int(empty.sum()))

    def values(self, cells: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the numbers, NaN where there is none, and the places of cells that are no
        numbers."""
        values, wrong = to_numbers(cells, np.float64, decimal=self.decimal)
        if self.offset:
            values = values - self.offset
            whole, exact = _whole_numbers(cells)
            values[whole] = exact - self.offset  # 64-bit integers, so nothing is rounded yet
        return values, wrong

    def plan(self) -> str:
        parts = [counted(len(self.names), "feature")]
        if self.offset:
            parts.append(f"less {self.offset:,}, for 32 bits to tell them apart")
        if self.decimal == ",":
            parts.append("decimal commas read as points")
        if self.lenient:
            parts.append("texts count as missing")
        return ", ".join(parts) + self._gaps

    def notes(self) -> list[str]:
        notes = super().notes()
        if self._rounded:
            some = counted(self._rounded, "whole number is", "whole numbers are")
            notes.append(
                f"{some} beyond {EXACT:,}, where 32 bits no longer tell every number from the "
                f"next, such as {self._example:,.0f}; if they are codes and no amounts, give "
                f"{setting('column', f'{self.column}=category')} or {setting('drop', self.column)}"
            )
        return notes

    def _tell_wrong(self, wrong: NDArray[np.int64], cells: pa.Array, tell: Tell) -> None:
        if not len(wrong):
            return
        advice = (
            f"count them as missing with {setting('column', f'{self.column}=number:lenient')}, "
            f"take all as categories with {setting('column', f'{self.column}=category')}, or "
            f"{drop_advice(self.column)}"
        )
        advice += comma_advice(cells, wrong)
        tell("holds text where numbers should be", wrong, cells.take(pa.array(wrong)), advice)

    def _tell_missing(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        advice = self._fill_advice
        tell("is missing or NaN", np.flatnonzero(np.isnan(out)), None, advice)
        infinite = np.flatnonzero(np.isinf(out))
        what = "is infinite, or too large for 32 bits"
        tell(what, infinite, cells.take(pa.array(infinite)), advice)

    def _note_rounding(self, values: NDArray[np.float64], out: NDArray[np.float32]) -> None:
        with np.errstate(invalid="ignore"):
            large = np.flatnonzero((np.abs(values) > EXACT) & np.isfinite(out))
        given = values[large]
        lost = (given == np.floor(given)) & (given != out[large])
        if lost.any():
            self._example = self._example or float(given[lost][0])
            self._rounded += int(lost.sum())


class BooleanColumn(NumberColumn):
    """Encodes yes and no as 1 and 0."""

    kind: ClassVar[str] = "boolean"
    option: ClassVar[str] = ""
    turn: ClassVar[int] = 10
    plural: ClassVar[str] = ""

    @classmethod
    def recognise(cls, sample: ColumnSample) -> Look | Rejection:
        if pa.types.is_boolean(sample.cells.type):
            return Look("true and false", sample.missing)
        if not sample.is_text or sample.plain_numbers:
            return Rejection()
        words = pc.utf8_lower(sample.known)
        if not pc.all(pc.is_in(words, pa.array(YES + NO))).as_py() or sample.share(r"^[\d.]+$"):
            return Rejection()
        return Look(" and ".join(sorted(pc.unique(words).to_pylist())), sample.missing)

    @classmethod
    def told(cls, sample: ColumnSample, option: str, found: Look) -> Look:
        return Look(found.words, found.missing)

    def values(self, cells: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        if not pa.types.is_boolean(cells.type) and is_number(cells.type):
            values, _ = to_numbers(cells, np.float64)
            return values, np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1))
        text = to_text(cells)
        plain = pc.utf8_lower(pc.utf8_trim_whitespace(text))
        yes, no = (
            pc.is_in(plain, pa.array(words)).to_numpy(zero_copy_only=False) for words in (YES, NO)
        )
        values = np.where(yes, 1.0, np.where(no, 0.0, np.nan))
        return values, np.flatnonzero(~(yes | no | is_nothing(text)))

    def plan(self) -> str:
        return f"{counted(len(self.names), 'feature')}, 1 for yes and 0 for no{self.filling}"

    def _tell_wrong(self, wrong: NDArray[np.int64], cells: pa.Array, tell: Tell) -> None:
        category = setting("column", f"{self.column}=category")
        advice = f"give {category}, or {drop_advice(self.column)}"
        tell("is neither true nor false", wrong, cells.take(pa.array(wrong)), advice)


def _look(sample: ColumnSample, cells: pa.Array, decimal: str | None, gaps: int = 0) -> Look:
    """Describe cells as numbers, even if some are no numbers.

    gaps: number of further cells that are missing
    """
    values, wrong = to_numbers(cells, np.float64, decimal=decimal)
    with np.errstate(over="ignore"):
        finite = values[np.isfinite(values.astype(np.float32))]
    if not len(finite):
        options: dict[str, Any] = {"decimal": sample.spec.decimal}
        return Look("no numbers", len(values) - len(wrong) + gaps, options=options)
    least, greatest = number_text(finite.min()), number_text(finite.max())
    words = f"numbers, {least} to {greatest}" if least != greatest else f"numbers around {least}"
    if finite.min() == finite.max():
        words = f"always {least}"
    if len(wrong):
        words += f", and {counted(len(wrong), 'text')}"
    missing = len(values) - len(finite) - len(wrong) + gaps
    return Look(words, missing, options={"offset": _offset(finite), "decimal": decimal})


def _offset(values: NDArray[np.float64]) -> int:
    """Return the number to subtract so that 32 bits tell the values apart; 0 if none is needed.

    If values differ by less than their rounding, their standard deviation would be that of
    rounding.
    """
    low, high = float(values.min()), float(values.max())
    if max(abs(low), abs(high)) <= EXACT or max(abs(low), abs(high)) >= 2.0**62:
        return 0
    if (values != np.floor(values)).any() or (values.astype(np.float32) == values).all():
        return 0
    return int(low) if high - low < max(abs(low), abs(high)) / 1000 else 0


def _mostly_numbers(known: pa.Array, decimal: str | None) -> bool:
    _, wrong = to_numbers(known, np.float64, decimal=decimal)
    return len(known) - len(wrong) >= MOSTLY * len(known)


def sure_decimal(known: pa.Array) -> str | None:
    """Return the comma or the point that stands before fractions in texts with commas; None if that
    is not certain."""
    surely_comma, surely_point = share(known, _COMMA_SURELY), share(known, _THOUSANDS_SURELY)
    if bool(surely_comma) == bool(surely_point):
        return None
    return "," if surely_comma else "."


def _with_commas(sample: ColumnSample) -> Look | None:
    """Describe texts as numbers in which a comma stands before the fraction or between thousands;
    None if they are no such numbers."""
    known = sample.known
    comma, thousands = sample.share(_COMMA), sample.share(_THOUSANDS)
    if max(comma, thousands) < MOSTLY or not sample.share(","):
        return None
    decimal = sure_decimal(known)
    if decimal is not None:
        return _look(sample, known, decimal, sample.gaps)
    cell = known.filter(pc.match_substring(known, ","))[0].as_py()
    return Look(
        "numbers with commas",
        sample.gaps,
        f"holds numbers with commas, such as {cell!r}: give {setting('decimal', ',')} if a comma "
        f"stands before fractions, or {setting('decimal', '.')} if it divides thousands",
    )


def _with_the_other(sample: ColumnSample, decimal: str) -> Look | None:
    """Describe texts that are numbers only if the comma and the point change places, with a doubt;
    None if they are no numbers then either."""
    other = "." if decimal == "," else ","
    if not _mostly_numbers(sample.known, other):
        return None
    _, odd = to_numbers(sample.known, np.float64, decimal=decimal)
    value = f"{sample.column}=number:{other}"
    return Look(
        "numbers",
        sample.gaps,
        f"holds {sample.known[int(odd[0])].as_py()!r}, which is no number with "
        f"{setting('decimal', decimal)}: for this column give "
        f"{setting('column', value, typed=repr(value))}",
    )


def _whole_numbers(cells: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of cells that are whole numbers, and these numbers in 64 bits."""
    if pa.types.is_integer(cells.type):
        valid = cells.is_valid().to_numpy(zero_copy_only=False)
        return np.flatnonzero(valid), cells.drop_null().cast(pa.int64()).to_numpy()
    text = pc.utf8_trim_whitespace(to_text(cells))
    whole = pc.match_substring_regex(text, _WHOLE)
    texts = pc.replace_substring(text.filter(whole), "+", "")
    return np.flatnonzero(whole.to_numpy(zero_copy_only=False)), texts.cast(pa.int64()).to_numpy()
