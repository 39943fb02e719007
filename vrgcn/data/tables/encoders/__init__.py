"""How columns become features: one file for each kind of column, all with one contract.

encoder                 the contract
numbers, filling        numbers, yes and no; what is put where one is missing
categories, vectors     categories and lists of them; lists of numbers
dates, texts            times; free text
cells, reservoir        cells that hold several values; a sample of a stream
"""

from __future__ import annotations

from typing import Any

from vrgcn.data.tables.encoders.categories import CategoriesColumn, CategoryColumn
from vrgcn.data.tables.encoders.dates import DateColumn
from vrgcn.data.tables.encoders.encoder import Arrays, Encoder, Tell
from vrgcn.data.tables.encoders.numbers import BooleanColumn, NumberColumn
from vrgcn.data.tables.encoders.texts import TextColumn
from vrgcn.data.tables.encoders.vectors import VectorColumn

__all__ = [
    "Arrays",
    "BooleanColumn",
    "CategoriesColumn",
    "CategoryColumn",
    "DateColumn",
    "Encoder",
    "NumberColumn",
    "Tell",
    "TextColumn",
    "VectorColumn",
    "encoder_from_state",
]

_ENCODERS = (
    *(NumberColumn, BooleanColumn, CategoryColumn, CategoriesColumn),
    *(VectorColumn, DateColumn, TextColumn),
)


def encoder_from_state(kind: str, column: str, state: dict[str, Any], arrays: Arrays) -> Encoder:
    """The encoder that was stored, fitted."""
    made = {encoder.kind: encoder for encoder in _ENCODERS}
    if kind not in made:
        raise ValueError(f"column {column!r} is of the unknown kind {kind!r}")
    return made[kind].from_state(column, state, arrays)
