"""kill -9 before each write of short runs, then at random moments of others: whatever is resumed
ends in the same bits.

A checkpoint comes after every step, and half of the kills wait for one that is being written.
Single runs of every kind, runs of several seeds, and searches for settings. Of what `import` and
`predict` write, all is there or nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch

from tests.cli.conftest import small_graph
from tests.cli.kills import kill_all
from tests.endings import contents, ending
from tests.processes import output, start, wait
from tests.soak.soak_full_disk import write_tables
from vrgcn.data.store import save_graph
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.folder import member_runs

SECONDS = 480.0  # of all of it
_SMALL = ("--batch-size", "8", "--hidden", "8", "--threads", "1")
_EVERY_STEP = ("--checkpoint-every", "0.0000001m")
_SINGLE = ("train", *_SMALL, *_EVERY_STEP, "--epochs", "3")
_SEEDS = ("train", *_SMALL, *_EVERY_STEP, "--epochs", "2", "--seeds", "3")
_TUNE = ("tune", *_SMALL, "--epochs", "3", "--trials", "5")
_SEARCH = ("--search", "layers", "dropout", "layer_norm", "learning_rate")

# Commands that are killed: how often, and commands to alternate with.
KINDS: dict[str, tuple[int, tuple[tuple[str, ...], ...]]] = {
    "single": (
        50,
        (
            (*_SINGLE, "--estimator", "cvd", "--diagnostics", "1"),
            (*_SINGLE, "--estimator", "cv", "--history-dtype", "float16"),
            (*_SINGLE, "--estimator", "history", "--visit", "all"),
            (*_SINGLE, "--estimator", "ns", "--fanout", "2"),
            (*_SINGLE, "--estimator", "exact", "--inductive"),
            (*_SINGLE, "--estimator", "is", "--sample-size", "20"),
            (*_SINGLE, "--estimator", "two-way", "--history-dtype", "float16"),
            (*_SINGLE, "--estimator", "two-way-cv", "--visit", "all"),
            (*_SINGLE, *("--layers", "3", "--history-dtype", "bfloat16", "--warm-start")),
        ),
    ),
    "seeds": (12, ((*_SEEDS, "--estimator", "cvd"), (*_SEEDS, "--estimator", "two-way"))),
    # Without checkpoints a trial is repeated, with them it goes on.
    "search": (12, ((*_TUNE, *_SEARCH, *_EVERY_STEP), (*_TUNE, *_SEARCH))),
}

# Commands that write one thing, which the last word names.
WRITERS: dict[str, tuple[int, tuple[str, ...]]] = {
    "import": (20, ("import", "--nodes", "n.csv", "--edges", "e.csv", "--out")),
    "predict": (10, ("predict", "whole", "--memory", "disk", "--out")),
}


def kill_runs(folder: Path, kind: str, kills: int, draw: random.Random, end: float) -> Counter[str]:
    """Kill commands of a kind until it was done `kills` times or the time is over, going on with
    each to its end."""
    counts, number = Counter[str](), draw.randrange(100)
    while counts["kills"] < kills and time.monotonic() < end:
        commands = KINDS[kind][1]
        fresh = (*commands[number % len(commands)], "--graph", str(folder / "graph"))
        number += 1
        began = time.monotonic()
        assert wait(start(folder, *fresh, "--out", "whole")) == 0, output(folder)
        kill_one(folder, fresh, time.monotonic() - began, kills, draw, counts)
        ends = [ending(folder / name) for name in ("run", "whole")]
        assert ends[0] == ends[1], f"another end after {fresh}: {ends}"
        left = [p for p in (folder / "run").rglob(".*") if p.name.endswith(("partial", "lock"))]
        assert not left, left
        counts["ended in the same bits"] += 1
        for name in ("run", "whole"):
            shutil.rmtree(folder / name)
    return counts


def kill_one(
    folder: Path,
    fresh: tuple[str, ...],
    life: float,
    kills: int,
    draw: random.Random,
    counts: Counter[str],
) -> None:
    """One command until it has ended, killed within `life` seconds as often as may be."""
    run, fresh = folder / "run", (*fresh, "--out", "run")
    command, resumed = fresh, False
    saved = False  # whether there is a checkpoint to go on from
    while True:
        process = start(folder, *command)
        # A resumed run has less to do: many end before their time, and are compared.
        code = wait(process, draw.uniform(0, life) if counts["kills"] < kills else None)
        if code is None and draw.random() < 0.5:
            code = wait(process, 1.0, lambda: writing(run))
        if code is None:
            os.kill(process, signal.SIGKILL)
            code = wait(process)
        if code == 0:
            went_on = "resuming after epoch" in output(folder)
            ended = "has finished already" in output(folder)  # killed at its very end
            several = bool(member_runs(run))
            assert several or ended or went_on == (saved and resumed), output(folder)
            return
        assert code == -signal.SIGKILL, f"exit code {code} of {command}: {output(folder)}"
        counts["kills"] += 1
        counts[f"kills {moment(run)}"] += 1
        resumed = (run / "config.toml").exists() and draw.random() < 0.8
        command = (*fresh, "--overwrite")  # starts over, whatever is there
        if resumed:
            command = (fresh[0], "--resume", "run")
        counts["resumes" if resumed else "begun again"] += 1
        saved = bool(checkpoints_in(run / "checkpoints"))


def kill_writers(
    folder: Path, kind: str, kills: int, draw: random.Random, end: float
) -> Counter[str]:
    """Kill commands that write one thing: it is whole or not there, and they may be repeated."""
    counts = Counter[str]()
    command = WRITERS[kind][1]
    graph = str(folder / "graph")
    assert wait(start(folder, *_SINGLE, "--graph", graph, "--out", "whole")) == 0, output(folder)
    began = time.monotonic()
    assert wait(start(folder, *command, "wanted.npy")) == 0, output(folder)
    life = time.monotonic() - began
    wanted, found = contents(folder / "wanted.npy"), folder / "found.npy"
    while counts["kills"] < kills and time.monotonic() < end:
        process = start(folder, *command, found.name)
        code = wait(process, draw.uniform(0, life))
        if code is None:
            os.kill(process, signal.SIGKILL)
            code = wait(process)
            counts["kills"] += code != 0
        assert code in (0, -signal.SIGKILL), output(folder)
        assert code or found.exists()
        if found.exists():
            assert contents(found) == wanted
            counts["written whole"] += 1
            shutil.rmtree(found) if found.is_dir() else found.unlink()
        for left in folder.glob(".*"):
            os.utime(left, (0, 0))  # old, so that the next process removes it
    assert wait(start(folder, *command, found.name)) == 0, output(folder)
    assert contents(found) == wanted
    assert not list(folder.glob(".*")), list(folder.glob(".*"))
    shutil.rmtree(folder / "whole")
    for path in (found, folder / "wanted.npy"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return counts


def moment(run: Path) -> str:
    """Return what a run that was just killed was doing."""
    if writing(run):
        return "while a checkpoint was written or removed"
    if not any(checkpoints_in(r / "checkpoints") for r in (run, *member_runs(run))):
        return "without a checkpoint"
    return "while it trained"


def writing(run: Path) -> bool:
    """Whether some checkpoint of a run is not whole, or not gone."""
    with suppress(FileNotFoundError):  # the folder may be removed meanwhile
        runs = [run, *member_runs(run)]
        return any(next((r / "checkpoints").glob(".step-*.partial"), None) for r in runs)
    return False


def main() -> None:
    parser = argparse.ArgumentParser()
    for kind, (kills, _) in (KINDS | WRITERS).items():
        parser.add_argument(f"--{kind}", type=int, default=kills, help="kills of this kind")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    asked = vars(parser.parse_args())
    torch.set_num_threads(1)
    print(f"seed {asked['seed']}", flush=True)
    draw, end = random.Random(asked["seed"]), time.monotonic() + SECONDS
    with tempfile.TemporaryDirectory(prefix="vrgcn-kills-") as name:
        for kind, count in kill_all(Path(name).resolve(), every=True).items():
            print(f"{count:6} {kind}: kills before each write", flush=True)
    with tempfile.TemporaryDirectory(prefix="vrgcn-kills-") as name:
        save_graph(small_graph(), Path(name) / "graph")
        write_tables(Path(name))
        for kind in (*KINDS, *WRITERS):
            kill = kill_runs if kind in KINDS else kill_writers
            counts = kill(Path(name), kind, asked[kind], draw, end)
            for what, count in sorted(counts.items()):
                print(f"{count:6} {kind}: {what}", flush=True)
            if counts["kills"] < asked[kind]:
                sys.exit(f"{kind}: {counts['kills']} of {asked[kind]} kills in {SECONDS:g} s")


if __name__ == "__main__":
    main()
