"""Commands that are killed before one of their writes, each in turn, and resumed or repeated.

    python -m tests.cli.kills train

A process of its own, since it forks: each command is a copy of it that has everything imported.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from tests.cli.conftest import small_graph
from tests.endings import contents, ending
from tests.processes import output, start, wait
from tests.writes import before_each_write
from vrgcn.data.store import save_graph

_SMALL = (
    *("--graph", "graph", "--batch-size", "64", "--hidden", "8", "--epochs", "2"),
    *("--checkpoint-every", "1", "--threads", "1"),
)
_TRAIN = ("train", *_SMALL, "--estimator", "cvd")
# Without baselines, which tests/tuning/test_tuner_killed.py has: each kill would fit all of them.
_SEARCH = (
    "--no-baselines",
    "--trials",
    "1",
    "--search",
    "dropout",
    "learning_rate",
    "--estimator",
    "exact",
)
_IMPORT = ("import", "--nodes", "n.csv", "--edges", "e.csv")

# Commands that --resume resumes, and before which of their writes they are killed: of several runs,
# before a folder, checkpoint or file gets its name.
RUNS = {
    "train": (_TRAIN, ""),
    "seeds": ((*_TRAIN, "--seeds", "2"), r"(mkdir|replace|rename) (?!.*partial)"),
    # The study and the trials are left to tests/tuning/test_tuner_killed.py.
    "tune": (("tune", *_SMALL, *_SEARCH), r"(mkdir|replace|rename) (?!.*partial|trials/)"),
}
# Commands that write one thing, and are repeated; they are killed before each write.
WRITERS = {"import": _IMPORT, "predict": ("predict", "run", "--memory", "disk")}


def kills(folder: Path, *command: str, before: str = "") -> Iterator[str]:
    """Run a command to its end, then kill it before each of its writes in turn, as kill -9 does.
    Yields the write every time; the first time "", for nothing was killed.

    folder: of which the command writes, and nobody else; what is there is the caller's to remove
    before: a pattern of the writes
    """
    log = folder.parent / "writes"

    def run(last: int | None) -> tuple[int | None, list[str]]:
        """last: the number of the write before which the process dies"""
        done = 0

        def tell(write: str) -> None:
            nonlocal done
            with open(log, "a") as file:
                file.write(f"{write}\n")
            if done == last:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1

        log.write_text("")
        code = wait(start(folder.parent, *command, watch=before_each_write(folder, tell)))
        return code, log.read_text().splitlines()

    code, writes = run(None)
    assert code == 0, output(folder.parent)
    yield ""
    for number, write in enumerate(writes):
        if re.match(before, write):
            code, done = run(number)
            assert (code, done) == (-signal.SIGKILL, writes[: number + 1]), output(folder.parent)
            yield write


def kill_runs(home: Path, command: tuple[str, ...], before: str) -> int:
    """Kill a command that can be resumed; returns how often."""
    run, count, wanted = home / "run", -1, None
    for write in kills(run, *command, "--out", "run", before=before):
        count += 1
        if write:
            begun = (run / "config.toml").exists()
            again = (command[0], "--resume", "run") if begun else (*command, "--out", "run")
            code = wait(start(home, *again))
            assert code == 0, f"killed before {write}: {output(home)}"
        wanted = wanted or ending(run)
        assert ending(run) == wanted, f"killed before {write}"
        left = [p for p in run.rglob(".*") if p.name.endswith((".partial", ".lock"))]
        assert not left, f"killed before {write}: {left}"
        shutil.rmtree(run)
    return count


def kill_writer(home: Path, command: tuple[str, ...]) -> int:
    """Kill a command that writes one thing: it is whole or not there; returns how often."""
    place, count, wanted = home / "place", -1, None
    found, out = place / "found.npy", ("--out", "place/found.npy")
    place.mkdir()
    for write in kills(place, *command, *out):
        count += 1
        wanted = wanted or contents(found)
        if found.exists():
            assert contents(found) == wanted, f"killed before {write}"
            shutil.rmtree(found) if found.is_dir() else found.unlink()
        for left in place.iterdir():
            os.utime(left, (0, 0))  # the next process removes old leftovers
        assert wait(start(home, *command, *out)) == 0, f"killed before {write}: {output(home)}"
        assert contents(found) == wanted, f"killed before {write}"
        assert os.listdir(place) == [found.name], f"killed before {write}: {os.listdir(place)}"
        shutil.rmtree(found) if found.is_dir() else found.unlink()
    return count


def write_tables(folder: Path) -> None:
    nodes = "".join(f"n{i},{i},{'abc'[i % 3]}\n" for i in range(60))
    (folder / "n.csv").write_text("id,x,label\n" + nodes)
    edges = "".join(f"n{i % 60},n{(7 * i + 3) % 60}\n" for i in range(200))
    (folder / "e.csv").write_text("source,target\n" + edges)


def main() -> None:
    kind = sys.argv[1]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="vrgcn-kills-") as name:
        home = Path(name).resolve()
        save_graph(small_graph(60), home / "graph")
        write_tables(home)
        if kind in RUNS:
            count = kill_runs(home, *RUNS[kind])
        else:
            assert wait(start(home, *_TRAIN, "--out", "run")) == 0, output(home)
            count = kill_writer(home, WRITERS[kind])
    print(count)


if __name__ == "__main__":
    main()
