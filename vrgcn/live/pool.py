"""Numbers that are appended at the end of a buffer with room to spare."""

from __future__ import annotations

import torch
from torch import Tensor


class Pool:
    """(length, ...) numbers: appending costs what is appended, averaged over many times."""

    def __init__(self, dtype: torch.dtype, *shape: int) -> None:
        self._buffer = torch.empty((16, *shape), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> Tensor:
        return self._buffer[: self._length]

    def append(self, values: Tensor) -> int:
        """Append values, and return the place of the first."""
        start, end = self._length, self._length + len(values)
        if end > len(self._buffer):
            buffer = self._buffer.new_empty((max(end, 2 * start), *self._buffer.shape[1:]))
            buffer[:start] = self._buffer[:start]
            self._buffer = buffer
        self._buffer[start:end] = values
        self._length = end
        return start

    def cut(self, length: int) -> None:
        """Forget what was appended after the first `length`."""
        self._length = length
