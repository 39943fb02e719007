"""An `.npy` file that is written from the first row to the last, without knowing how many come."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingArray:
    """Rows of a fixed shape, appended to a file that is a valid `.npy` once it is closed.

    NumPy leaves room in the header for the number of rows, so it is written in place at the end.
    """

    def __init__(self, file: Path, dtype: DTypeLike, row: tuple[int, ...] = ()) -> None:
        self._dtype = np.dtype(dtype)
        self._row = row
        self.rows = 0
        self._file: BinaryIO = open(file, "wb")  # noqa: SIM115  (closed by __exit__)
        self._write_header()

    @classmethod
    def reopened(cls, file: Path) -> GrowingArray:
        """Open a file that was written before, to append rows to it."""
        made = cls.__new__(cls)
        made._file = open(file, "r+b")  # noqa: SIM115  (closed by __exit__)
        np.lib.format.read_magic(made._file)
        shape, _, made._dtype = np.lib.format.read_array_header_1_0(made._file)
        made.rows, made._row = shape[0], shape[1:]
        made._file.seek(0, os.SEEK_END)
        return made

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write_header()
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows, (count, *row)."""
        assert rows.shape[1:] == self._row
        self._file.write(np.ascontiguousarray(rows, self._dtype).data)
        self.rows += len(rows)

    def _write_header(self) -> None:
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (self.rows, *self._row)}
        np.lib.format.write_array_header_1_0(self._file, header)
