"""Records on disk: what is there is kept, half a line is not."""

from __future__ import annotations

import pytest

from lab.paper.experiment import Unit
from lab.paper.records import append_record, missing_units, read_records


def test_records_come_back_in_the_order_they_were_appended(tmp_path):
    path = tmp_path / "deep" / "table3.jsonl"
    assert read_records(path) == []
    append_record(path, {"dataset": "cora", "test": 0.5})
    append_record(path, {"dataset": "citeseer", "label": "Citeseer – ±"})
    assert read_records(path) == [
        {"dataset": "cora", "test": 0.5},
        {"dataset": "citeseer", "label": "Citeseer – ±"},
    ]


@pytest.mark.parametrize("torn", ['{"dataset": "ci', '{"dataset": "citeseer"}', "{", "±"])
def test_a_torn_last_line_is_ignored_and_overwritten(tmp_path, torn):
    path = tmp_path / "table3.jsonl"
    append_record(path, {"dataset": "cora"})
    whole = path.read_bytes()
    path.write_bytes(whole + torn.encode())
    assert read_records(path) == [{"dataset": "cora"}]
    assert path.read_bytes() == whole + torn.encode()  # reading changes nothing
    append_record(path, {"dataset": "pubmed"})
    assert path.read_bytes() == whole + b'{"dataset": "pubmed"}\n'


def test_a_multibyte_character_may_be_torn_too(tmp_path):
    path = tmp_path / "table3.jsonl"
    append_record(path, {"a": 1})
    path.write_bytes(path.read_bytes() + "±".encode()[:1])
    assert read_records(path) == [{"a": 1}]


@pytest.mark.parametrize("bad", ["{broken", "[1, 2]"])
def test_a_bad_line_before_the_end_is_named(tmp_path, bad):
    path = tmp_path / "table3.jsonl"
    path.write_text(f'{{"a": 1}}\n{bad}\n{{"a": 2}}\n')
    with pytest.raises(ValueError, match=r"table3\.jsonl, line 2: .*remove the line"):
        read_records(path)


def test_a_number_that_json_does_not_have_is_refused_and_leaves_the_file_alone(tmp_path):
    path = tmp_path / "table3.jsonl"
    append_record(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        append_record(path, {"a": float("nan")})
    assert read_records(path) == [{"a": 1}]


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
