"""Convert columns of a table to texts and to numbers.

Ids, labels and splits are compared as texts, whatever type a file keeps them in, so that 7 in a
Parquet file is 7 in a CSV file, and 007 is another id. An empty text means that the value is
missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from vrgcn.files.setting_names import setting

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?inf(inity)?$"
_COMMAS = r"^\s*[+-]?[\d.,]*\d,\d+(\.\d+)?\s*$"
_NO_NUMBER = ("", "nan", "na", "n/a", "#n/a", "<na>", "null", "none")


def is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner) or _is_view(inner))


def is_number(kind: pa.DataType) -> bool:
    """Return True for types of numbers, for booleans, and for the type of a column without any
    value."""
    inner = kind.value_type if types.is_dictionary(kind) else kind
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(inner) for test in tests)


def is_list(kind: pa.DataType) -> bool:
    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def is_time(kind: pa.DataType) -> bool:
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_temporal(inner))


def fixed_bytes(kind: pa.DataType) -> int | None:
    """Return the bytes of a cell of a type; None if they depend on the cell."""
    if types.is_dictionary(kind) or is_text(kind) or types.is_nested(kind):
        return None
    if types.is_binary(kind) or types.is_large_binary(kind):
        return None
    return 0 if types.is_null(kind) else (kind.bit_width + 7) // 8


def cell_bytes(cells: pa.Array) -> NDArray[np.int64]:
    """Return the bytes of the decoded values in each cell, (cells,); for numbers, texts and lists
    of them."""
    width = fixed_bytes(cells.type)
    if width is not None:
        return np.full(len(cells), width)
    if types.is_dictionary(cells.type):
        sizes = np.append(cell_bytes(cells.dictionary), 0)  # the last entry is for missing cells
        places = pc.fill_null(cells.indices.cast(pa.int64()), len(sizes) - 1)
        return np.asarray(sizes[_array(places)])
    if not is_list(cells.type):
        plain = cells.cast(pa.string()) if _is_view(cells.type) else cells
        return _array(pc.fill_null(pc.binary_length(plain), 0)).astype(np.int64)
    lengths = _array(pc.fill_null(pc.list_value_length(cells), 0)).astype(np.int64)
    width = fixed_bytes(cells.type.value_type)
    if width is not None:
        return lengths * width
    ends = np.cumsum(lengths)
    before = np.append(0, np.cumsum(cell_bytes(cells.flatten())))
    return before[ends] - before[ends - lengths]


def to_text(column: pa.Array) -> pa.Array:
    """Return a column as a string array, "" where a value is missing."""
    column = _decoded(column)
    if types.is_floating(column.type):
        column = _float_texts(column)
    return pc.fill_null(pc.cast(column, pa.string()), "")


def to_numbers(
    column: pa.Array,
    dtype: Any = np.float32,
    missing: Sequence[str] = (),
    decimal: str | None = None,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return a column as floating point, NaN where a value is missing, and the places of cells that
    are no numbers.

    missing: texts that mean a missing value, besides the usual ones
    decimal: the comma or the point before fractions, if the other of them divides thousands
    """
    column = _decoded(column)
    if decimal is not None and is_text(column.type):
        column = _with_point(pc.cast(column, pa.string()), decimal)
    kind = pa.from_numpy_dtype(dtype)
    nowhere = np.empty(0, np.int64)
    if not is_text(column.type):
        values = _array(pc.cast(column, kind, safe=False))
        if missing:
            # A price of -1.00 is the -1 that the user names.
            plain = pc.cast(column, pa.float64()) if types.is_decimal(column.type) else column
            values = np.where(is_missing(to_text(plain), missing), np.nan, values).astype(dtype)
        return values, nowhere
    if not missing:
        try:
            return _array(pc.cast(column, kind)), nowhere
        except pa.ArrowInvalid:
            pass  # something is empty, padded, true or false, or no number
    text = pc.utf8_lower(pc.utf8_trim_whitespace(pc.fill_null(pc.cast(column, pa.string()), "")))
    nothing = _array(pc.is_in(text, pa.array([*_NO_NUMBER, *(word.lower() for word in missing)])))
    number = _array(pc.match_substring_regex(text, _NUMBER)) & ~nothing
    true, false = (_array(pc.equal(text, word)) for word in ("true", "false"))
    values = _array(pc.cast(pc.if_else(pa.array(number), text, None), kind)).copy()
    values[true], values[false] = 1, 0
    return values, np.flatnonzero(~(nothing | number | true | false))


def _with_point(text: pa.Array, decimal: str) -> pa.Array:
    """Rewrite 1.234,5 or 1,234.5 as 1234.5; a text with misplaced dividers is made no number at
    all.

    Dots are not simply left out: with decimal commas 3.5 would silently be 35.
    """
    text = pc.utf8_trim_whitespace(text)
    divider = "." if decimal == "," else ","
    group = rf"^[+-]?\d{{1,3}}(\{divider}\d{{3}})+(\{decimal}\d+)?$"
    grouped = pc.match_substring_regex(text, group)
    text = pc.if_else(grouped, pc.replace_substring(text, divider, ""), text)
    odd = pc.match_substring(text, divider)
    text = pc.if_else(odd, pc.binary_join_element_wise("?", text, ""), text)
    return pc.replace_substring(text, decimal, ".")


def is_nothing(text: pa.Array) -> NDArray[np.bool_]:
    """Return True for each text that is empty or one of the usual words for a missing number."""
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    return _array(pc.is_in(plain, pa.array(_NO_NUMBER)))


def comma_advice(column: pa.Array, wrong: NDArray[np.int64]) -> str:
    """Return advice about numbers with commas among the cells that are no numbers; "" if there are
    none."""
    texts = to_text(column.take(pa.array(wrong)))
    if not pc.any(pc.match_substring_regex(texts, _COMMAS)).as_py():
        return ""
    return (
        f"; for decimal commas give {setting('decimal', ',')} and for commas between thousands "
        f"{setting('decimal', '.')}"
    )


def is_missing(text: pa.Array, missing: Sequence[str]) -> NDArray[np.bool_]:
    """Return True for each text that is empty or one of the user's words for unknown."""
    return _array(pc.is_in(text, pa.array(["", *missing], pa.string())))


def _array(column: pa.Array) -> NDArray[Any]:
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _float_texts(column: pa.Array) -> pa.Array:
    """Write 3.0 as "3", because programs turn whole numbers into floating point when some are
    missing."""
    values = _array(pc.cast(column, pa.float64()))
    whole = (np.abs(values) < 2**63) & (values == np.floor(values))
    integers = pa.array(np.where(whole, values, 0).astype(np.int64)).cast(pa.string())
    texts = pc.if_else(pa.array(whole), integers, pc.cast(column, pa.string()))
    return pc.if_else(pa.array(np.isnan(values)), None, texts)


def _is_view(kind: pa.DataType) -> bool:
    return bool(getattr(types, "is_string_view", lambda _: False)(kind))
