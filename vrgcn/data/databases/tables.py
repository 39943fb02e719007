"""Errors about the tables of a database."""

from __future__ import annotations

from collections.abc import Sequence

from vrgcn.data.databases.source import did_you_mean, name_parts
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting

_SHOWN = 20


def check_name(address: str, table: str, names: Sequence[str]) -> None:
    """Raise if a database has no such table, and name those that it has.

    table: as the user writes it; one with a schema before it is left to the database
    """
    parts = name_parts(table)
    if len(parts) > 1 or parts[0].casefold() in {name.casefold() for name in names}:
        return
    close = did_you_mean(parts[0], names)
    hint = f"{close} There" if close else "; there"
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    raise InputError(
        f"{address} has no table {table!r}{hint} are {shown}"
        if names
        else f"{address} has no tables"
    )


def no_table(address: str, table: str, append: bool, names: Sequence[str] = ()) -> InputError:
    """Return the error for a table to be written that exists already, or does not.

    names: of the tables that there are
    """
    if append:
        return InputError(
            f"{setting('append', True)}: {address} has no table {table!r} yet"
            f"{did_you_mean(table, names)}; without this flag it is made"
        )
    return InputError(
        f"{setting('out')}: {address} has a table {table!r} already; choose another name, or add "
        f"the rows to it with {setting('append', True)}"
    )


def check_columns_of(address: str, table: str, have: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise if a table that gets more rows lacks one of their columns."""
    missing = [column for column in wanted if column not in have]
    if missing:
        raise InputError(
            f"{setting('append', True)}: {address}#{table} has no column "
            f"{', '.join(map(repr, missing[:5]))}; its columns are {', '.join(have[:_SHOWN])}"
        )
