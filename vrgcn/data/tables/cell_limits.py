"""The largest cell that is read from a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.values import cell_bytes
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import bytes_text

CELL_BYTES = 4 << 20  # most for a cell; in text files for a row, unless it has many columns


def cell_sizes(table: Table, start: int, column: str, cells: pa.Array) -> NDArray[np.int64]:
    """Return the bytes of each cell, (rows,); refuse a cell that is too large.

    start: the number of the row of the first cell
    """
    sizes = cell_bytes(cells)
    for row in np.flatnonzero(sizes > CELL_BYTES)[:1]:
        [place] = table.where([start + int(row)])
        size = bytes_text(int(sizes[row]))
        raise too_large(table, column, f"holds a cell of {size} in {place}", CELL_BYTES)
    return sizes


def too_large(table: Table, given: str, what: str, most: int, advice: str = "") -> InputError:
    """Return the error for a column that takes too much memory.

    given: the name of the column as the table spells it
    """
    column = given.strip()
    return InputError(
        f"{table.name}: column {column!r} {what}, where {bytes_text(most)} are the most; "
        f"{advice}leave the column out with {setting('drop', column, typed=repr(column))}"
    )
