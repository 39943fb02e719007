"""The user's own node ids in the folder of a graph: Arrow files, read back without a copy."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pyarrow as pa

from vrgcn.data.sources import META
from vrgcn.data.store_format import Meta, ids_file
from vrgcn.files.folder import OpenFolder
from vrgcn.files.mistakes import InputError
from vrgcn.graph.kinds import ONE, Kinds
from vrgcn.graph.names import Names


def names_from(folder: OpenFolder, meta: Meta) -> Names:
    """The names of nodes, classes and features of a graph."""
    ids = {
        kind: read_ids(folder, meta.kinds.sizes[kind], file)
        for kind, file in meta.id_files().items()
    }
    if not meta.kinds.named:
        return Names(ids.get(ONE), meta.classes, meta.features)
    return Names(None, meta.classes, meta.features, meta.kinds, ids)


def write_all_ids(names: Names, kinds: Kinds, folder: Path) -> list[str]:
    """Write the ids of the nodes of each kind; return the kinds that have some."""
    given = {} if names.nodes is None else {ONE: names.nodes}
    given |= names.by_kind
    for number, kind in enumerate(kinds.names):
        if kind in given:
            write_ids(given[kind], folder / ids_file(number))
    return [kind for kind in kinds.names if kind in given]


def write_ids(ids: pa.Array, file: Path) -> None:
    """The user's node ids as an Arrow file, which is read back without a copy."""
    table = pa.table({"id": ids})
    with open(file, "wb") as sink:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        sink.flush()
        os.fsync(sink.fileno())


def read_ids(folder: OpenFolder, count: int, name: str) -> pa.Array:
    """The ids of `count` nodes that `write_ids` wrote to a file of a folder."""
    file = folder.path / name
    if not folder.is_file(name):
        raise FileNotFoundError(f"{file} is missing; {META} says that the graph has it")
    try:
        with folder.open(name) as opened:
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        table = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped))).read_all()
        # Arrow reads offsets as they are, and a wrong one leads anywhere.
        table.validate(full=True)
        ids = table.column("id").combine_chunks()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise InputError(f"{file} cannot be read as node ids: {_first_line(error)}") from None
    if ids.type not in (pa.string(), pa.large_string(), pa.int64()) or ids.null_count:
        raise InputError(f"{file} must hold a text or a whole number for each node, not {ids.type}")
    if len(ids) != count:
        raise InputError(f"{file} has {len(ids)} ids where {META} says {count} nodes")
    return ids


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
