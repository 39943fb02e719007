"""Read cells that hold several values: lists of Parquet, lists written as text, delimited
values."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.values import is_list, is_nothing, is_number, is_text, to_numbers, to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted

BRACKETS = "[]"  # in place of a delimiter: cells such as [1, 2] or ["a", "b"]


def cell_lists(cells: pa.Array, delimiter: str | None) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return each cell as a list, null where it is missing, and the places of cells that are no
    list.

    delimiter: the text between two values; BRACKETS for lists that are written in brackets
    """
    if is_list(cells.type):
        return cells, np.empty(0, np.int64)
    text = to_text(cells)
    text = pc.if_else(pa.array(is_nothing(text)), None, text)
    if delimiter != BRACKETS:
        if delimiter is None or delimiter.isspace():
            return pc.split_pattern_regex(pc.utf8_trim_whitespace(text), r"\s+"), _NOWHERE
        return pc.split_pattern(text, delimiter), _NOWHERE
    lists = [None if cell is None else _parsed(cell) for cell in text.to_pylist()]
    wrong = [i for i, values in enumerate(lists) if values is None and text[i].is_valid]
    return pa.array(lists, pa.list_(pa.string())), np.array(wrong, np.int64)


@dataclass(frozen=True)
class Lists:
    """Description of cells that are lists.

    words: description for the user
    missing: cells without a list
    delimiter: see `cell_lists`
    width: numbers in a list, the most frequent count; 0 if the lists do not hold numbers
    empty: no list has a value
    """

    words: str
    missing: int
    delimiter: str | None
    width: int = 0
    empty: bool = False


def describe_lists(cells: pa.Array, delimiter: str | None, decimal: str | None) -> Lists:
    """Describe cells as lists: of numbers if all values are numbers, or else of categories. Lists
    of integers of different lengths count as categories."""
    lists, wrong = cell_lists(cells, delimiter)
    missing = lists.null_count - len(wrong)
    lengths = pc.list_value_length(lists).drop_null().to_numpy()
    lengths = lengths[lengths > 0]
    if not len(lengths):
        return Lists("nothing but empty lists", missing, delimiter, empty=True)
    flat = lists.flatten()
    texts = np.arange(1)
    if not pa.types.is_boolean(flat.type):
        _, texts = to_numbers(flat, decimal=list_decimal(delimiter, decimal))
    whole = pa.types.is_integer(flat.type)
    if len(texts) == 0 and not (whole and lengths.min() != lengths.max()):
        width = int(np.bincount(lengths).argmax())
        return Lists(f"lists of {counted(width, 'number')}", missing, delimiter, width)
    values = pc.utf8_trim_whitespace(to_text(flat))
    different = counted(pc.count_distinct(values).as_py(), "category", "categories")
    return Lists(f"lists of {different}", missing, delimiter)


def told_delimiter(cells: pa.Array, kind: str, option: str, found: str | None) -> str | None:
    """Return the delimiter of the values in a cell: the user's, or else the one that was found."""
    delimiter = option or found
    if delimiter is None and not is_list(cells.type):
        example = setting("column", f"COLUMN={kind}:;", typed=f"COLUMN={kind}:';'")
        raise InputError(f"holds texts: say what divides them, as in {example}")
    return delimiter


def reads_lists(kind: pa.DataType) -> bool:
    """Return True if cells of a type are lists of texts or of numbers."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_list(inner) and (is_text(inner.value_type) or is_number(inner.value_type))


def list_decimal(delimiter: str | None, decimal: str | None) -> str | None:
    """Return the decimal comma or point of numbers in lists. In brackets, commas divide the numbers
    and a point stands before fractions, whatever the rest of the table uses."""
    return None if delimiter == BRACKETS else decimal


def _parsed(cell: str) -> list[str] | None:
    """Return the values of a list in JSON or Python notation as texts; None if it is no list."""
    try:
        values = json.loads(cell)
    except RecursionError:  # thousands of nested brackets
        return None
    except ValueError:
        try:
            values = ast.literal_eval(cell)  # for single quotes; parses values, runs no code
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    if not isinstance(values, list) or any(isinstance(v, (list, dict, set, tuple)) for v in values):
        return None
    return ["" if value is None else str(value) for value in values]


_NOWHERE = np.empty(0, np.int64)
