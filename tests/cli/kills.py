"""Commands that are killed before one of their writes, and resumed or repeated.

    python -m tests.cli.kills            before one write of each kind
    python -m tests.cli.kills --every    before each write in turn

A process of its own, since it forks: each command is a copy of it that has everything imported.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
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

_EVERY = r"(mkdir|replace|rename) (?!.*partial)"


@dataclass(frozen=True)
class Killed:
    """A command that is killed.

    points: patterns of writes that differ in kind, in their order; each leaves another disk
    every: pattern of the writes before which it is killed if all are asked for: of several runs,
        before a folder, checkpoint or file gets its name
    """

    command: tuple[str, ...]
    points: tuple[str, ...]
    every: str = ""


# Commands that --resume resumes.
RUNS = {
    "train": Killed(
        _TRAIN,
        (
            "replace config.toml",  # nothing is there
            "replace metrics.jsonl",  # settings only
            "fsync checkpoints/.*/SHA256SUMS",  # a part of a checkpoint
            "unlink checkpoints/.lock",  # a checkpoint and a model
            "replace result.json",  # everything but the result
        ),
    ),
    "seeds": Killed(
        (*_TRAIN, "--seeds", "2"),
        ("replace seed-0/result.json", "rename seed-1/checkpoints/", "replace README.md"),
        _EVERY,
    ),
    # The study and the trials are left to tests/tuning/test_tuner_killed.py.
    "tune": Killed(
        ("tune", *_SMALL, *_SEARCH),
        (
            "replace study.sqlite",
            "replace leaderboard.json",  # the trial has ended
            "replace average/model.safetensors",
            "replace best/result.json",
        ),
        _EVERY.removesuffix("partial)") + "partial|trials/)",
    ),
}
# Commands that write one thing, and are repeated.
WRITERS = {
    "import": Killed(_IMPORT, ("fsync .*/indices_0.npy", "rename found.npy")),
    "predict": Killed(
        ("predict", "run", "--memory", "disk"), ("link found.npy", "unlink .*/first.bin")
    ),
}


def chosen(killed: Killed, writes: list[str], every: bool) -> list[int]:
    """Numbers of the writes before which the command is killed."""
    if every:
        return [number for number, write in enumerate(writes) if re.match(killed.every, write)]
    first = {p: [n for n, write in enumerate(writes) if re.match(p, write)] for p in killed.points}
    missing = [point for point, numbers in first.items() if not numbers]
    assert not missing, f"nothing is written as {missing} says: {writes}"
    return [numbers[0] for numbers in first.values()]


def kills(folder: Path, killed: Killed, out: tuple[str, ...], every: bool) -> Iterator[str]:
    """Run a command to its end, then kill it before some of its writes, as kill -9 does.
    Yields the write every time; the first time "", for nothing was killed.

    folder: only the command writes to it; what is there is the caller's to remove
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
        watch = before_each_write(folder, tell)
        code = wait(start(folder.parent, *killed.command, *out, watch=watch))
        return code, log.read_text().splitlines()

    code, writes = run(None)
    assert code == 0, output(folder.parent)
    yield ""
    for number in chosen(killed, writes, every):
        code, done = run(number)
        assert (code, done) == (-signal.SIGKILL, writes[: number + 1]), output(folder.parent)
        yield writes[number]


def kill_runs(home: Path, killed: Killed, every: bool) -> int:
    """Kill a command that can be resumed; returns how often."""
    run, command, count, wanted = home / "run", killed.command, -1, None
    for write in kills(run, killed, ("--out", "run"), every):
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


def kill_writer(home: Path, killed: Killed, every: bool) -> int:
    """Kill a command that writes one thing: it is whole or not there; returns how often."""
    place, command, count, wanted = home / "place", killed.command, -1, None
    found, out = place / "found.npy", ("--out", "place/found.npy")
    place.mkdir()
    for write in kills(place, killed, out, every):
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
    place.rmdir()
    return count


def kill_all(home: Path, every: bool) -> dict[str, int]:
    """Kill every command in an empty folder; returns how often each was killed."""
    save_graph(small_graph(60), home / "graph")
    write_tables(home)
    counts = {kind: kill_runs(home, killed, every) for kind, killed in RUNS.items()}
    assert wait(start(home, *_TRAIN, "--out", "run")) == 0, output(home)
    return counts | {kind: kill_writer(home, killed, every) for kind, killed in WRITERS.items()}


def write_tables(folder: Path) -> None:
    nodes = "".join(f"n{i},{i},{'abc'[i % 3]}\n" for i in range(60))
    (folder / "n.csv").write_text("id,x,label\n" + nodes)
    edges = "".join(f"n{i % 60},n{(7 * i + 3) % 60}\n" for i in range(200))
    (folder / "e.csv").write_text("source,target\n" + edges)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", action="store_true", help="before each write in turn")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="vrgcn-kills-") as name:
        for kind, count in kill_all(Path(name).resolve(), parser.parse_args().every).items():
            print(f"{count:6} {kind}: kills before a write")


if __name__ == "__main__":
    main()
