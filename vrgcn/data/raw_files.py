"""Raw files of public data sets, looked at before a library reads them as if they could be trusted.

The files `ind.*` of Cora and its kin are pickles, and a pickle can call anything. Here they are
read by an unpickler that knows arrays, sparse matrices, lists and dicts alone; one that passes
calls nothing else when PyG reads it again. A matrix of NumPy's or SciPy's whose rows do not ascend
leads a product to other memory; the places of each are looked at first.
"""

from __future__ import annotations

import math
import os
import pickle
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import scipy.sparse as sp

from vrgcn.files.mistakes import InputError
from vrgcn.files.npy import map_array, read_header


def check_raw_files(folder: Path, files: Sequence[str]) -> None:
    """Raise, with the file's name, if raw files would harm the code that reads them."""
    for name in files:
        file = folder / name
        try:
            if name.endswith(".npz"):
                _check_archive(file)
            elif name.endswith(".npy"):
                map_array(file)
            elif name.startswith("ind.") and not name.endswith(".index"):
                read_pickle(file)
        except MemoryError:
            raise
        except Exception as error:  # damaged archives end in many ways
            raise InputError(f"{file}: {str(error) or type(error).__name__}") from None


def read_pickle(file: Path) -> Any:
    """Read a pickle of arrays, sparse matrices, lists, dicts, texts and numbers.

    Anything else is a `ValueError` without the file's name.
    """
    with file.open("rb") as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pickled by an old NumPy and an old SciPy
        size = os.fstat(opened.fileno()).st_size
        try:
            value = _Unpickler(opened, size).load()
        except pickle.UnpicklingError as error:
            raise InputError(f"not to be unpickled: {error}") from None
        except Exception as error:  # a damaged pickle can end in any
            raise InputError(f"a damaged pickle ({type(error).__name__}: {error})") from None
    if sp.issparse(value):
        _check_sparse(value)
    return value


def _check_archive(file: Path) -> None:
    """Refuse an archive of arrays whose headers claim more than is there, and a broken matrix."""
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            with archive.open(member) as opened:
                header = read_header(opened)
            wanted = header.offset + math.prod(header.shape) * header.dtype.itemsize
            if wanted != member.file_size:
                raise InputError(f"{member.filename} claims {header.shape} of {header.dtype}")
        names = set(archive.namelist())
    if {"indptr.npy", "indices.npy", "shape.npy"} <= names:
        with np.load(file) as arrays:
            shape = arrays["shape"].tolist()
            if not isinstance(shape, list) or len(shape) != 2:
                raise InputError(f"shape is {shape}")
            check_places(arrays["indptr"], arrays["indices"], *shape)


def _check_sparse(matrix: Any) -> None:
    if matrix.format != "csr":
        raise InputError(f"a sparse matrix of the format {matrix.format}, not csr")
    parts: list[Any] = [getattr(matrix, name, None) for name in ("indptr", "indices", "data")]
    shape = getattr(matrix, "_shape", None)
    whole = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts)
    if not whole or not isinstance(shape, tuple) or len(shape) != 2:
        raise InputError("a sparse matrix without its parts")
    indptr, indices, data = parts
    if len(data) != len(indices) or data.dtype.kind not in "fiub":
        raise InputError("a sparse matrix whose values are not one number for each place")
    check_places(indptr, indices, *shape)


def check_places(indptr: Any, indices: Any, rows: Any, columns: Any) -> None:
    """Refuse a compressed matrix whose rows do not ascend or whose columns are not there."""
    if indptr.ndim != 1 or indices.ndim != 1 or {indptr.dtype.kind, indices.dtype.kind} != {"i"}:
        raise InputError("a sparse matrix whose places are no whole numbers")
    if type(rows) is not int or type(columns) is not int or len(indptr) != rows + 1:
        raise InputError(f"a sparse matrix of shape {rows}, {columns} and {len(indptr) - 1} rows")
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise InputError("a sparse matrix whose rows do not ascend from 0 to its last entry")
    if len(indices) and (indices.min() < 0 or indices.max() >= columns):
        raise InputError(f"a sparse matrix with a column outside 0..{columns - 1}")


def _empty_array(kind: Any, shape: Any, dtype: Any) -> Any:
    """NumPy's way to begin an array, which its state then fills."""
    if kind is not np.ndarray or shape != (0,) or dtype not in ("b", b"b"):
        raise pickle.UnpicklingError(f"an array that begins as {shape} of {dtype!r}")
    return np.ndarray((0,), "b")


def _bytes(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes of {encoding!r}")
    return text.encode("latin1")


_ARRAYS = ("numpy.core.multiarray", "numpy._core.multiarray")
_KNOWN: dict[tuple[str, str], Any] = {
    **{(module, "_reconstruct"): _empty_array for module in _ARRAYS},
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("scipy.sparse.csr", "csr_matrix"): sp.csr_matrix,
    ("scipy.sparse._csr", "csr_matrix"): sp.csr_matrix,
    ("_codecs", "encode"): _bytes,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _Unpickler(pickle._Unpickler):
    """Python's own, in Python: it makes no table as long as the largest number in a file says."""

    dispatch: ClassVar[dict[int, Callable[..., None]]] = dict(pickle._Unpickler.dispatch)
    memo: dict[int, Any]
    stack: list[Any]
    read: Callable[[int], bytes]
    readline: Callable[[], bytes]

    def __init__(self, file: BinaryIO, size: int) -> None:
        super().__init__(file, encoding="latin1")
        self._size = size

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(
                f"it would call {module}.{name}; only arrays and sparse matrices are read"
            )
        return _KNOWN[module, name]

    def persistent_load(self, number: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside of the file")

    def load_long_binput(self) -> None:
        place = int.from_bytes(self.read(4), "little")
        self._check_place(place)
        self.memo[place] = self.stack[-1]

    def load_put(self) -> None:
        place = int(self.readline()[:-1])
        self._check_place(place)
        self.memo[place] = self.stack[-1]

    def _check_place(self, place: int) -> None:
        # The C version makes a table of so many entries.
        if not 0 <= place <= self._size:
            raise pickle.UnpicklingError(f"it numbers {place:,} things in {self._size:,} bytes")

    dispatch[pickle.LONG_BINPUT[0]] = load_long_binput
    dispatch[pickle.PUT[0]] = load_put
