"""Section `startup`: how long `vrgcn --help` and the imports take, in new processes."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from vrgcn.benchmarks.bench import Bench
from vrgcn.benchmarks.section import Section, Table
from vrgcn.benchmarks.timing import Spread, ratio, seconds, take_turns

# `import vrgcn` alone loads nothing before it is used; the star asks for every public name.
PROGRAMS = {
    "vrgcn --help": "from vrgcn.cli import main; main(['--help'])",
    "import torch": "import torch",
    "import vrgcn": "import vrgcn",
    "from vrgcn import *": "from vrgcn import *",
}


def run(bench: Bench) -> Section:
    timers = {name: partial(seconds, partial(_start, code)) for name, code in PROGRAMS.items()}
    turns = bench.track(range(bench.scale.starts), "startup: taking turns")
    times = take_turns(timers, turns, warm_up=bench.scale.starts > 1)
    results, rows = {}, []
    for name, values in times.items():
        taken, against = Spread.of(values), ratio(values, times["import torch"])
        rows.append([name, taken.text(2), against.text(2)])
        results[name] = {"seconds": taken.as_dict(), "ratio_to_torch": against.as_dict()}
    title = f"startup: new processes, {bench.scale.starts} turns"
    return Section([Table(title, ("", "seconds", "ratio to torch"), rows)], {"programs": results})


def _start(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
