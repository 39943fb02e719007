"""Tables computed from a graph on disk and as large as its features, kept in its folder.

    derived/NAME.npy     a table, (nodes, width): scaled features, or the averages P X
    derived/NAME.json    what it is, what it was computed from, and its checksum

NAME is a checksum of what the table depends on: the checksums of the graph's files, what was done
to the features, and the rule of P. So a table is never taken for another, and all may be deleted
at any time. A table has its name when it is whole.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.data.store_format import Meta
from vrgcn.files.checksums import file_checksum, value_checksum
from vrgcn.files.folder import FolderReplacedError
from vrgcn.files.mistakes import InputError
from vrgcn.files.npy import map_array
from vrgcn.files.parsing import read_json
from vrgcn.files.scratch import in_use
from vrgcn.files.writing import (
    explained,
    flush_folder,
    partial_name,
    remove_stale_of,
    write_text,
)
from vrgcn.graph.mapped import Derived, Tell, note_mapped
from vrgcn.graph.validation import SPLITS

DERIVED = "derived"
_NAME = re.compile(r"[0-9a-f]{32}")  # of a table: the beginning of a checksum


def derived_tables(path: Path, meta: Meta) -> Derived | None:
    """Return the derived tables of the graph in a folder; None if nothing can be kept: the graph
    has no checksums that identify it, or its folder cannot be written to."""
    known = {name: meta.checksums.get(f"{name}.npy") for name in meta.arrays() if _is_source(name)}
    dense = len(meta.blocks) == 1 and meta.blocks[0].entries is None
    if not dense or None in known.values() or not os.access(path, os.W_OK):
        return None
    return DerivedTables(path / DERIVED, json.dumps(known))


def _is_source(name: str) -> bool:
    """True for an array that features, and averages of them, follow from."""
    return name not in ("labels", *SPLITS) and not name.startswith("kept")


@dataclass(frozen=True)
class DerivedTables:
    """folder: of the tables; source: what they are of, as text; on_fill: see `telling`"""

    folder: Path
    source: str
    on_fill: Callable[[str, float], None] = lambda what, done: None

    def after(self, change: str) -> DerivedTables:
        return replace(self, source=f"{self.source}; {change}")

    def telling(self, on_fill: Callable[[str, float], None]) -> DerivedTables:
        return replace(self, on_fill=on_fill)

    def table(
        self,
        what: str,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        fill: Callable[[Tensor, Tell], None],
    ) -> Tensor:
        described = {"what": what, "of": self.source, "shape": list(shape), "dtype": str(dtype)}
        name = value_checksum(described)[:32]
        file, note = self.folder / f"{name}.npy", self.folder / f"{name}.json"
        try:
            if not (file.is_file() and _note(note) is not None):
                self._write(file, note, described, shape, dtype, fill)
            return _mapped(file, shape, dtype)
        except FileNotFoundError as error:
            raise FolderReplacedError(
                f"{self.folder.parent} was removed, or replaced by another, while tables of it "
                "were made or read: run the command again"
            ) from error

    def _write(
        self,
        file: Path,
        note: Path,
        described: dict[str, Any],
        shape: tuple[int, ...],
        dtype: torch.dtype,
        fill: Callable[[Tensor, Tell], None],
    ) -> None:
        self.folder.mkdir(exist_ok=True)
        remove_stale_of(file)
        unfinished = partial_name(file)
        try:
            with explained(file, prod(shape) * dtype.itemsize):
                _reserve(unfinished, shape, dtype)
                with in_use(unfinished):
                    array = np.load(unfinished, mmap_mode="r+")
                    fill(as_tensor(array), partial(self.on_fill, described["what"]))
                    array.flush()
                    del array
                    with open(unfinished, "rb") as written:
                        os.fsync(written.fileno())
                    checksum = file_checksum(unfinished)
                    os.replace(unfinished, file)
                flush_folder(self.folder)
                # Last: a table without its note is not taken for one.
                write_text(note, json.dumps(described | {"checksum": checksum}, indent=2) + "\n")
        finally:
            self.on_fill(described["what"], 1.0)
            unfinished.unlink(missing_ok=True)


def _mapped(file: Path, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    damaged = f"{file} is damaged: delete it, and it is made again"
    try:
        array = map_array(file, read_only=True)
    except ValueError as error:
        raise InputError(f"{damaged} ({error})") from None
    if array.shape != shape or array.dtype != _numpy(dtype):
        raise InputError(damaged)
    return as_tensor(array)


def verify_derived(path: Path) -> None:
    """Read every derived table of the graph in a folder, and remove those that are damaged: they
    are made again when they are needed. The folder may be a link to another: files that are not
    called as derived tables are left alone."""
    for file in sorted((path / DERIVED).glob("*.npy")):
        if _NAME.fullmatch(file.stem) is None:
            continue
        note = _note(file.with_suffix(".json"))
        with suppress(OSError):  # it is gone already, or cannot be removed
            if note is None or file_checksum(file) != note["checksum"]:
                file.with_suffix(".json").unlink(missing_ok=True)
                file.unlink(missing_ok=True)


def as_tensor(array: NDArray[Any]) -> Tensor:
    """A tensor of the array's own memory, which may be one that cannot be written to: mapped."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        tensor = torch.from_numpy(array)
    # One that can be written to is as good as in memory: its graph was opened to be.
    return tensor if array.flags.writeable else note_mapped(tensor)


def _note(file: Path) -> dict[str, Any] | None:
    """Return the contents of a table's note; None if it is missing or damaged."""
    try:
        note = read_json(file)
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and isinstance(note.get("checksum"), str) else None


def _reserve(file: Path, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """An `.npy` file of zeros, with its room on the disk (see graph.mapped)."""
    with open(file, "xb") as opened:
        header = {"descr": np.lib.format.dtype_to_descr(_numpy(dtype)), "fortran_order": False}
        np.lib.format.write_array_header_1_0(opened, header | {"shape": shape})
        opened.flush()
        end = opened.tell() + prod(shape) * dtype.itemsize
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(opened.fileno(), 0, end)
        else:
            opened.truncate(end)


def _numpy(dtype: torch.dtype) -> np.dtype[Any]:
    return torch.empty(0, dtype=dtype).numpy().dtype
