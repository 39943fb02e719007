"""Addresses of tables in databases, and the places of tables in general: files or addresses.

An address never holds a password: shells, process lists and logs would keep it. libpq finds it in
PGPASSWORD, in ~/.pgpass or in a service file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from vrgcn.data.databases import SCHEMES, check_scheme
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import has_password, without_password

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SQUEEZED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/(?!/)")


@dataclass(frozen=True)
class TableUrl:
    """An address such as sqlite:///shop.db#users.

    scheme: the kind of source, in small letters
    address: everything before the first #, such as postgresql://host/shop?service=x
    what: the table or the query after it; "" if there is none
    """

    scheme: str
    address: str
    what: str

    @staticmethod
    def parse(text: str) -> TableUrl:
        """Return the address that a text gives; raise for an unknown scheme or a password."""
        match = _URL.match(text)
        if match is None:
            raise InputError(f"{text} is no address such as sqlite:///shop.db#users")
        if has_password(text):
            raise InputError(
                f"{without_password(text)}: leave the password out: an address shows in "
                "shells, process lists and logs; set PGPASSWORD, or use ~/.pgpass or a service "
                "file (postgresql:///?service=NAME)"
            )
        scheme = match[1].lower()
        check_scheme(scheme)
        address, _, what = text.partition("#")
        return TableUrl(scheme, f"{scheme}{address[len(scheme) :]}", what.strip())

    @property
    def file(self) -> Path:
        """The file of a database that is one: after three slashes relative, after four absolute."""
        host, slash, path = self.address.partition("://")[2].partition("/")
        if host or not slash or not path:
            raise InputError(
                f"{self.address}: a file follows three slashes, {self.scheme}:///shop.db, and an "
                f"absolute path four, {self.scheme}:////data/shop.db"
            )
        return Path(unquote(path))

    def of(self, what: str) -> TableUrl:
        """Return the address of another table of the same database."""
        return TableUrl(self.scheme, self.address, what)

    @property
    def name(self) -> str:
        """The address for messages: a query on one line."""
        return " ".join(str(self).split())

    def __str__(self) -> str:
        return f"{self.address}#{self.what}" if self.what else self.address


Place = Path | TableUrl


def place(given: str | Path | TableUrl) -> Place:
    """Return the place of a table that a text names: an address if it has a scheme, or else a
    file."""
    if isinstance(given, TableUrl):
        return given
    squeezed = _SQUEEZED.match(str(given)) if isinstance(given, Path) else None
    if squeezed is not None and squeezed[1].lower() in SCHEMES:
        raise TypeError(
            f"{given}: a path joins the slashes of an address; give the address as a text"
        )
    if isinstance(given, str) and is_url(given):
        return TableUrl.parse(given)
    return Path(given)


def is_url(text: object) -> bool:
    """True if a text begins as an address does."""
    return isinstance(text, str) and _URL.match(text) is not None
