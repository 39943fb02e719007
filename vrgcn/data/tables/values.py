"""Columns of a table as texts and as numbers.

Ids, labels and splits are compared as texts, whatever type a file keeps them in, so that 7 in a
Parquet file is 7 in a CSV file, and 007 is another id. An empty text means that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?inf(inity)?$"
_NO_NUMBER = ("", "nan", "na", "n/a", "#n/a", "<na>", "null", "none")


def is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner) or _is_view(inner))


def is_number(kind: pa.DataType) -> bool:
    """Numbers, and true and false; a column without any value is one too."""
    inner = kind.value_type if types.is_dictionary(kind) else kind
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(inner) for test in tests)


def is_list(kind: pa.DataType) -> bool:
    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def to_text(column: pa.Array) -> pa.Array:
    """A column as a string array, "" where it has nothing."""
    column = _decoded(column)
    if types.is_floating(column.type):
        column = _float_texts(column)
    return pc.fill_null(pc.cast(column, pa.string()), "")


def to_numbers(
    column: pa.Array, dtype: Any = np.float32, missing: Sequence[str] = ()
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """A column as floating point, NaN where it has nothing; and the places of what is no number.

    missing: texts that stand for nothing, besides the usual ones
    """
    column = _decoded(column)
    kind = pa.from_numpy_dtype(dtype)
    nowhere = np.empty(0, np.int64)
    if not is_text(column.type):
        return _array(pc.cast(column, kind, safe=False)), nowhere
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


def to_matrix(column: pa.Array, width: int, dtype: Any = np.float32) -> tuple[NDArray[Any], Any]:
    """Lists of `width` numbers as (rows, width), NaN for a missing list; and the places of lists
    of another length."""
    lengths = pc.list_value_length(column)
    right = _array(pc.fill_null(pc.equal(lengths, width), False))
    values, _ = to_numbers(column.filter(pa.array(right)).flatten(), dtype)
    matrix = np.full((len(column), width), np.nan, dtype)
    matrix[right] = values.reshape(-1, width)
    return matrix, np.flatnonzero(~right & _array(column.is_valid()))


def is_missing(text: pa.Array, missing: Sequence[str]) -> NDArray[np.bool_]:
    """Where a text is empty or one of the user's words for unknown."""
    return _array(pc.is_in(text, pa.array(["", *missing], pa.string())))


def _array(column: pa.Array) -> NDArray[Any]:
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _float_texts(column: pa.Array) -> pa.Array:
    """3.0 as "3", as programs turn whole numbers into floating point when some are missing."""
    values = _array(pc.cast(column, pa.float64()))
    whole = (np.abs(values) < 2**63) & (values == np.floor(values))
    integers = pa.array(np.where(whole, values, 0).astype(np.int64)).cast(pa.string())
    texts = pc.if_else(pa.array(whole), integers, pc.cast(column, pa.string()))
    return pc.if_else(pa.array(np.isnan(values)), None, texts)


def _is_view(kind: pa.DataType) -> bool:
    return bool(getattr(types, "is_string_view", lambda _: False)(kind))
