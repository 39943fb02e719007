"""A random sample of a stream of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


class Reservoir:
    """At most `most` of all values, each with the same chance.

    Every row draws a number, and the smallest numbers stay: the sample depends on the seed and on
    the rows alone, not on the batches that they come in.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most = most
        self._random = np.random.default_rng(seed)
        self._keys = np.empty(0)
        self._parts: list[pa.Array] = []

    def add(self, values: pa.Array) -> None:
        new = self._random.random(len(values))
        if len(self._keys) == self._most:  # full: most of what comes later cannot stay
            enters = new < self._keys.max(initial=0)
            new, values = new[enters], values.filter(pa.array(enters))
        keys = np.concatenate([self._keys, new])
        if len(keys) <= self._most:
            self._keys = keys
            self._parts.append(values)
            return
        stay = np.sort(np.argpartition(keys, self._most)[: self._most])
        self._keys = keys[stay]
        self._parts = [pa.concat_arrays([*self._parts, values]).take(pa.array(stay))]

    def values(self) -> pa.Array:
        return pa.concat_arrays(self._parts) if self._parts else pa.array([], pa.string())
