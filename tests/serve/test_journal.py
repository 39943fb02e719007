"""The journal of a service: order, keys, folding, other models, damage."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from vrgcn.serve import journal
from vrgcn.serve.journal import FILE, Folded, Journal, KeyReusedError, OtherModelError


def test_changes_come_back_in_order_after_the_file_is_opened_again(tmp_path: Path) -> None:
    first = Journal(tmp_path, "m")
    assert [first.append(body) for body in ("a", "b", "c")] == [1, 2, 3]
    first.close()
    again = Journal(tmp_path, "m")
    assert list(again) == [(1, "a"), (2, "b"), (3, "c")]
    assert (again.last, len(again)) == (3, 3)


def test_a_change_is_on_the_disk_when_append_returns(tmp_path: Path) -> None:
    """A second connection that opens the file sees it, and full synchronisation is on."""
    held = Journal(tmp_path, "m")
    held.append("a")
    other = sqlite3.connect(tmp_path / FILE)
    assert other.execute("SELECT body FROM changes").fetchall() == [("a",)]
    assert held._database.execute("PRAGMA synchronous").fetchone() == (2,)
    assert held._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_folded_changes_are_gone_and_numbers_go_on(tmp_path: Path) -> None:
    held = Journal(tmp_path, "m")
    for body in "abc":
        held.append(body)
    held.fold(2, "state-2")
    assert list(held) == [(3, "c")]
    held.fold(3, "state-3")
    assert held.folded == Folded(3, "state-3")
    assert held.append("d") == 4


def test_a_key_names_one_change(tmp_path: Path) -> None:
    held = Journal(tmp_path, "m")
    held.append("a", "k")
    held.fold(1, "state-1")
    assert held.seen("k", "a") == 1
    assert held.seen("other", "a") is None
    with pytest.raises(KeyReusedError, match="another change"):
        held.seen("k", "b")


def test_the_newest_keys_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEYS", 2)
    held = Journal(tmp_path, "m")
    for body in "abc":
        held.append(body, key=body)
    assert [held.seen(key, key) for key in "abc"] == [None, 2, 3]


def test_a_change_that_cannot_be_written_leaves_no_trace(tmp_path: Path) -> None:
    held = Journal(tmp_path, "m")
    held.append("a", "k")
    with pytest.raises(sqlite3.IntegrityError):
        held.append("b", "k")  # the key is taken: the row before it is undone
    assert list(held) == [(1, "a")]


def test_a_journal_of_another_model_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path, "m").close()
    with pytest.raises(OtherModelError, match="another model"):
        Journal(tmp_path, "n")


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(ValueError, match=r"journal\.sqlite is no journal, or damaged"):
        Journal(tmp_path, "m")
