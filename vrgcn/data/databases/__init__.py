"""Tables in databases: rows of nodes and edges read from them, predictions written to them.

    sqlite:///shop.db#users        a table of a file; sqlite:////data/shop.db has its whole path
    duckdb:///shop.db#SELECT ...   the rows of a query
    postgresql://host/shop#users   a table of a server

The scheme before `://` names the kind of source, and `SCHEMES` the class that reads it: another
kind is a class with the members of `TableSource` (`source.py`) and a line here. This file imports
no driver and no Arrow: the command line reads it before loading anything.

    url                         addresses of tables, without passwords
    source, tables              members of a source, names and queries in SQL; errors about tables
    sqlite, duck, postgresql    the sources, one each; adbc: what two of them share
    spool, opening              rows of a source as a table that is read several times
    proposing                   the import that the keys of all tables suggest
    sending                     tables written to a database, all rows or none
"""

from __future__ import annotations

from difflib import get_close_matches

# The scheme of a URL -> the module and the class of its source, a `TableSource`.
SCHEMES: dict[str, str] = {
    "sqlite": "vrgcn.data.databases.sqlite:Sqlite",
    "duckdb": "vrgcn.data.databases.duck:Duck",
    "postgresql": "vrgcn.data.databases.postgresql:PostgreSQL",
    "postgres": "vrgcn.data.databases.postgresql:PostgreSQL",
}


def find_scheme(scheme: str) -> str:
    """Return the module and the class of a scheme's source; raise for an unknown scheme."""
    if scheme not in SCHEMES:
        close = get_close_matches(scheme, SCHEMES, n=1)
        hint = f"; did you mean {close[0]}://?" if close else ""
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise ValueError(f"{scheme}:// is no known kind of table; there are {known}{hint}")
    return SCHEMES[scheme]
