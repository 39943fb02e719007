"""The contract of all encoders: a column of cells goes in, feature columns come out.

A class of encoders recognises its columns by a sample of their cells, or rejects them. An encoder
is made for one column, looks at its cells once if it has to (`fit`, `finish`), and then encodes
batch after batch. What it learned is plain data, `state` and `arrays`, from which the same encoder
is made again for tomorrow's table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.sample import ColumnSample
from vrgcn.data.tables.overrides import Fill
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.values import is_number, is_text
from vrgcn.files.setting_names import setting

Arrays = dict[str, NDArray[Any]]
# A function that reports a problem: its description, the rows of the batch, the values there, and
# advice.
Tell = Callable[[str, NDArray[np.int64], pa.Array | None, str], None]


@dataclass(frozen=True)
class Look:
    """Description of the content of a column, found from a sample of its cells.

    words: description for the user
    missing: number of missing cells in the sample
    doubt: why the user must give the kind of the column; "" if there is no doubt
    advice: how to keep a column that is left out; "" if there is no way
    gaps: cells may count as missing even if the sample has none
    odd: rows with a text for which a column that is mostly numbers is read as categories
    options: arguments for the encoder that is made
    """

    words: str
    missing: int = 0
    doubt: str = ""
    advice: str = ""
    gaps: bool = False
    odd: Sequence[int] = ()
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rejection:
    """The answer of an encoder that does not take a column.

    reason: the look of the column; None if this encoder cannot describe it
    final: no other encoder is asked
    """

    reason: Look | None = None
    final: bool = False


class Encoder(ABC):
    """Base class of all encoders; an encoder turns one column into features.

    kind: its name in `--column COLUMN=KIND` and in files, as in ENCODERS
    option: words for the text that may follow `KIND:` there; "" if nothing may
    turn: place in the order in which encoders are asked for a column, the lowest first; the first
        that does not reject the column takes it
    plural: words for the content of several such columns; "" to use the kind
    averaged: the mean of its features over several cells says something
    sparse: True if few of its features are not 0 in a row: then they are stored as sparse rows, see
        `ones`; known once the encoder is fitted
    unfilled: how missing cells are encoded if no number fills them; continues "this column "
    column: name of the column that it encodes
    """

    kind: ClassVar[str]
    option: ClassVar[str] = ""
    turn: ClassVar[int]
    plural: ClassVar[str] = ""
    averaged: ClassVar[bool] = True
    unfilled: ClassVar[str] = ""
    sparse: bool = False

    def __init__(self, column: str, **options: Any) -> None:
        self.column = column

    @classmethod
    def allows(cls, option: str) -> bool:
        """Return True if `option`, which is not empty, may follow `KIND:`."""
        return bool(cls.option)

    @classmethod
    def reads(cls, kind: pa.DataType) -> bool:
        """Return True if cells of a type can be encoded."""
        return is_text(kind) or is_number(kind)

    @classmethod
    @abstractmethod
    def recognise(cls, sample: ColumnSample) -> Look | Rejection:
        """Return the look of the column if this encoder takes it, or else a rejection."""

    @classmethod
    def told(cls, sample: ColumnSample, option: str, found: Look) -> Look:
        """Return the look of a column for which the user gave this kind.

        found: the look of the column without the user's setting
        """
        return Look(found.words, found.missing)

    @classmethod
    def keeps(cls, kind: pa.DataType) -> bool:
        """Return True if it takes a column of a type that all encoders reject, if the user names
        the column."""
        return False

    @classmethod
    def make(cls, column: str, fill: Fill, options: dict[str, Any]) -> Self:
        """Make an encoder with the options of a look.

        fill: how missing numbers are filled
        """
        return cls(column, **options)

    @classmethod  # noqa: B027 - most refuse nothing
    def check(cls, table: str, columns: Sequence[str], spec: ImportSpec) -> None:
        """Refuse an import with these columns of a table, before anything long begins."""

    @property
    @abstractmethod
    def fitted(self) -> bool:
        """True if it can encode without seeing the table first."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the features; known once the encoder is fitted."""

    @abstractmethod
    def fit(self, cells: pa.Array) -> None:
        """Learn from some cells of the column."""

    @abstractmethod
    def finish(self) -> None:
        """End the fit, after all cells have been passed to `fit`."""

    @abstractmethod
    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        """Write the features of some cells to `out`, (cells, features)."""

    def ones(self, cells: pa.Array, tell: Tell) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of a sparse encoder's features that are 1, all others being 0: rows and
        columns, none twice."""
        raise NotImplementedError(f"{self.kind} has no sparse features")

    @abstractmethod
    def plan(self) -> str:
        """Return words for the features that will be made."""

    def notes(self) -> list[str]:
        """Return remarks for the user about the encoded cells; each continues "column 'x': "."""
        return []

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return all that is needed to encode another table, except the arrays, as JSON values."""

    def arrays(self) -> Arrays:
        """Return the arrays that belong to the state."""
        return {}

    @classmethod
    @abstractmethod
    def from_state(cls, column: str, state: dict[str, Any], arrays: Arrays) -> Self:
        """Return the fitted encoder that was stored."""


def drop_advice(column: str) -> str:
    return f"leave the column out with {dropping(column)}"


def dropping(column: str) -> str:
    """Return the setting that leaves a column out."""
    return setting("drop", column, typed=repr(column))
