"""Results on disk as JSON Lines: a record per line, appended when it is known.

A run that is killed while it writes leaves half a line at the end. It is ignored when the file is
read and cut off before the next record is written. Of a unit that was run again, with another
number of epochs, the last record counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.paper.experiment import Record, Unit, planned_epochs
from vrgcn.files.writing import explained

KEYS = ("dataset", "algorithm", "layers", "dropout", "seed", "quick")  # of all units' keys


def read_records(path: Path) -> list[Record]:
    """The whole lines of the file, of each unit the last; none if there is no file."""
    if not path.exists():
        return []
    whole, _ = _split(path)
    records: dict[str, Record] = {}
    for number, line in enumerate(whole.split("\n")[:-1], start=1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: not JSON ({error}); remove the line"
            ) from None
        if not isinstance(record, dict):
            raise ValueError(f"{path}, line {number}: not a record; remove the line")
        key = _identity({field: record[field] for field in KEYS if field in record})
        records.pop(key, None)  # the last stands where it was written
        records[key] = record
    return list(records.values())


def append_record(path: Path, record: Record) -> None:
    """One more line, on the disk before this returns."""
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


def missing_units(units: Sequence[Unit], records: Sequence[Record]) -> list[Unit]:
    """The units without a record, or with one of another number of epochs."""
    known: dict[tuple[str, ...], dict[str, Record]] = {}
    missing = []
    for unit in units:
        fields = tuple(sorted(unit.key))
        if fields not in known:
            known[fields] = {
                _identity({field: record[field] for field in fields}): record
                for record in records
                if all(field in record for field in fields)
            }
        record = known[fields].get(_identity(unit.key))
        if record is None or not _as_long(unit, record):
            missing.append(unit)
    return missing


def _as_long(unit: Unit, record: Record) -> bool:
    """Whether the record is of a run for as many epochs. Older records do not say how many those of
    a run that diverged were to be, nor those of Table 4."""
    planned = planned_epochs(record)
    unknown = planned is None or (record.get("diverged") and "planned" not in record)
    return unit.epochs is None or bool(unknown) or planned == unit.epochs


def _identity(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def _split(path: Path) -> tuple[str, int]:
    """The whole lines, and how many bytes of a torn one follow them."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    return data[:end].decode("utf-8"), len(data) - end
