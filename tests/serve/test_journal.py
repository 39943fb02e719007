"""The journal of a service: order, keys, folding, other models, damage, loss of power."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.messages import refused
from tests.serve.damage import (
    BODIES,
    FOLDED,
    content,
    flips,
    outcome,
    truncations,
    write_journal,
)
from vrgcn.files.writing import DiskFullError
from vrgcn.serve import journal
from vrgcn.serve.head import BLOCK, FILE, DamagedError
from vrgcn.serve.journal import Journal, KeyReusedError, OtherModelError

LOG = f"journal-{FOLDED}.log"


def test_changes_come_back_in_order_after_the_file_is_opened_again(tmp_path: Path) -> None:
    first = Journal(tmp_path, "m")
    assert [first.append(body) for body in ("a", "b", "c")] == [1, 2, 3]
    first.close()
    again = Journal(tmp_path, "m")
    assert list(again) == [(1, "a"), (2, "b"), (3, "c")]
    assert (again.number, len(again)) == (3, 3)


def test_folded_changes_are_gone_and_numbers_continue(tmp_path: Path) -> None:
    held = Journal(tmp_path, "m")
    held.append("a")
    held.append("b")
    held.fold("state-2")
    assert (list(held), len(held), held.number) == ([], 0, 2)
    held.append("c")
    held.close()
    again = Journal(tmp_path, "m")
    assert (again.head.folded, again.head.state) == (2, "state-2")
    assert list(again) == [(3, "c")]
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["journal-2.log", FILE]


def test_a_key_names_one_change_also_after_a_fold(tmp_path: Path) -> None:
    held = Journal(tmp_path, "m")
    held.append("a", 'a "key" \n of ä')
    for _ in range(2):
        assert held.seen('a "key" \n of ä', "a") == 1
        assert held.seen("other", "a") is None
        with refused(KeyReusedError):
            held.seen('a "key" \n of ä', "b")
        held.fold("state-1")
        held.close()
        held = Journal(tmp_path, "m")


def test_the_newest_keys_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEYS", 2)
    held = Journal(tmp_path, "m")
    for body in "abc":
        held.append(body, key=body)
    assert [held.seen(key, key) for key in "abc"] == [None, 2, 3]


def test_a_change_that_cannot_be_written_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Journal(tmp_path, "m")
    held.append("a")

    def full(_: int) -> None:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with refused(DiskFullError):
            held.append("a longer change than the next one", "k")
    assert list(held) == [(1, "a")]
    assert held.seen("k", "b") is None
    held.append("b", "k")
    held.close()
    assert list(Journal(tmp_path, "m")) == [(1, "a"), (2, "b")]


def test_after_a_head_that_may_be_half_written_nothing_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Journal(tmp_path, "m")
    synchronised: list[int] = []

    def second(file: int) -> None:
        synchronised.append(file)
        if len(synchronised) == 2:
            raise OSError(5, "input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", second)
        with refused(OSError):
            held.append("a")
    with refused(OSError):
        held.append("b")
    held.close()
    assert list(Journal(tmp_path, "m")) == [(1, "a")]


def test_a_journal_of_another_model_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path, "m").close()
    with refused(OtherModelError):
        Journal(tmp_path, "n")


# Damage.


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a journal; files need not be synchronised to be damaged."""
    write_journal(tmp_path / "whole")
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return tmp_path / "whole"


def _try(whole: Path, name: str, data: bytes) -> Any:
    """What a copy of the journal says with other bytes in one of its files."""
    folder = whole.parent / "damaged"
    shutil.copytree(whole, folder)
    (folder / name).write_bytes(data)
    found = outcome(folder, folder / name)
    shutil.rmtree(folder)
    return found


def test_every_flipped_byte_of_a_log_is_refused_by_its_name(whole: Path) -> None:
    data = (whole / LOG).read_bytes()
    for what, damaged in flips(data, range(0, len(data), 7)):
        assert _try(whole, LOG, damaged) is None, what


def test_every_log_that_is_cut_off_is_refused_by_its_name(whole: Path) -> None:
    data = (whole / LOG).read_bytes()
    lines = [place + 1 for place in range(len(data)) if data[place] == 10]
    for what, damaged in truncations(data, [*lines[:-1], *range(0, len(data), 19)]):
        assert _try(whole, LOG, damaged) is None, what


def test_a_head_with_a_damaged_block_says_all_that_it_said(whole: Path) -> None:
    wanted, data = content(whole), (whole / FILE).read_bytes()
    damages = [*flips(data, range(0, len(data), 251)), *truncations(data, (BLOCK, len(data) - 1))]
    for what, damaged in damages:
        assert _try(whole, FILE, damaged) == wanted, what


def test_a_head_without_a_whole_block_is_refused(whole: Path) -> None:
    data = (whole / FILE).read_bytes()
    for what, damaged in truncations(data, range(0, BLOCK, 199)):
        assert _try(whole, FILE, damaged) is None, what


def test_damage_to_a_block_of_the_head_hides_no_damage_to_the_log(whole: Path) -> None:
    for start in (0, BLOCK):
        data = bytearray((whole / FILE).read_bytes())
        data[start] ^= 1
        folder = whole.parent / f"both-{start}"
        shutil.copytree(whole, folder)
        (folder / FILE).write_bytes(data)
        log = (folder / LOG).read_bytes()
        (folder / LOG).write_bytes(log[:-2])
        with refused(DamagedError):
            Journal(folder, "m")


@pytest.mark.parametrize("name", [LOG, FILE])
def test_a_missing_file_is_refused(whole: Path, name: str) -> None:
    (whole / name).unlink()
    assert outcome(whole, whole / name) is None


def test_a_state_without_a_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state-4").mkdir()
    with refused(DamagedError):
        Journal(tmp_path, "m")


def test_files_of_two_journals_do_not_go_together(whole: Path) -> None:
    other = whole.parent / "other"
    write_journal(other)
    assert _try(whole, LOG, (other / LOG).read_bytes()) is None
    found = whole.parent / "mixed"
    shutil.copytree(whole, found)
    shutil.copy(other / FILE, found / FILE)
    with refused(DamagedError):
        Journal(found, "m")


def test_an_older_head_beside_a_newer_log_is_refused(tmp_path: Path) -> None:
    held = Journal(tmp_path, "m")
    held.append("a")
    old = {path: path.read_bytes() for path in tmp_path.iterdir()}
    held.fold("state-1")
    held.append("b")
    held.close()
    for path, data in old.items():
        path.write_bytes(data)
    with refused(DamagedError):
        Journal(tmp_path, "m")


# Loss of power.


def test_what_was_acknowledged_survives_a_loss_of_power_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a file is synchronised any part of what was written may be on the disk."""
    folder, lost = tmp_path / "journal", tmp_path / "lost"
    folder.mkdir()
    durable: dict[str, bytes] = {}
    acknowledged, tried = 0, 0
    monkeypatch.setattr(os, "fsync", lambda _: None)
    held = Journal(folder, "m")

    def check(name: str, data: bytes) -> None:
        nonlocal tried
        shutil.copytree(folder, lost)
        (lost / name).write_bytes(data)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", lambda _: None)
            found = content(lost)
        assert acknowledged <= found[1] <= acknowledged + 1
        begin = 0 if found[2] is None else FOLDED
        assert found[0] == [*enumerate(BODIES, start=1)][begin : found[1]]
        shutil.rmtree(lost)
        tried += 1

    def power(file: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{file}")).name
        if name not in (held.path.name, FILE):
            return
        after = (folder / name).read_bytes()
        before = durable.get(name, b"").ljust(len(after), b"\0")
        changed = [place for place in range(len(after)) if after[place] != before[place]]
        for place in [*changed[:: len(changed) // 4 + 1], len(after)]:
            check(name, after[:place] + before[place:])
            if name != FILE:
                check(name, after[:place])
        durable[name] = after

    durable |= {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(os, "fsync", power)
    for number, body in enumerate(BODIES, start=1):
        held.append(body, f"key {number}")
        acknowledged = number
        if number == FOLDED:
            held.fold("state-2")
            durable[held.path.name] = held.path.read_bytes()
    assert tried > 50


@pytest.mark.parametrize("left", ["the new log", "the old log"])
def test_a_fold_that_was_killed_is_undone_or_done(tmp_path: Path, left: str) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    held = Journal(folder, "m")
    held.append("a")
    before = tmp_path / "before"
    shutil.copytree(folder, before)
    held.fold("state-1")
    held.close()
    if left == "the new log":
        shutil.copy(before / FILE, folder)
    shutil.copy(before / "journal-0.log", folder)
    again = Journal(folder, "m")
    assert again.number == 1
    assert len(again) == (left == "the new log")
    again.remove_superseded()
    assert len([*folder.iterdir()]) == 2
