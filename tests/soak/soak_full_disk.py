"""Training on a disk that fills up: a small tmpfs with more and less room in it.

Whatever there is room for, nothing half-written has a final name, a run that gives up says which
disk is full, and with room again it goes on to the bits of a run that always had it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import torch

from tests.cli.conftest import small_graph
from tests.soak.processes import outcome, output, start, wait
from vrgcn.data.store import save_graph
from vrgcn.inference.saved import load_model
from vrgcn.training.checkpoint import checkpoints_in, load_checkpoint

DISK = 2_000_000  # bytes; a checkpoint of these runs takes some 100,000
TRIALS = 24
FLAGS = ("--batch-size", "8", "--epochs", "3", "--hidden", "32", "--checkpoint-every", "1")


def check_whole(run: Path) -> None:
    """Whatever has a final name is complete."""
    for path in checkpoints_in(run / "checkpoints"):
        load_checkpoint(path)
    if (run / "model.safetensors").exists():
        load_model(run / "model.safetensors")
    if (run / "metrics.jsonl").exists():
        for line in (run / "metrics.jsonl").read_text().splitlines():
            json.loads(line)
    assert not list(run.rglob(".*.partial")), list(run.rglob("*"))


def fill(disk: Path, room: int) -> Path:
    """A file that leaves so many bytes of a disk free."""
    free = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(b"\0" * max(0, free.f_bavail * free.f_bsize - room))
    return filler


def trials(folder: Path, disk: Path, seed: int) -> Counter[str]:
    draw, counts = random.Random(seed), Counter[str]()
    save_graph(small_graph(), folder / "graph")
    for trial in range(TRIALS):
        kind = (*FLAGS, "--threads", "1", "--graph", str(folder / "graph"), "--seed", str(trial))
        asked = "stop" if trial % 3 == 0 else "continue"
        kind = (*kind, "--on-full-disk", asked)
        whole, run = folder / f"whole-{trial}", disk / f"run-{trial}"
        assert wait(start(folder, "train", *kind, "--out", str(whole))) == 0, output(folder)
        filler = fill(disk, draw.choice([0, 4_096, 30_000, 90_000, 150_000, 300_000]))
        code = wait(start(folder, "train", *kind, "--out", str(run)))
        said = output(folder)
        assert "Traceback" not in said, said
        check_whole(run)
        filler.unlink()
        if code == 0:
            counts["runs that trained on to the end"] += 1
            counts["of them without some checkpoint"] += "no checkpoint at step" in said
        else:
            assert code == 1, said
            assert f"the disk at {disk} is full" in said, said
            counts["runs that stopped and named the disk"] += 1
            begun = (run / "config.toml").exists()
            again = ("--resume", str(run)) if begun else (*kind, "--out", str(run))
            assert wait(start(folder, "train", *again)) == 0, output(folder)
            counts["of them resumed"] += begun
        assert outcome(run) == outcome(whole)
        counts["same bits with room again"] += 1
        subprocess.run(["rm", "-r", str(run), str(whole)], check=True)
    return counts


def main() -> None:
    torch.set_num_threads(1)
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(10**6)
    with tempfile.TemporaryDirectory(prefix="vrgcn-disk-") as name:
        folder, disk = Path(name), Path(name) / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            print("not tried: a tmpfs cannot be mounted here")
            return
        print(f"seed {seed}", flush=True)
        try:
            counts = trials(folder, disk, seed)
        finally:
            subprocess.run(["umount", str(disk)], check=False)
        for what, count in sorted(counts.items()):
            print(f"{count:6} {what}")


if __name__ == "__main__":
    main()
