"""Runs the sections, prints each when it is done, and keeps the JSON up to date."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from lab.bench import (
    accuracy,
    deep,
    epoch,
    growth,
    histories,
    inference,
    limits,
    peers,
    sparse,
    startup,
    step,
)
from lab.bench.bench import Bench
from lab.bench.section import Section, print_section, write_json
from vrgcn import __version__

SECTIONS: dict[str, Callable[[Bench], Section]] = {
    "epoch": epoch.run,
    "accuracy": accuracy.run,
    "deep": deep.run,
    "step": step.run,
    "growth": growth.run,
    "peers": peers.run,
    "inference": inference.run,
    "histories": histories.run,
    "sparse": sparse.run,
    "startup": startup.run,
}


def run_sections(
    bench: Bench, names: Sequence[str], out: Path, about: dict[str, Any]
) -> list[limits.Verdict]:
    """Run the sections in the order of SECTIONS, then check the limits.

    about: description of the measurement, written beside the results
    """
    contents: dict[str, Any] = {
        "about": about,
        "machine": _machine(bench.threads),
        "sections": bench.results,
        "limits": [],
    }
    for name, run in SECTIONS.items():
        if name not in names:
            continue
        start = time.perf_counter()
        section = run(bench)
        taken = time.perf_counter() - start
        bench.results[name] = section.results | {"notes": list(section.notes), "took": taken}
        print_section(bench.console, section)
        bench.console.print(f"{name} took {taken:.0f} s\n", highlight=False)
        write_json(out, contents)  # results so far are kept if a later section fails
    found = limits.summary(bench.results)
    print_section(bench.console, found)
    write_json(out, contents | found.results)
    return limits.judge(bench.results)


def _machine(threads: int) -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "vrgcn": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _processor() -> str:
    """Return the processor's name as the system reports it; Linux keeps it in a file."""
    file = Path("/proc/cpuinfo")
    if file.exists():
        for line in file.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
