"""Estimates how long units will take, before they start, from earlier units.

The records of the same folder are best, because they are from this machine; otherwise `SECONDS` is
used, from one core of an otherwise idle Xeon at 2.8 GHz.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from lab.harness.records import Record
from lab.harness.units import Unit, planned_epochs
from lab.paper.settings import setting

QUICK = 2.0
UNKNOWN = 60.0
# Seconds of a unit with the paper's epochs, by experiment and data set; on average over algorithms.
SECONDS: dict[str, dict[str, float]] = {
    "table1": {"nell-paper": 15, "nell": 15, "ppi-small": 5, "reddit-like": 60},
    "table2": {"cora": 30, "communities": 60},
    "table3": {"citeseer": 5, "cora": 4, "pubmed": 4, "nell-paper": 20, "ppi-small": 300},
    "table4": {"reddit-like": 700, "reddit-like-strong": 900, "communities": 100},
    "fig-loss": {
        "citeseer": 9,
        "cora": 8,
        "pubmed": 7,
        "nell-paper": 40,
        "ppi-small": 220,
        "reddit-like": 300,
    },
    "fig-accuracy": {
        "citeseer": 9,
        "cora": 8,
        "pubmed": 7,
        "nell-paper": 45,
        "ppi-small": 200,
        "reddit-like": 300,
    },
    "fig-testing": {
        "citeseer": 12,
        "cora": 8,
        "pubmed": 15,
        "nell-paper": 40,
        "ppi-small": 400,
        "reddit-like": 1200,
    },
    "fig-gradient": {
        "citeseer": 80,
        "cora": 60,
        "pubmed": 60,
        "nell-paper": 300,
        "ppi-small": 900,
        "reddit-like": 1500,
    },
    "fig-correlation": {"cora": 60, "communities": 120},
}


def seconds_of(experiment: str, unit: Unit, records: Sequence[Record]) -> float:
    """Return the seconds of one unit. records: of its experiment, in the same folder"""
    key = unit.key
    if key.get("quick"):
        return QUICK
    for fields in (("dataset", "algorithm", "layers", "dropout"), ("dataset", "layers")):
        alike = [
            record["seconds"] * _times(unit, planned_epochs(record))
            for record in records
            if not record.get("quick")
            and all(record.get(field) == key[field] for field in fields if field in key)
        ]
        if alike:
            return median(alike)
    dataset = key.get("dataset", "")
    known = SECONDS.get(experiment, {}).get(dataset, UNKNOWN)
    if experiment in ("fig-loss", "fig-accuracy"):
        return known * _times(unit, setting(dataset).curve_epochs(key.get("algorithm", "")))
    if experiment in ("table3", "fig-testing", "fig-gradient"):
        return known * _times(unit, setting(dataset).train.epochs)
    return known


def _times(unit: Unit, epochs: int | None) -> float:
    """Return how much longer the unit takes than one of this many epochs."""
    return unit.epochs / epochs if unit.epochs and epochs else 1.0


def about(seconds: float) -> str:
    """Format an estimate coarsely: 40 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
