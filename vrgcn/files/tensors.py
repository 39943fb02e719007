"""Tensors as safetensors files, written in pieces: a table needs no second copy in memory.

8 bytes     the length of the header, little-endian
header      JSON: name -> dtype, shape, where its bytes begin and end after the header
the rest    the tensors' bytes, one after the other, rows first
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from vrgcn.files.folder import path_of
from vrgcn.files.mistakes import InputError

PIECE = 1 << 24  # bytes that are copied at once where a tensor cannot be written as it lies
DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.complex64: "C64",
    torch.bool: "BOOL",
}


def write_tensors(
    file: BinaryIO, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> str:
    """Write the tensors, wherever they are, to an open file; gives the SHA-256 of what it holds."""
    digest = hashlib.sha256()
    parts = (part for tensor in tensors.values() for part in pieces(tensor))
    for part in chain([memoryview(_header(tensors, metadata))], parts):
        file.write(part)
        digest.update(part)
    return digest.hexdigest()


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, mapped into memory: read when they are used."""
    with open(path, "rb") as opened:
        return map_tensors(opened)[0]


def map_tensors(opened: BinaryIO) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of an open file, mapped into memory, and the texts that its header has beside
    them; the file may be closed then."""
    try:
        with safe_open(path_of(opened), framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, file.metadata() or {}
    except (SafetensorError, ValueError, OverflowError) as error:
        raise InputError(
            f"{opened.name}: not a safetensors file, or not all of one: {error}"
        ) from None


def pieces(tensor: Tensor) -> Iterator[memoryview]:
    """The bytes of a tensor, a few rows at a time; without a copy where they lie in order."""
    rows = tensor.detach()
    rows = rows.reshape(1) if rows.dim() == 0 else rows
    step = max(1, PIECE // max(1, rows.element_size() * prod(rows.shape[1:])))
    for start in range(0, len(rows) if rows.numel() else 0, step):
        piece = rows[start : start + step].cpu().contiguous()
        flat = piece.as_strided((piece.numel(),), (1,))  # a row alone may have any stride
        yield flat.view(torch.uint8).numpy().data


def tensor_checksum(tensor: Tensor) -> str:
    """SHA-256 of a tensor's bytes, as a file holds them."""
    digest = hashlib.sha256()
    for piece in pieces(tensor):
        digest.update(piece)
    return digest.hexdigest()


def size_of(tensors: Mapping[str, Tensor]) -> int:
    """Bytes that the tensors take in memory, and in a file."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> bytes:
    entries: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    end = 0
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{name}: tensors of {tensor.dtype} cannot be written")
        begin, end = end, end + tensor.numel() * tensor.element_size()
        entries[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)  # so that the bytes of the tensors begin aligned
    return len(header).to_bytes(8, "little") + header
