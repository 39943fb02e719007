"""Results on disk as JSON Lines: a record per line, appended when it is known.

A run that is killed while it writes leaves half a line at the end. It is ignored when the file is
read and cut off before the next record is written.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import explained

Record = dict[str, Any]


def read_lines(path: Path) -> list[Record]:
    """Return the records of the file, one for each complete line; none if there is no file."""
    if not path.exists():
        return []
    whole, _ = _split(path)
    records = []
    for number, line in enumerate(whole.split("\n")[:-1], start=1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: not JSON ({error}); remove the line"
            ) from None
        if not isinstance(record, dict):
            raise InputError(f"{path}, line {number}: not a record; remove the line")
        records.append(record)
    return records


def append_record(path: Path, record: Record) -> None:
    """Append a line; it is on the disk before this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    if path.exists():
        _, torn = _split(path)
        if torn:
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size - torn)
    with explained(path, len(line)), path.open("a", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def of(records: Sequence[Record], **wanted: Any) -> list[Record]:
    """Return the records with these entries."""
    return [r for r in records if all(r.get(name) == value for name, value in wanted.items())]


def in_order(records: Sequence[Record], field: str) -> list[Any]:
    """Return the values of a field, each once, in the order of their first appearance."""
    return list(dict.fromkeys(record[field] for record in records))


def rounded(value: float) -> float:
    """Round to six digits, which is finer than the noise and saves nine tenths of the bytes.
    Infinity is not JSON."""
    return float(f"{value:.6g}") if math.isfinite(value) else 1e30


def _split(path: Path) -> tuple[str, int]:
    """Return the complete lines, and the number of bytes of a torn line after them."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    return data[:end].decode("utf-8"), len(data) - end
