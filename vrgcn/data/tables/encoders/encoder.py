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

from vrgcn.data.tables.encoders.sample import Sample
from vrgcn.data.tables.overrides import Fill
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.values import is_number, is_text
from vrgcn.files.setting_names import setting

Arrays = dict[str, NDArray[Any]]
# Tells a problem: what it is, the rows of the batch, what stands there, and what to do.
Tell = Callable[[str, NDArray[np.int64], pa.Array | None, str], None]


@dataclass(frozen=True)
class Look:
    """What a column looks like.

    words: for people
    missing: cells of the sample that hold nothing
    doubt: why the user has to say what the column is; "" if there is none
    advice: how to keep a column that is left out; "" if there is no way
    gaps: cells count as missing, whether the sample has such or not
    options: for the encoder that is made
    """

    words: str
    missing: int = 0
    doubt: str = ""
    advice: str = ""
    gaps: bool = False
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rejection:
    """Why an encoder does not take a column.

    reason: what the column looks like; None if that is for others to say
    final: no other encoder is asked
    """

    reason: Look | None = None
    final: bool = False


class Encoder(ABC):
    """kind: its name in `--column COLUMN=KIND` and in files, as in ENCODERS
    option: what may follow `KIND:` there, for people; "" if nothing may
    turn: place in the order in which encoders are asked for a column, the lowest first; the first
        that does not reject the column takes it
    plural: what several such columns hold, for people; "" if that is the kind
    unfilled: what becomes of missing cells, where no number fills them; goes on from "this column "
    column: what it encodes
    """

    kind: ClassVar[str]
    option: ClassVar[str] = ""
    turn: ClassVar[int]
    plural: ClassVar[str] = ""
    unfilled: ClassVar[str] = ""

    def __init__(self, column: str, **options: Any) -> None:
        self.column = column

    @classmethod
    def allows(cls, option: str) -> bool:
        """Whether this may follow `KIND:`; it is not empty."""
        return bool(cls.option)

    @classmethod
    def reads(cls, kind: pa.DataType) -> bool:
        """Whether cells of a type can be encoded."""
        return is_text(kind) or is_number(kind)

    @classmethod
    @abstractmethod
    def recognise(cls, sample: Sample) -> Look | Rejection:
        """What the column looks like if it is one of these."""

    @classmethod
    def told(cls, sample: Sample, option: str, found: Look) -> Look:
        """What the column looks like, since the user says that it is one of these.

        found: what it looks like where nobody says anything
        """
        return Look(found.words, found.missing)

    @classmethod
    def keeps(cls, kind: pa.DataType) -> bool:
        """Whether it takes a column of a type that all reject, if the user names the column."""
        return False

    @classmethod
    def make(cls, column: str, fill: Fill, options: dict[str, Any]) -> Self:
        """An encoder with the options of a look.

        fill: what is put where a number is missing
        """
        return cls(column, **options)

    @classmethod  # noqa: B027 - most refuse nothing
    def check(cls, table: str, columns: Sequence[str], spec: ImportSpec) -> None:
        """Refuse an import with these columns of a table, before anything long begins."""

    @property
    @abstractmethod
    def fitted(self) -> bool:
        """Whether it can encode, without a look at the table before."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Of the features; known once it is fitted."""

    @abstractmethod
    def fit(self, cells: pa.Array) -> None:
        """Look at some cells."""

    @abstractmethod
    def finish(self) -> None:
        """All cells have been looked at."""

    @abstractmethod
    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        """Write the features of some cells to `out`, (cells, features)."""

    @abstractmethod
    def plan(self) -> str:
        """What will be done, for people."""

    def notes(self) -> list[str]:
        """What was noticed while encoding, for people: goes on from "column 'x': "."""
        return []

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All that another table needs but the arrays, as JSON holds it."""

    def arrays(self) -> Arrays:
        """Arrays that belong to the state."""
        return {}

    @classmethod
    @abstractmethod
    def from_state(cls, column: str, state: dict[str, Any], arrays: Arrays) -> Self:
        """The encoder that was stored, fitted."""


def drop_advice(column: str) -> str:
    return f"leave the column out with {dropping(column)}"


def dropping(column: str) -> str:
    """The setting that leaves a column out."""
    return setting("drop", column, typed=repr(column))
