"""Section `startup`: the time of `vrgcn --help`, of mistakes on the command line and of imports, in
new processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial

from lab.bench.bench import Bench
from lab.bench.section import Section, Table
from lab.harness.timing import Spread, ratio, seconds, take_turns

# `import vrgcn` alone loads nothing before it is used; the star asks for every public name.
PROGRAMS = {
    "vrgcn --help": "from vrgcn.cli import main; main(['--help'])",
    "import torch": "import torch",
    "import vrgcn": "import vrgcn",
    "from vrgcn import *": "from vrgcn import *",
}

# Each ends in an error, in any folder.
MISTAKES = (
    "trian",
    "train",
    "train nowhere",
    "train communities --lr 0.1",
    "train communities --epochs five",
    "train communities --epochs 0",
    "train communities --hidden 0",
    "train communities --estimator cvdd",
    "train communities more",
    "train --resume nowhere",
    "train --config nowhere.toml",
    "info --graph nowhere",
    "predict",
    "predict nowhere --out predictions.csv",
    "evaluate nowhere",
    "report nowhere",
    "diagnose communities --out page.pdf",
    "import nodes.csv edges.csv",
    "import --edges nowhere.csv --out graph",
    "import --edges nowhere.csv --out graph --ratio 60 20 20",
)


def run(bench: Bench) -> Section:
    timers = {name: partial(seconds, partial(_start, code)) for name, code in PROGRAMS.items()}
    with tempfile.TemporaryDirectory() as empty:
        mistaken = {
            line: partial(seconds, partial(_mistake, line.split(), empty)) for line in MISTAKES
        }
        turns = bench.track(range(bench.scale.starts), "startup: taking turns")
        times = take_turns(timers | mistaken, turns, warm_up=bench.scale.starts > 1)
    results, rows = {}, []
    for name in PROGRAMS:
        taken, against = Spread.of(times[name]), ratio(times[name], times["import torch"])
        rows.append([name, taken.text(2), against.text(2)])
        results[name] = {"seconds": taken.as_dict(), "ratio_to_torch": against.as_dict()}
    slowest = max(MISTAKES, key=lambda line: Spread.of(times[line]).median)
    taken, against = Spread.of(times[slowest]), ratio(times[slowest], times["import torch"])
    rows.append([f"the slowest of {len(MISTAKES)} errors", taken.text(2), against.text(2)])
    mistakes = {
        "slowest": taken.as_dict(),
        "seconds": {line: Spread.of(times[line]).as_dict() for line in MISTAKES},
    }
    title = f"startup: new processes, {bench.scale.starts} turns"
    table = Table(title, ("", "seconds", "ratio to torch"), rows)
    return Section([table], {"programs": results, "mistakes": mistakes})


def _start(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def _mistake(words: list[str], folder: str) -> None:
    """Time a command line with a mistake in it, from the start to the error."""
    code = "import sys; from vrgcn.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, check=False, capture_output=True, cwd=folder)
    if done.returncode not in (1, 2) or b"error:" not in done.stderr:
        raise RuntimeError(f"vrgcn {' '.join(words)}: this was meant to be an error")
