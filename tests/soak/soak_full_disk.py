"""Commands on a disk that fills up: a small tmpfs with more and less room in it.

Whatever there is room for, nothing half-written has a final name, a command that gives up says
which disk is full, and with room again it does what it does on any disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import torch

from tests.cli.conftest import named, small_graph
from tests.endings import run_ending
from tests.processes import output, start, wait
from vrgcn.data.store import save_graph, verify_graph
from vrgcn.inference.saved import load_model
from vrgcn.runs.checkpoint import checkpoints_in, load_checkpoint

DISK = 2_000_000  # bytes; a checkpoint of these runs takes some 100,000
TRIALS = 24  # of training, and as many of each other command
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


def training(folder: Path, disk: Path, draw: random.Random, trials: int) -> Counter[str]:
    counts = Counter[str]()
    for trial in range(trials):
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
        assert run_ending(run) == run_ending(whole)
        counts["same bits with room again"] += 1
        shutil.rmtree(run)
        shutil.rmtree(whole)
    return counts


def others(folder: Path, disk: Path, draw: random.Random, trials: int) -> Counter[str]:
    """Commands that write once: whole or nothing, and the old file stays until the new is whole."""
    counts = Counter[str]()
    write_tables(folder)
    train = (*FLAGS, "--threads", "1", "--graph", str(folder / "named"), "--out", "run")
    assert wait(start(folder, "train", *train)) == 0, output(folder)
    commands = {
        "import": ("import", "--nodes", "n.csv", "--edges", "e.csv", "--out", "{}/imported"),
        "predict": ("predict", "run", "--out", "{}/p.csv"),
        "predict to Parquet": ("predict", "run", "--out", "{}/p.parquet"),
        "predict from disk": ("predict", "run", "--memory", "disk", "--out", "{}/p.npy"),
        "report": ("report", "run", "--out", "{}/page.html"),
    }
    for name, command in commands.items():
        assert wait(start(folder, *(part.format(folder) for part in command))) == 0, output(folder)
        written = Path(command[-1].format(folder))
        size = sum(p.stat().st_size for p in (written, *written.rglob("*")) if p.is_file())
        for _ in range(trials):
            filler = fill(disk, draw.randrange(int(1.5 * size) + 8_192))
            code = wait(start(folder, *(part.format(disk) for part in command)))
            said = output(folder)
            filler.unlink()
            if code == 0:
                check_same(disk / written.name, written)
                counts[f"{name}: whole"] += 1
            else:
                assert code == 1, f"{name}: exit code {code}: {said}"
                assert f"the disk at {disk} is full" in said, said
                assert not os.listdir(disk), f"{name}: {os.listdir(disk)}"
                counts[f"{name}: refused, nothing left"] += 1
            assert "Traceback" not in said, said
            for path in disk.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return counts


def write_tables(folder: Path) -> None:
    save_graph(named(small_graph()), folder / "named")
    rows = "".join(f"n{i},{i},word{i % 50} and more,{'abc'[i % 3]}\n" for i in range(1500))
    (folder / "n.csv").write_text("id,x,text,label\n" + rows)
    edges = "".join(f"n{i % 1500},n{(7 * i + 3) % 1500}\n" for i in range(6000))
    (folder / "e.csv").write_text("source,target\n" + edges)


def check_same(found: Path, wanted: Path) -> None:
    if wanted.is_dir():
        verify_graph(found)
        assert sorted(os.listdir(found)) == sorted(os.listdir(wanted))
    elif wanted.suffix != ".html":  # the page contains the time
        assert found.read_bytes() == wanted.read_bytes()
    else:
        assert found.read_text().rstrip().endswith("</html>")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--trials", type=int, default=TRIALS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="vrgcn-disk-") as name:
        folder, disk = Path(name), Path(name) / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            print("not tried: a tmpfs cannot be mounted here")
            return
        print(f"seed {asked.seed}", flush=True)
        save_graph(small_graph(), folder / "graph")
        draw = random.Random(asked.seed)
        try:
            counts = others(folder, disk, draw, asked.trials)
            counts += training(folder, disk, draw, asked.trials)
        finally:
            subprocess.run(["umount", str(disk)], check=False)
        for what, count in sorted(counts.items()):
            print(f"{count:6} {what}")


if __name__ == "__main__":
    main()
