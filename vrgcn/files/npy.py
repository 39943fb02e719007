"""NumPy's `.npy` files, mapped into memory only when header and length agree.

`numpy.load` believes a header: it reads as many bytes as a header claims to have, gives back an
archive where a `.npz` file was renamed, and maps whatever the shape leads to. Here the header is
read first, bounded, and the file's length must be exactly what shape and type make it.
"""

from __future__ import annotations

import ast
import math
import os
import re
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vrgcn.files.mistakes import InputError

_MOST_HEADER = 10_000  # bytes; NumPy's own limit for untrusted files
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}  # version 3 is for fields with names, which we never read

_PYTHON_2_LONG = re.compile(r"(?<=[( ])(\d+)L\b")


class Header(NamedTuple):
    """order: C, row by row, or F, column by column; offset: where the numbers begin"""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    offset: int


def map_array(file: Path, *, read_only: bool = False) -> NDArray[Any]:
    """The array of a file, mapped copy-on-write: changing it leaves the file alone.

    read_only: mapped so that it cannot be changed; then no memory has to be there for changes

    A `ValueError` says what is wrong with the file, without its name.
    """
    with open(file, "rb") as opened:
        return map_opened(opened, read_only=read_only)


def map_opened(opened: BinaryIO, *, read_only: bool = False) -> NDArray[Any]:
    """The same, of a file that is open, whatever has its name by now; it may be closed then."""
    header = read_header(opened)
    size = os.fstat(opened.fileno()).st_size
    wanted = header.offset + math.prod(header.shape) * header.dtype.itemsize
    if size != wanted:
        raise InputError(
            f"its header says {header.shape} of {header.dtype}, {wanted:,} bytes, and it has "
            f"{size:,}"
        )
    if wanted == header.offset:  # nothing cannot be mapped
        return np.empty(header.shape, header.dtype, header.order)
    mode: Literal["r", "c"] = "r" if read_only else "c"
    return np.memmap(opened, header.dtype, mode, header.offset, header.shape, header.order)


def read_header(file: IO[bytes]) -> Header:
    """The header of an `.npy` file, which is read up to the first number."""
    start = file.read(8)
    if start[:4] == b"PK\x03\x04":
        raise InputError("it is an archive of several arrays (.npz), not one array")
    if len(start) < 8 or start[:6] != b"\x93NUMPY":
        raise InputError("it does not begin as an .npy file does")
    version = (start[6], start[7])
    if version not in _LENGTH_BYTES:
        raise InputError(f"it is of version {version[0]}.{version[1]} of the .npy format")
    length = int.from_bytes(file.read(_LENGTH_BYTES[version]), "little")
    if length > _MOST_HEADER:
        raise InputError(f"its header claims {length:,} bytes")
    header = _PYTHON_2_LONG.sub(r"\1", file.read(length).decode("latin1"))
    try:
        described = ast.literal_eval(header)
        shape, dtype = described["shape"], np.lib.format.descr_to_dtype(described["descr"])
        order: Literal["C", "F"] = "F" if described["fortran_order"] else "C"
    except Exception:  # text that is no Python, or of other things: there are many ways
        raise InputError("its header is damaged") from None
    if dtype.hasobject or dtype.fields is not None or dtype.subdtype is not None:
        raise InputError(f"it holds {dtype}, not plain numbers")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise InputError(f"its shape is {shape}")
    return Header(shape, dtype, order, file.tell())
