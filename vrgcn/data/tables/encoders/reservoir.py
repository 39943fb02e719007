"""A random sample of a stream of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.values import cell_bytes


class Reservoir:
    """Keeps at most `most` of all values, each with the same chance; fewer if they take more than
    `size` bytes.

    Every row draws a number, and the rows with the smallest numbers stay, as many as there is room
    for. So the sample depends on the seed and the rows alone, not on how the rows are divided into
    batches.
    """

    def __init__(self, most: int, seed: int, size: int = 512 << 20) -> None:
        self._most = most
        self._size = size
        self._random = np.random.default_rng(seed)
        self._below = np.inf  # the smallest number that did not stay; none above it can
        self._keys = np.empty(0)
        self._bytes = np.empty(0, np.int64)
        self._parts: list[pa.Array] = []

    def add(self, values: pa.Array) -> None:
        new = self._random.random(len(values))
        if self._below < np.inf:  # the sample is full: most later values cannot stay
            enters = new < self._below
            new, values = new[enters], values.filter(pa.array(enters))
        keys = np.concatenate([self._keys, new])
        sizes = np.concatenate([self._bytes, cell_bytes(values)])
        self._parts.append(values)
        if len(keys) > self._most or sizes.sum() > self._size:
            stay = self._staying(keys, sizes)
            self._parts = [pa.concat_arrays(self._parts).take(pa.array(stay))]
            keys, sizes = keys[stay], sizes[stay]
        self._keys, self._bytes = keys, sizes

    def values(self) -> pa.Array:
        return pa.concat_arrays(self._parts) if self._parts else pa.array([], pa.string())

    def _staying(self, keys: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of the values that stay, ascending."""
        order = np.argsort(keys)
        room = int(np.searchsorted(np.cumsum(sizes[order]), self._size, side="right"))
        count = min(self._most, room)
        self._below = float(keys[order[count]])
        return np.sort(order[:count])
