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
from typing import BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

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
    torch.bool: "BOOL",
}


def write_tensors(file: BinaryIO, tensors: Mapping[str, Tensor]) -> str:
    """Write the tensors, wherever they are, to an open file; gives the SHA-256 of what it holds."""
    digest = hashlib.sha256()
    parts = (part for tensor in tensors.values() for part in pieces(tensor))
    for part in chain([memoryview(_header(tensors))], parts):
        file.write(part)
        digest.update(part)
    return digest.hexdigest()


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, mapped into memory: read when they are used."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path}: not a safetensors file, or not all of one: {error}") from None


def pieces(tensor: Tensor) -> Iterator[memoryview]:
    """The bytes of a tensor, a few rows at a time; without a copy where they lie in order."""
    rows = tensor.detach()
    rows = rows.reshape(1) if rows.dim() == 0 else rows
    step = max(1, PIECE // max(1, rows.element_size() * prod(rows.shape[1:])))
    for start in range(0, len(rows) if rows.numel() else 0, step):
        piece = rows[start : start + step].cpu().contiguous()
        flat = piece.as_strided((piece.numel(),), (1,))  # a row alone may have any stride
        yield flat.view(torch.uint8).numpy().data


def size_of(tensors: Mapping[str, Tensor]) -> int:
    """Bytes that the tensors take in memory, and in a file."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def _header(tensors: Mapping[str, Tensor]) -> bytes:
    entries, end = {}, 0
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
