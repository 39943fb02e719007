"""kill -9 at random moments of short runs: every resume succeeds and ends in the same bits.

A checkpoint comes after every step, so that many are killed while they are written.
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
from pathlib import Path

import torch

from tests.cli.conftest import small_graph
from tests.soak.processes import outcome, output, start, wait
from vrgcn.data.store import save_graph
from vrgcn.training.checkpoint import checkpoints_in, load_checkpoint

KILLS = 50
SECONDS = 480.0
FLAGS = ("--batch-size", "8", "--epochs", "3", "--hidden", "8", "--threads", "1")
EVERY_STEP = ("--checkpoint-every", "0.0000001m")
KINDS: tuple[tuple[str, ...], ...] = (
    ("--estimator", "cvd", "--diagnostics", "1"),
    ("--estimator", "cv", "--history-dtype", "float16"),
    ("--estimator", "history", "--visit", "all"),
    ("--estimator", "ns", "--fanout", "2"),
    ("--estimator", "exact", "--inductive"),
    ("--estimator", "is", "--sample-size", "20"),
    ("--estimator", "two-way", "--history-dtype", "float16"),
    ("--estimator", "two-way-cv", "--visit", "all"),
    ("--estimator", "cvd", "--layers", "3", "--history-dtype", "bfloat16", "--warm-start"),
)


def kill_runs(folder: Path, kills: int, seed: int = 0, seconds: float = SECONDS) -> Counter[str]:
    """Kill runs until it was done `kills` times or the time is over, resuming each to its end."""
    draw, counts = random.Random(seed), Counter[str]()
    save_graph(small_graph(), folder / "graph")
    end, number = time.monotonic() + seconds, draw.randrange(len(KINDS))
    while counts["kills"] < kills and time.monotonic() < end:
        kind = (*FLAGS, *EVERY_STEP, *KINDS[number % len(KINDS)], "--graph", str(folder / "graph"))
        number += 1
        began = time.monotonic()
        assert wait(start(folder, "train", *kind, "--out", "whole")) == 0, output(folder)
        life = time.monotonic() - began
        command = fresh = ("train", *kind, "--out", "run")
        saved = False  # whether there is a checkpoint to go on from
        while True:
            process = start(folder, *command)
            # A resumed run has less to do: many end before their time, and are compared.
            code = wait(process, draw.uniform(0, life) if counts["kills"] < kills else None)
            if code is None:
                os.kill(process, signal.SIGKILL)
                code = wait(process)
            if code == 0:
                went_on = "going on after epoch" in output(folder)
                ended = "has finished already" in output(folder)  # killed at its very end
                assert saved == went_on or ended, output(folder)
                break
            assert code == -signal.SIGKILL, f"exit code {code} of {command}: {output(folder)}"
            counts["kills"] += 1
            counts[f"kills {moment(folder / 'run')}"] += 1
            begun = (folder / "run" / "config.toml").exists()
            command = ("train", "--resume", "run") if begun else fresh
            counts["resumes"] += begun
            saved = bool(checkpoints_in(folder / "run" / "checkpoints"))
        assert outcome(folder / "run") == outcome(folder / "whole"), f"other bits after {kind}"
        for path in checkpoints_in(folder / "run" / "checkpoints"):
            load_checkpoint(path)
        left = [p for p in (folder / "run").rglob(".*") if p.name.endswith(("partial", "lock"))]
        assert not left, left
        counts["runs that ended in the same bits"] += 1
        for name in ("run", "whole"):
            shutil.rmtree(folder / name)
    return counts


def moment(run: Path) -> str:
    """What a run that was just killed was doing."""
    if any((run / "checkpoints").glob(".step-*.partial")):
        return "while a checkpoint was written or removed"
    if not checkpoints_in(run / "checkpoints"):
        return "before the first checkpoint"
    return "while it trained"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(f"seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="vrgcn-kills-") as folder:
        counts = kill_runs(Path(folder), asked.kills, asked.seed)
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    if counts["kills"] < asked.kills:
        sys.exit(f"only {counts['kills']} of {asked.kills} kills in {SECONDS:g} s")


if __name__ == "__main__":
    main()
