"""Settings of columns that a graph keeps for each edge or node: `--keep rated.rating`.

This file imports no Arrow: the command line checks these settings before loading anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from vrgcn.data.tables.overrides import matches
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting

KEPT_KINDS = ("number", "class", "date", "split")


@dataclass(frozen=True)
class Keep:
    """A column to keep, parsed from COLUMN, COLUMN=KIND or COLUMN=date:FORMAT.

    pattern: the name of a column, or a shell pattern
    kind: one of KEPT_KINDS; "" to see it from the first rows
    format: of dates, as in `strptime`; "" for ISO 8601, or seconds since 1970 in a column of
        numbers
    """

    pattern: str
    kind: str = ""
    format: str = ""

    @staticmethod
    def parse(text: str) -> Keep:
        pattern, equals, what = text.rpartition("=")
        if not equals:
            pattern, what = text, ""
        kind, _, form = what.partition(":")
        if not pattern or (equals and kind not in KEPT_KINDS) or (form and kind != "date"):
            raise InputError(
                f"{setting('keep')}: must be COLUMN or COLUMN=KIND, KIND one of "
                f"{', '.join(KEPT_KINDS)}, such as rating=number or time=date:%d.%m.%Y; not "
                f"{text!r}"
            )
        return Keep(pattern, kind, form)

    def named(self, columns: list[str]) -> list[str]:
        """The columns that are meant: the one of this name, or all that the pattern matches."""
        exact = [self.pattern] if self.pattern in columns else []
        return exact or [column for column in columns if matches(column, self.pattern)]
