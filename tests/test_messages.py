"""Messages of errors are compared as a whole, and each entry belongs to a test that makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.messages import TESTS, _Test, golden_of, key, parse, shown, stale_entries, write

MESSAGES = {
    "test_a.py::test_first[case 1]": ["one", "two\n\n  lines: - of text\n"],
    "test_a.py::test_second": ["- three"],
}


def test_messages_are_read_as_they_were_written() -> None:
    assert parse(write(MESSAGES)) == MESSAGES
    assert parse(write({})) == {}
    assert write(MESSAGES | {"test_b.py::test_none": []}) == write(MESSAGES)


def test_what_varies_between_machines_is_left_out(tmp_path: Path) -> None:
    assert shown(f"'{tmp_path / 'n.csv'}' is a\tb") == "'/tmp/n.csv' is a\\tb"
    assert shown("in:/x/pytest-of-me/pytest-3/popen-gw1/made0/a") == "in:/tmp/a"
    assert shown("the disk at /a is full: 3.2 GB are free") == "the disk at … is full: … are free"
    assert shown("the process has 2 kB, <f at 0x7fcf1a4f>") == "the process has …, <f at 0x…>"


def test_each_folder_has_one_file_of_messages() -> None:
    assert golden_of(TESTS / "test_messages.py") == TESTS / "messages.txt"
    nested = TESTS / "data" / "databases" / "test_x.py"
    assert golden_of(nested) == TESTS / "data" / "messages.txt"
    assert key(nested, "test_y[1]") == "databases/test_x.py::test_y[1]"


def test_another_message_or_number_of_messages_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.messages.WRITE", False)
    monkeypatch.setattr("tests.messages.read", lambda _: MESSAGES)
    test = _Test(TESTS / "data" / "test_a.py", "test_second")
    with pytest.raises(AssertionError, match="makes 0 messages"):
        test.finish()
    test.compare("- three")
    test.compare("- three")
    test.finish()
    with pytest.raises(AssertionError, match="message 2 of"):
        test.compare("three")


def test_an_entry_is_stale_without_its_test_or_its_file(tmp_path: Path) -> None:
    golden = tmp_path / "messages.txt"
    golden.write_text(write(MESSAGES))
    first, second = MESSAGES
    assert stale_entries(golden, {}) == [first, second]
    assert stale_entries(golden, {tmp_path / "test_a.py": {second}}) == [first]
    (tmp_path / "test_a.py").touch()
    assert stale_entries(golden, {}) == []
