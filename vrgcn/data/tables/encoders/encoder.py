"""The contract of all encoders: a column of cells goes in, feature columns come out.

An encoder is made for one column, looks at its cells once if it has to (`fit`, `finish`), and then
encodes batch after batch. What it learned is plain data, `state` and `arrays`, from which the same
encoder is made again for tomorrow's table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
# Tells a problem: what it is, the rows of the batch, what stands there, and what to do.
Tell = Callable[[str, NDArray[np.int64], pa.Array | None, str], None]


class Encoder(Protocol):
    """kind: its name in `--column COLUMN=KIND` and in files
    column: what it encodes
    """

    kind: ClassVar[str]
    column: str

    @property
    def fitted(self) -> bool:
        """Whether it can encode, without a look at the table before."""

    @property
    def names(self) -> list[str]:
        """Of the features; known once it is fitted."""

    def fit(self, cells: pa.Array) -> None:
        """Look at some cells."""

    def finish(self) -> None:
        """All cells have been looked at."""

    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        """Write the features of some cells to `out`, (cells, features)."""

    def plan(self) -> str:
        """What will be done, for people."""

    def notes(self) -> list[str]:
        """What was noticed while encoding, for people: goes on from "column 'x': "."""

    def state(self) -> dict[str, Any]:
        """All that another table needs but the arrays, as JSON holds it."""

    def arrays(self) -> Arrays:
        """Arrays that belong to the state."""


def drop_advice(column: str) -> str:
    return f"leave the column out with --drop {column!r}"
