"""`compare`: every difference is listed, and decides the exit code."""

from __future__ import annotations

import json
from pathlib import Path

from lab.golden.compare import compare
from tests.messages import refused


def recording(folder: Path, texts: dict[str, str], **about: object) -> Path:
    for name, text in texts.items():
        path = folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    notes = {"commit": "abc", "changed": [], "seconds": 1, "torch": "2.0", **about}
    (folder / "about.json").write_text(json.dumps(notes), encoding="utf-8")
    return folder


TEXTS = {"runs/a/files/config": "epochs = 3\nseed = 0\n", "bits/ns": "0123\n"}


def test_recordings_that_say_the_same_do_not_differ(tmp_path: Path, capsys) -> None:
    before = recording(tmp_path / "before", TEXTS)
    after = recording(tmp_path / "after", TEXTS, commit="def", seconds=9)
    assert compare(before, after, ("runs", "bits"), 40) == 0
    assert "no difference in 2 files" in capsys.readouterr().out


def test_a_changed_line_is_shown(tmp_path: Path, capsys) -> None:
    before = recording(tmp_path / "before", TEXTS)
    after = recording(tmp_path / "after", TEXTS | {"runs/a/files/config": "epochs = 4\nseed = 0\n"})
    assert compare(before, after, ("runs", "bits"), 40) == 1
    out = capsys.readouterr().out
    assert "runs/a/files/config.txt\n" in out
    assert "  -epochs = 3\n  +epochs = 4\n" in out
    assert "1 differ, 0 gone, 0 new, 1 the same" in out
    assert compare(before, after, ("bits",), 40) == 0


def test_what_is_gone_and_what_is_new_is_listed(tmp_path: Path, capsys) -> None:
    before = recording(tmp_path / "before", TEXTS)
    after = recording(tmp_path / "after", {"bits/ns": "0123\n", "bits/cv": "4567\n"})
    assert compare(before, after, ("runs", "bits"), 40) == 1
    out = capsys.readouterr().out
    assert f"only in {before}\n  runs/a/files/config.txt" in out
    assert f"only in {after}\n  bits/cv.txt" in out


def test_a_long_difference_is_cut_and_counted(tmp_path: Path, capsys) -> None:
    before = recording(tmp_path / "before", {"bits/ns": "a\n" * 50})
    after = recording(tmp_path / "after", {"bits/ns": "b\n" * 50})
    assert compare(before, after, ("bits",), 10) == 1
    assert "... 91 more lines (--lines 101)" in capsys.readouterr().out


def test_files_that_differ_in_the_same_way_but_for_hashes_are_shown_once(
    tmp_path: Path, capsys
) -> None:
    def texts(digit: str, number: float) -> dict[str, str]:
        hashes = {name: f"bytes {digit * 15}{place}\n" for place, name in enumerate("abc")}
        return {f"bits/{name}": text for name, text in hashes.items()} | {"bits/d": f"{number}\n"}

    before = recording(tmp_path / "before", texts("0", 0.5))
    after = recording(tmp_path / "after", texts("f", 0.25))
    assert compare(before, after, ("bits",), 40) == 1
    out = capsys.readouterr().out
    assert (
        "  +bytes fffffffffffffff0\n  and in 2 more, but for hashes:\n  bits/b.txt\n  bits/c.txt"
        in out
    )
    assert "fffffffffffffff1" not in out
    assert "bits/d.txt\n  @@ -1 +1 @@\n  -0.5\n  +0.25\n" in out
    assert "4 differ" in out


def test_another_machine_is_named(tmp_path: Path, capsys) -> None:
    before = recording(tmp_path / "before", TEXTS)
    after = recording(tmp_path / "after", TEXTS, torch="2.1")
    compare(before, after, ("bits",), 10)
    assert "torch was 2.0 and is 2.1: bits may differ" in capsys.readouterr().out


def test_a_recording_that_broke_off_is_refused(tmp_path: Path) -> None:
    before = recording(tmp_path / "before", TEXTS)
    (tmp_path / "after").mkdir()
    with refused(ValueError):
        compare(before, tmp_path / "after", ("bits",), 10)
    with refused(ValueError):
        compare(before, before, ("python",), 10)
