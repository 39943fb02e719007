"""Results on disk as JSON Lines: a record per line, appended when it is known.

A run that is killed while it writes leaves half a line at the end. It is ignored when the file is
read and cut off before the next record is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vrgcn.experiments.experiment import Record, Unit


def read_records(path: Path) -> list[Record]:
    """The whole lines of the file; none if there is no file."""
    if not path.exists():
        return []
    whole, _ = _split(path)
    records = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: not JSON ({error}); remove the line"
            ) from None
        if not isinstance(record, dict):
            raise ValueError(f"{path}, line {number}: not a record; remove the line")
        records.append(record)
    return records


def append_record(path: Path, record: Record) -> None:
    """One more line, on the disk before this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    if path.exists():
        _, torn = _split(path)
        if torn:
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size - torn)
    with path.open("a", encoding="utf-8") as file:
        file.write(line)


def missing_units(units: Sequence[Unit], records: Sequence[Record]) -> list[Unit]:
    """The units without a record."""
    known: dict[tuple[str, ...], set[str]] = {}
    missing = []
    for unit in units:
        fields = tuple(sorted(unit.key))
        if fields not in known:
            known[fields] = {
                _identity({field: record[field] for field in fields})
                for record in records
                if all(field in record for field in fields)
            }
        if _identity(unit.key) not in known[fields]:
            missing.append(unit)
    return missing


def _identity(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def _split(path: Path) -> tuple[str, int]:
    """The whole lines, and how many bytes of a torn one follow them."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    return data[:end].decode("utf-8"), len(data) - end
