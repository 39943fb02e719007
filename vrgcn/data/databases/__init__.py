"""Tables in databases: rows of nodes and edges read from them, predictions written to them.

    sqlite:///shop.db#users        a table of a file; sqlite:////data/shop.db has its whole path
    duckdb:///shop.db#SELECT ...   the rows of a query
    postgresql://host/shop#users   a table of a server

The scheme before `://` names the kind of source, and `SCHEMES` the class that reads it: another
kind is a class with the members of `TableSource` (`source.py`) and a line here, or a plug-in of the
group `vrgcn.table_sources`, whose name is the scheme. This file imports no driver and no Arrow: the
command line reads it before loading anything.

    url                         addresses of tables, without passwords
    source, tables              members of a source, names and queries in SQL; errors about tables
    sqlite, duck, postgresql    the sources, one each; adbc: what two of them share
    spool, opening              rows of a source as a table that is read several times
    proposing                   the import that the keys of all tables suggest
    sending                     tables written to a database, all rows or none
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import TABLE_SOURCES as PLUGINS
from vrgcn.files.plugins import check_own, is_plugin, load_plugin, plugin_names

# The scheme of a URL -> the module and the class of its source, a `TableSource`.
SCHEMES: dict[str, str] = {
    "sqlite": "vrgcn.data.databases.sqlite:Sqlite",
    "duckdb": "vrgcn.data.databases.duck:Duck",
    "postgresql": "vrgcn.data.databases.postgresql:PostgreSQL",
    "postgres": "vrgcn.data.databases.postgresql:PostgreSQL",
}


def check_scheme(scheme: str) -> None:
    """Raise if no source of vrgcn's own or of another package has this scheme; nothing is
    imported."""
    if scheme in SCHEMES or is_plugin(PLUGINS, scheme):
        return
    known = [*SCHEMES, *(name for name in plugin_names(PLUGINS) if name not in SCHEMES)]
    close = get_close_matches(scheme, known, n=1)
    hint = f"; did you mean {close[0]}://?" if close else ""
    told = ", ".join(f"{name}://" for name in known)
    raise InputError(f"{scheme}:// is no known kind of table; there are {told}{hint}")


def source_class(scheme: str) -> Any:
    """Return the class of a scheme's source, a `TableSource`; raise for an unknown scheme."""
    check_scheme(scheme)
    if scheme not in SCHEMES:
        return load_plugin(PLUGINS, scheme)
    check_own(PLUGINS, scheme)
    module, _, name = SCHEMES[scheme].partition(":")
    return getattr(import_module(module), name)
