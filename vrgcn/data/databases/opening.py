"""Open the tables of an import, or of a list of pairs: files, or tables of databases."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from vrgcn.data.databases.source import Keys, TableSource, key_columns, open_source
from vrgcn.data.databases.spool import SpooledTable
from vrgcn.data.databases.url import Place, TableUrl
from vrgcn.data.tables.reading import Table, open_table
from vrgcn.files.mistakes import InputError
from vrgcn.files.scratch import scratch_folder
from vrgcn.files.setting_names import setting


class TableOpener:
    """Opens tables by their places; a context, which releases databases and temporary files.

    All tables of one database are read on one source, so that they are of one moment.

    beside: folder in which temporary files may lie, or in the one above it if it does not exist;
        None for the system's own
    """

    def __init__(self, beside: Path | None = None) -> None:
        self._beside = beside
        self._stack = ExitStack()
        self._sources: dict[str, TableSource] = {}
        self._keys: dict[str, Sequence[Keys]] = {}
        self._folder: Path | None = None
        self._count = 0

    def __call__(
        self, place: Place, name: str, delimiter: str | None, header: bool = True
    ) -> Table:
        """Open a table; see `open_table`."""
        if not isinstance(place, TableUrl):
            return open_table(place, name, delimiter, header)
        if not place.what:
            raise InputError(
                f"{setting(name)}: {place} names no table; add #TABLE, or #SELECT ... for a query"
            )
        source = self._source(place)
        folder = self._scratch()
        self._count += 1
        rows = source.rows(place.what)
        keys = key_columns(self._keys_in(place, source), place.what)
        return SpooledTable(place.name, rows, folder / f"{self._count}.arrow", keys)

    def _keys_in(self, url: TableUrl, source: TableSource) -> Sequence[Keys]:
        """Return the keys of a database, read once; none if they cannot be read, since tables are
        read without them too."""
        if url.address not in self._keys:
            self._keys[url.address] = []
            with suppress(ValueError, AttributeError):  # a source of a plug-in may lack them
                self._keys[url.address] = source.keys()
        return self._keys[url.address]

    def _source(self, url: TableUrl) -> TableSource:
        if url.address not in self._sources:
            source = open_source(url)
            self._stack.callback(source.close)
            self._sources[url.address] = source
        return self._sources[url.address]

    def _scratch(self) -> Path:
        if self._folder is None:
            beside = (self._beside or Path(tempfile.gettempdir())).absolute()
            # Not in a new folder, which would stay behind if the import failed.
            beside = next(folder for folder in (beside, *beside.parents) if folder.is_dir())
            self._folder = self._stack.enter_context(scratch_folder(beside))
        return self._folder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
