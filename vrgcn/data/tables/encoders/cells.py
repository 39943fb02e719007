"""Cells that hold several values: lists of Parquet, lists written as text, delimited values."""

from __future__ import annotations

import ast
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.values import is_list, is_nothing, to_text

BRACKETS = "[]"  # in place of a delimiter: cells such as [1, 2] or ["a", "b"]


def cell_lists(cells: pa.Array, delimiter: str | None) -> tuple[pa.Array, NDArray[np.int64]]:
    """Each cell as a list, null where it is missing, and the places of cells that are no list.

    delimiter: what divides the values of a text; BRACKETS for lists that are written as such
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


def list_decimal(delimiter: str | None, decimal: str | None) -> str | None:
    """The decimal comma or point of numbers in lists: where they stand in brackets, commas divide
    them and the point is the only one, whatever the rest of the table has."""
    return None if delimiter == BRACKETS else decimal


def _parsed(cell: str) -> list[str] | None:
    """The values of a list in JSON or in Python's spelling, as texts; None if it is no list."""
    try:
        values = json.loads(cell)
    except RecursionError:  # brackets in brackets, by the thousand
        return None
    except ValueError:
        try:
            values = ast.literal_eval(cell)  # 'single quotes'; reads values, runs nothing
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    if not isinstance(values, list) or any(isinstance(v, (list, dict, set, tuple)) for v in values):
        return None
    return ["" if value is None else str(value) for value in values]


_NOWHERE = np.empty(0, np.int64)
