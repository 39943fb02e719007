"""Work in units that are run once: each is small enough to be lost, and its record is kept.

A unit that was run again, with another number of epochs, has several records: the last counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.harness.records import Record, read_lines

KEYS = ("dataset", "algorithm", "layers", "dropout", "seed", "quick")  # fields of all units' keys


@dataclass(frozen=True)
class Unit:
    """One resumable piece of work.

    key: identifies it among those of its experiment; small and JSON-able, such as
        {"dataset": "cora", "algorithm": "CVD+PP", "seed": 3, "quick": False}
    run: does the work; its result is JSON-able, and the record is key | result | {"seconds": ...}
    epochs: how many it trains for, where that may be cut: a record of another number is not its own
    """

    key: dict[str, Any]
    run: Callable[[], dict[str, Any]]
    epochs: int | None = None


def read_records(path: Path) -> list[Record]:
    """Return the last record of each unit, in the order of the lines; none if there is no file."""
    records: dict[str, Record] = {}
    for record in read_lines(path):
        key = _identity({field: record[field] for field in KEYS if field in record})
        records.pop(key, None)  # the last stands where it was written
        records[key] = record
    return list(records.values())


def missing_units(units: Sequence[Unit], records: Sequence[Record]) -> list[Unit]:
    """Return the units without a record, or with one of another number of epochs."""
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


def planned_epochs(record: Record) -> int | None:
    """Return the planned number of epochs of a record's run; None if not recorded. A run that
    diverged has trained for fewer."""
    planned: int | None = record.get("planned", record.get("epochs"))
    return planned


def _as_long(unit: Unit, record: Record) -> bool:
    """Return True if the record is of a run for as many epochs. Older records lack the planned
    epochs of runs that diverged, and of Table 4."""
    planned = planned_epochs(record)
    unknown = planned is None or (record.get("diverged") and "planned" not in record)
    return unit.epochs is None or bool(unknown) or planned == unit.epochs


def _identity(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)
