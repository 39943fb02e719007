"""`vrgcn import` on a disk that fills up: told by its name, and nothing is left.

`make soak` does the same on a real tmpfs (tests/soak/soak_full_disk.py).
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from vrgcn.data.store import verify_graph

NODES = "id,x,text,label\n" + "".join(f"n{i},{i},word{i} w,{'ab'[i % 2]}\n" for i in range(40))
EDGES = "source,target,weight\n" + "".join(f"n{i},n{(7 * i + 3) % 40},2\n" for i in range(40))
ONE = ("--nodes", "n.csv", "--edges", "e.csv")
SEVERAL = ("--nodes", "user=n.csv", "--edges", "user-knows-user=e.csv", "user-sees-film=f.csv")
COMMAND = ("import", "--ratio", 0.5, 0.25, 0.25, "--out")


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "n.csv").write_text(NODES)
    (tmp_path / "e.csv").write_text(EDGES)
    (tmp_path / "f.csv").write_text(EDGES.replace("target", "film").replace("weight", "stars"))
    return tmp_path


class Filling:
    """`os.fsync` on a disk that is full from some call on: that is when blocks are allocated."""

    def __init__(self, fails_at: int | None) -> None:
        self.calls, self.fails_at, self.flush = 0, fails_at, os.fsync

    def __call__(self, descriptor: int) -> None:
        self.calls += 1
        if self.fails_at is not None and self.calls > self.fails_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.flush(descriptor)


@pytest.mark.parametrize("given", [ONE, (*ONE, "--directed"), SEVERAL])
def test_whichever_file_there_is_no_room_for_nothing_is_left(
    given: tuple[str, ...], vrgcn, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Filling(None)
    monkeypatch.setattr(os, "fsync", room)
    assert vrgcn(*COMMAND, "out/whole", *given)[0] == 0
    assert verify_graph(tables / "out" / "whole") is None
    assert room.calls > 10  # every array, the ids, the recipe, meta.json and the folders
    for fails_at in range(1, room.calls):  # the first is of the folder that is there by now
        monkeypatch.setattr(os, "fsync", Filling(fails_at - 1))
        code, out, err = vrgcn(*COMMAND, "out/g", *given)
        assert code == 1, f"call {fails_at}: {out}"
        assert "out/g: the disk at " in err
        assert " is full" in err
        assert "Traceback" not in out + err
        # The last two calls flush the folder's own name: by then the graph is whole.
        left = [path.name for path in (tables / "out").iterdir() if path.name != "whole"]
        if left == ["g"]:
            assert fails_at == room.calls - 1
            assert verify_graph(tables / "out" / "g") is None
        else:
            assert left == []


def test_a_disk_without_room_for_a_byte_is_told_and_left_alone(
    vrgcn, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = open

    def opened(file, mode="r", *rest, **named):
        inside = isinstance(file, str | Path) and Path(file).parent.name.endswith(".partial")
        return plain("/dev/full" if inside and "w" in mode else file, mode, *rest, **named)

    monkeypatch.setattr("builtins.open", opened)
    code, _, err = vrgcn(*COMMAND, "out/g", *ONE)
    assert code == 1
    assert "out/g: the disk at " in err
    assert os.listdir(tables / "out") == []
