"""Units that have a record are not run again."""

from __future__ import annotations

from lab.harness.records import append_record
from lab.harness.units import Unit, missing_units, read_records


def test_a_unit_is_missing_until_a_record_has_its_whole_key():
    units = [Unit({"dataset": "cora", "seed": seed, "quick": False}, dict) for seed in range(3)]
    records = [
        {"quick": False, "seed": 1, "dataset": "cora", "test": 0.8},  # the order is no matter
        {"dataset": "cora", "seed": 0, "quick": True},
        {"dataset": "cora", "seed": 2},
    ]
    assert [unit.key["seed"] for unit in missing_units(units, records)] == [0, 2]


def test_a_record_of_other_epochs_is_not_the_units_and_its_last_counts(tmp_path):
    key = {"dataset": "cora", "algorithm": "NS", "seed": 0, "quick": False}
    unit = Unit(key, dict, epochs=400)
    assert missing_units([unit], [key | {"epochs": 40}]) == [unit]
    assert missing_units([unit], [key | {"epochs": 400}]) == []
    assert missing_units([unit], [key | {"epochs": 37, "planned": 400}]) == []  # it diverged
    assert missing_units([unit], [key | {"epochs": 37, "diverged": "inf"}]) == []
    assert missing_units([unit], [key]) == []
    path = tmp_path / "table3.jsonl"
    for epochs in (40, 400):
        append_record(path, key | {"epochs": epochs})
    append_record(path, key | {"seed": 1, "label": "a\u2028line"})
    assert [record.get("epochs") for record in read_records(path)] == [400, None]


def test_units_with_other_fields_do_not_hide_each_other():
    units = [Unit({"dataset": "cora"}, dict), Unit({"dataset": "cora", "layers": 3}, dict)]
    missing = missing_units(units, [{"dataset": "cora"}])
    assert [unit.key for unit in missing] == [{"dataset": "cora", "layers": 3}]
