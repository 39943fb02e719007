"""Damaged files, one after the other, in processes whose end is noticed.

A process says which input it comes to before it reads it. So one that ends the interpreter, or
that takes more than some seconds, is known by its number, and the loop goes on after it. Memory is
limited: an allocation that a file claims and does not need is an error too.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import tempfile
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tests.waiting import LONG
from vrgcn.files.mistakes import InputError

SECONDS = 30  # of computing that one input may take, however slow others make the machine
MEMORY = 2 << 30  # bytes beyond what the libraries take
ALLOWED = (InputError, FileNotFoundError, FileExistsError, TypeError)


@dataclass
class Report:
    """tried: inputs by what became of them; found: what must not be, by target and number"""

    tried: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(self.tried.items()))
        return f"{sum(self.tried.values()):,} inputs: {counts}; {len(self.found)} faults"


def attempt(target: Target, right: Path, folder: Path, seed: int) -> str:
    """Damage the files by a seed and read them: "read", "refused", or what is wrong with that."""
    draw = random.Random(seed)
    if target.each:
        right = draw.choice(sorted(right.iterdir()))
        folder = folder / right.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(right, folder)
    before = _contents(folder)
    target.damage(folder, draw)
    after = _contents(folder)
    if before == after:
        return "unchanged"
    names = {path.name for path in folder.rglob("*")}
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(int(LONG))
    try:
        target.read(folder)
    except ALLOWED as error:
        if not any(name in str(error) for name in names):
            return f"an error without the file's name: {_told(error)}"
        return "refused"
    except Exception as error:
        return f"not our own error: {_told(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return "a change that was not noticed" if target.sealed else "read"


GOOD = ("read", "refused", "unchanged")


def run(name: str, seeds: range) -> Report:
    """One target on many inputs."""
    report = Report()
    with tempfile.TemporaryDirectory(prefix="vrgcn-fuzz-") as scratch:
        right = Path(scratch) / "right"
        right.mkdir()
        TARGETS[name].make(right)
        at = seeds.start
        while at < seeds.stop:
            at = _in_child(name, right, Path(scratch), range(at, seeds.stop), report)
    return report


def _in_child(name: str, right: Path, scratch: Path, seeds: range, report: Report) -> int:
    """Inputs in a process of their own until it ends; gives the first that was not tried."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _child(name, right, scratch / "damaged", seeds, writing)
    os.close(writing)
    at, said = seeds.start, "the process ended before it began"
    with open(reading, encoding="utf-8") as answers:
        for line in answers:
            at, said = int(line.split(" ", 1)[0]), line.rstrip("\n").split(" ", 1)[1]
            if said == "begins":
                continue
            report.tried[said if said in GOOD else "wrong"] += 1
            if said not in GOOD:
                report.found.append(f"{name}, input {at}: {said}")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        late = status in (-signal.SIGPROF, -signal.SIGALRM)
        how = "takes too long" if late else f"ends the interpreter ({status})"
        report.tried["wrong"] += 1
        report.found.append(f"{name}, input {at}: {how}")
    elif at + 1 < seeds.stop:
        raise RuntimeError(f"{name}: stopped at {at}: {said}")
    return at + 1


def _child(name: str, right: Path, folder: Path, seeds: range, writing: int) -> None:
    """Never returns."""
    code = 1
    try:
        with open("/proc/self/statm") as status:
            used = int(status.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        for seed in seeds:
            os.write(writing, f"{seed} begins\n".encode())
            said = attempt(TARGETS[name], right, folder, seed).replace("\n", " ")
            os.write(writing, f"{seed} {said}\n".encode(errors="replace"))
        code = 0
    finally:
        os._exit(code)


def _contents(folder: Path) -> dict[str, object]:
    """Return the contents of the files; for JSON its value, because spaces and repeated keys do not
    matter."""
    found: dict[str, object] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            found[str(path)] = path.read_bytes()
            if path.suffix == ".json":
                with suppress(ValueError):
                    found[str(path)] = repr(json.loads(path.read_bytes()))
            if path.suffix == ".safetensors":
                with suppress(ValueError, AttributeError, LookupError, TypeError):
                    found[str(path)] = _model(path.read_bytes())
    return found


def _model(data: bytes) -> object:
    """Return the contents of a model file."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    metadata = header.pop("__metadata__")
    return repr((sorted(header.items()), json.loads(metadata["vrgcn-model"]))), data[end:]


def _told(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error)[:300]} ({Path(last.filename).name}:{last.lineno})"
