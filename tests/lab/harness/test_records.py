"""Records on disk: what is there is kept, half a line is not."""

from __future__ import annotations

import pytest

from lab.harness.records import append_record, in_order, of, read_lines, rounded
from tests.messages import refused


def test_records_come_back_in_the_order_they_were_appended(tmp_path):
    path = tmp_path / "deep" / "table3.jsonl"
    assert read_lines(path) == []
    append_record(path, {"dataset": "cora", "test": 0.5})
    append_record(path, {"dataset": "citeseer", "label": "Citeseer – ±"})
    assert read_lines(path) == [
        {"dataset": "cora", "test": 0.5},
        {"dataset": "citeseer", "label": "Citeseer – ±"},
    ]


@pytest.mark.parametrize("torn", ['{"dataset": "ci', '{"dataset": "citeseer"}', "{", "±"])
def test_a_torn_last_line_is_ignored_and_overwritten(tmp_path, torn):
    path = tmp_path / "table3.jsonl"
    append_record(path, {"dataset": "cora"})
    whole = path.read_bytes()
    path.write_bytes(whole + torn.encode())
    assert read_lines(path) == [{"dataset": "cora"}]
    assert path.read_bytes() == whole + torn.encode()  # reading changes nothing
    append_record(path, {"dataset": "pubmed"})
    assert path.read_bytes() == whole + b'{"dataset": "pubmed"}\n'


def test_a_multibyte_character_may_be_torn_too(tmp_path):
    path = tmp_path / "table3.jsonl"
    append_record(path, {"a": 1})
    path.write_bytes(path.read_bytes() + "±".encode()[:1])
    assert read_lines(path) == [{"a": 1}]


@pytest.mark.parametrize("bad", ["{broken", "[1, 2]"])
def test_a_bad_line_before_the_end_is_named(tmp_path, bad):
    path = tmp_path / "table3.jsonl"
    path.write_text(f'{{"a": 1}}\n{bad}\n{{"a": 2}}\n')
    with refused():
        read_lines(path)


def test_a_number_that_json_does_not_have_is_refused_and_leaves_the_file_alone(tmp_path):
    path = tmp_path / "table3.jsonl"
    append_record(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        append_record(path, {"a": float("nan")})
    assert read_lines(path) == [{"a": 1}]


def test_records_are_picked_by_their_entries_in_the_order_they_came():
    records = [{"a": 2, "b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 2}, {"b": 2}]
    assert of(records, a=2, b=2) == [records[2]]
    assert in_order(records[:3], "a") == [2, 1]


def test_numbers_are_rounded_to_six_digits_and_infinity_is_a_large_one():
    assert rounded(0.123456789) == 0.123457
    assert rounded(float("inf")) == 1e30
