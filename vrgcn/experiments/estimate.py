"""How long units will take, told before they start: by what such units took before.

Best by the records of the same folder, for they are of this machine; else by `SECONDS`, of one core
of a Xeon at 2.8 GHz that did nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from vrgcn.experiments.experiment import Choice, Record
from vrgcn.experiments.settings import setting

QUICK = 2.0
UNKNOWN = 60.0
# Seconds of a unit with the paper's epochs, by experiment and data set; on average over algorithms.
SECONDS: dict[str, dict[str, float]] = {}


def seconds_of(
    experiment: str, key: dict[str, Any], records: Sequence[Record], choice: Choice
) -> float:
    """Of one unit. records: of its experiment, in the same folder"""
    if key.get("quick"):
        return QUICK
    for fields in (("dataset", "algorithm", "layers", "dropout"), ("dataset", "layers")):
        alike = [
            record["seconds"]
            for record in records
            if not record.get("quick") and all(record.get(f) == key.get(f) for f in fields)
        ]
        if alike:
            return median(alike)
    dataset = key.get("dataset", "")
    known = SECONDS.get(experiment, {}).get(dataset, UNKNOWN)
    if choice.epochs is None or experiment in ("table1", "table2"):
        return known
    return known * min(1.0, choice.epochs / setting(dataset).train.epochs)
