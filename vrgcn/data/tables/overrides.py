"""Settings about single columns: `--column age=number`, `--fill age=median`.

This file imports no Arrow: the command line checks these settings before loading anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import isfinite

from vrgcn.data.tables.encoders import ENCODERS, find_encoder, is_encoder
from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import ENCODERS as PLUGINS
from vrgcn.files.plugins import known_names
from vrgcn.files.setting_names import setting

DROP = "drop"  # in place of a kind: the column is left out
MARK = "+mark"


@dataclass(frozen=True)
class Fill:
    """How missing numbers of a column are filled.

    how: "mean" or "median" of the column, "constant", or "error": a missing number is an error
    value: the number, once it is known
    mark: a further feature is 1 where the number was missing
    expected: False if missing numbers are to be reported
    """

    how: str = "error"
    value: float | None = None
    mark: bool = False
    expected: bool = True

    @staticmethod
    def parse(text: str) -> Fill:
        """Parse mean, median or a number, each with +mark or without, or error; mark means
        mean+mark."""
        word, mark = (text.removesuffix(MARK), text.endswith(MARK))
        if word == "mark":
            return Fill("mean", mark=True)
        if word in ("mean", "median"):
            return Fill(word, mark=mark)
        if word == "error" and not mark:
            return Fill()
        try:
            value = float(word)
        except ValueError:
            value = float("nan")
        if not isfinite(value):
            raise InputError(
                f"{setting('fill')}: must be mean, median, a finite number, each also with {MARK}, "
                f"or error; not {text!r}"
            )
        return Fill("constant", value, mark)

    def known(self, value: float) -> Fill:
        return replace(self, value=value)

    def less(self, offset: int) -> Fill:
        """Return the fill for numbers from which `offset` was subtracted. Only a constant changes:
        a mean or a median is computed after the subtraction."""
        if self.how != "constant" or self.value is None:
            return self
        return self.known(float(self.value - offset))

    def __str__(self) -> str:
        return f"{self.value:g}" if self.how == "constant" and self.value is not None else self.how


@dataclass(frozen=True)
class Override:
    """The kind that the user gives to feature columns, parsed from COLUMN=KIND or
    COLUMN=KIND:OPTION.

    pattern: the name of a column, or a shell pattern
    kind: one of ENCODERS, that of a plug-in, or DROP
    option: the text after the kind's colon; "" if there is none
    """

    pattern: str
    kind: str
    option: str = ""

    @staticmethod
    def parse(text: str) -> Override:
        pattern, equals, what = text.rpartition("=")
        kind, _, option = what.partition(":")
        if not equals or not pattern:
            raise InputError(
                f"{setting('column')}: must be COLUMN=KIND, such as age=number; not {text!r}"
            )
        if kind != DROP and not is_encoder(kind):
            kinds = known_names(PLUGINS, (*ENCODERS, DROP))
            raise InputError(f"{setting('column')}: {text!r}: {kind!r} is none of {kinds}")
        allowed = find_encoder(kind).option if option and kind != DROP else ""
        if option and not allowed:
            raise InputError(f"{setting('column')}: {text!r}: nothing may follow {kind}")
        if option and not find_encoder(kind).allows(option):
            raise InputError(f"{setting('column')}: {text!r}: after {kind}: comes {allowed}")
        return Override(pattern, kind, option)


def parse_fills(texts: Sequence[str]) -> list[tuple[str | None, Fill]]:
    """Parse the texts of `--fill` into pairs of a column pattern, None for all columns, and its
    fill, in the order given."""
    fills = []
    for text in texts:
        pattern, _, how = text.rpartition("=")
        fills.append((pattern or None, Fill.parse(how)))
    return fills


def matches(column: str, pattern: str) -> bool:
    return column == pattern or fnmatchcase(column, pattern)
