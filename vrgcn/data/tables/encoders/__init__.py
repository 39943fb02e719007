"""Encoders turn columns into features: a class for each kind of column recognises, reads and
encodes its columns.

encoder                 the contract
sample                  the first cells of a column, as encoders look at them
numbers, filling        numbers, yes and no; the number that fills a gap
categories, vectors     categories and lists of them; lists of numbers
dates, texts            times; free text
cells, reservoir        cells that hold several values; a sample of a stream

Other code asks the encoder for its properties and never tests its name. A new encoder is a file
here with a class of the methods of `Encoder`, and a line in ENCODERS; or a plug-in of the group
`vrgcn.encoders`, whose name is the kind. Columns are recognised by encoders of ENCODERS alone: a
plug-in encodes the columns that the user names. This file imports no Arrow: the command line reads
the names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import ENCODERS as PLUGINS
from vrgcn.files.plugins import check_own, is_plugin, load_plugin, plugin_package

if TYPE_CHECKING:
    import pyarrow as pa

    from vrgcn.data.tables.encoders.encoder import Encoder, Look
    from vrgcn.data.tables.encoders.sample import ColumnSample

# The kind, as `--column` and stored recipes name it -> file and class.
ENCODERS: dict[str, str] = {
    "number": "numbers.NumberColumn",
    "boolean": "numbers.BooleanColumn",
    "category": "categories.CategoryColumn",
    "categories": "categories.CategoriesColumn",
    "numbers": "vectors.VectorColumn",
    "date": "dates.DateColumn",
    "text": "texts.TextColumn",
}


def find_encoder(kind: str) -> type[Encoder]:
    """Return the encoder class of a kind; of a plug-in's, its class."""
    if kind not in ENCODERS:
        found = load_plugin(PLUGINS, kind)
        if getattr(found, "kind", None) != kind:
            raise InputError(
                f"the encoder {kind!r} of {plugin_package(PLUGINS, kind)} is no class of "
                f"`Encoder` whose kind is {kind!r}"
            )
        return cast("type[Encoder]", found)
    check_own(PLUGINS, kind)
    file, _, name = ENCODERS[kind].partition(".")
    ours: type[Encoder] = getattr(importlib.import_module(f"{__name__}.{file}"), name)
    return ours


def is_encoder(kind: str) -> bool:
    """True if a kind is one of ENCODERS, or has a plug-in."""
    return kind in ENCODERS or is_plugin(PLUGINS, kind)


def encoders_of(kind: pa.DataType) -> list[type[Encoder]]:
    """Return the encoder classes that read cells of a type, in the order in which they are
    asked."""
    found = sorted(map(find_encoder, ENCODERS), key=lambda encoder: encoder.turn)
    return [encoder for encoder in found if encoder.reads(kind)]


def recognise(sample: ColumnSample) -> tuple[type[Encoder] | None, Look]:
    """Return the first encoder that does not reject a column, None if all reject it, and the look
    of the column."""
    from vrgcn.data.tables.encoders.encoder import Look

    asked = encoders_of(sample.cells.type)
    if asked and sample.is_empty:
        return None, Look("nothing but empty cells", sample.missing)
    look = Look(f"{sample.type_words}, of which no feature can be made")
    for encoder in asked:
        found = encoder.recognise(sample)
        if isinstance(found, Look):
            return encoder, found
        look = found.reason or look
        if found.final:
            break
    return None, look
