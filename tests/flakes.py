"""Tests that fail now and then, for `make flakes`: the suite again and again, each time otherwise.

    python -m tests.flakes                                         everything
    python -m tests.flakes --runs one-core tmpdir -- tests/serve   some runs of some tests

Runs:
    random-1 … random-5   in random order, beside two processes that are always busy
    one-core              on one core
    tmpdir                temporary files on another file system than the project's
    without-data          a copy of the project, with no real graphs to be found

Prints each test that ever failed, and how to repeat it. Exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.shuffle import FAILED

ROOT = Path(__file__).resolve().parents[1]
RANDOM = [f"random-{number}" for number in range(1, 6)]
RUNS = [*RANDOM, "one-core", "tmpdir", "without-data"]
BUSY = 2
ROOM = 4 << 30  # bytes that temporary files of all tests fit into
SHOWN = 60.0  # seconds between two lines of progress

# Ends with the process that started it, however that ends.
_BUSY = "import os\nstarted_by = os.getppid()\nwhile os.getppid() == started_by: pass"


class Skipped(Exception):  # noqa: N818 - nothing is wrong
    """A run that this machine cannot do."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=RUNS, metavar="RUN")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the orders")
    parser.add_argument("--order", help="a file of tests, which one process runs in that order")
    parser.add_argument("--logs", type=Path, help="a folder for all output; else a temporary one")
    parser.add_argument("tests", nargs="*", help="files, folders, names; else the whole suite")
    asked = parser.parse_args()
    logs = (asked.logs or Path(tempfile.mkdtemp(prefix="vrgcn-flakes-"))).resolve()
    print(f"seed {asked.seed}, output in {logs}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failed: dict[str, list[str]] = {}
    for number, name in enumerate(asked.runs, 1):
        title = f"run {number} of {len(asked.runs)}, {name}"
        log = logs / name
        shutil.rmtree(log, ignore_errors=True)
        log.mkdir(parents=True)
        seed = asked.seed + RUNS.index(name)
        order = asked.order or (str(seed) if name in RANDOM else None)
        try:
            code = _run(title, name, seed, order, asked.tests, log)
        except Skipped as reason:
            print(f"{title}: skipped, {reason}", flush=True)
            continue
        for test, replay in _failures(log, code):
            again = f"{sys.executable} -m tests.flakes --runs {name} --seed {asked.seed}"
            failed.setdefault(test, []).append(
                f"  {name}: {again} -- '{test}'\n"
                f"    after those before it: {again} --order {replay}"
            )
    for test, ways in sorted(failed.items()):
        print(f"{test}", *ways, sep="\n")
    print(f"flakes: {len(failed)} tests failed" if failed else "flakes: no test ever failed")
    return bool(failed)


def _run(title: str, name: str, seed: int, order: str | None, tests: list[str], log: Path) -> int:
    """Run the tests once; gives the exit code of pytest.

    seed: of the hashes of strings, on which the order of a set depends
    order: a seed or a file, see tests/shuffle.py; None for the usual order
    """
    begun = time.monotonic()
    with ExitStack() as stack:
        cwd, environment, cores = stack.enter_context(_ways(name))
        processes = 1 if order and not order.isdigit() else len(cores)
        command = [sys.executable, "-m", "pytest", "-n", str(processes)]
        # With "=": pytest takes the folder of a word that it does not know yet for the project.
        command += ["-p", "tests.shuffle", f"--order-log={log}"]
        command += [f"--order={order}"] if order else []
        environment |= {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": str(seed)}
        output = stack.enter_context((log / "output.txt").open("wb"))
        process = stack.enter_context(
            _ended(
                [*command, *tests],
                cwd=cwd,
                env=os.environ | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        )
        if hasattr(os, "sched_setaffinity"):  # before it has started others
            os.sched_setaffinity(process.pid, cores)
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(SHOWN)
            done, failures = _lines(log, "gw*"), _lines(log, FAILED)
            state = "running" if process.returncode is None else f"code {process.returncode}"
            seconds = time.monotonic() - begun
            told = f"{title}: {len(done)} tests, {len(failures)} failed, {seconds:.0f} s, {state}"
            print(told, flush=True)
            if process.returncode is not None:
                return process.returncode


@contextmanager
def _ways(name: str) -> Iterator[tuple[Path, dict[str, str], set[int]]]:
    """The folder, the environment and the cores of a run."""
    cores = set(range(os.cpu_count() or 1))
    if hasattr(os, "sched_getaffinity"):
        cores = os.sched_getaffinity(0)
    if name in RANDOM:
        with ExitStack() as stack:
            for _ in range(BUSY):
                stack.enter_context(_ended([sys.executable, "-c", _BUSY]))
            yield ROOT, {}, cores
    elif name == "one-core":
        if not hasattr(os, "sched_setaffinity"):
            raise Skipped("the system cannot keep a process on one core")
        yield ROOT, {}, {min(cores)}
    elif name == "tmpdir":
        with tempfile.TemporaryDirectory(prefix="vrgcn-flakes-", dir=_elsewhere()) as folder:
            yield ROOT, {"TMPDIR": folder}, cores
    else:
        with tempfile.TemporaryDirectory(prefix="vrgcn-flakes-") as folder:
            copy, nothing = Path(folder) / "project", Path(folder) / "nothing"
            _copy(copy)
            nothing.mkdir()
            yield copy, {"VRGCN_DATA": str(nothing), "PYTHONPATH": str(copy)}, cores


def _elsewhere() -> str:
    """A folder on a file system that neither the project nor its temporary files are on."""
    usual = {os.stat(folder).st_dev for folder in (ROOT, tempfile.gettempdir())}
    for folder in ("/dev/shm", "/run/shm", "/var/tmp", str(Path.home())):
        if os.path.isdir(folder) and os.access(folder, os.W_OK):
            other = os.stat(folder).st_dev not in usual
            if other and shutil.disk_usage(folder).free > ROOM:
                return folder
    raise Skipped("no other file system with room was found")


def _copy(folder: Path) -> None:
    """Copy the files of the project that git knows, or would add: no results, no environment."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Skipped(f"git does not list the files of the project: {error}") from error
    for name in done.stdout.split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


@contextmanager
def _ended(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process, which ends, and all that it started, with the block."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _failures(log: Path, code: int) -> Iterator[tuple[str, Path]]:
    """Tests that failed, each with a file of the tests that its process ran until then."""
    lines = _lines(log, FAILED)
    for number, line in enumerate(lines):
        worker, test = line.split(" ", 1)
        ran = _lines(log, worker)
        replay = log / f"until-{number}.txt"
        replay.write_text("\n".join(ran[: ran.index(test) + 1] if test in ran else ran))
        yield test, replay
    if code and not lines:
        yield f"pytest ended with code {code}, see {log / 'output.txt'}", log / "gw0.txt"


def _lines(log: Path, name: str) -> list[str]:
    return [line for file in log.glob(f"{name}.txt") for line in file.read_text().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
