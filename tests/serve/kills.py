"""A service that is killed before its writes in turn, from the first request to the second fold,
and opened again.

    python -m tests.serve.kills RUN          before the last write of each kind
    python -m tests.serve.kills RUN --all    before each write

A process of its own, since it forks: each service is a copy of it that has everything imported.
Prints the number of kills.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch

from tests.processes import wait
from tests.writes import before_each_write
from vrgcn.live.live import Live
from vrgcn.runs.run import load_run
from vrgcn.serve.service import opened_service

_NEW = {"year": 2001, "field": "y"}
# Weights of an edge that comes twice are summed: a change that is applied twice shows.
CHANGES = [
    [{"change": "add_nodes", "rows": [_NEW | {"id": "n1"}]}],
    [{"change": "add_edges", "rows": [{"source": "n1", "target": "p1", "weight": 2.0}]}],
    [{"change": "set_features", "rows": [{"id": "p3", "year": 1900}]}],
    [{"change": "remove_nodes", "ids": ["p5"]}],
    [{"change": "add_edges", "rows": [{"source": "n1", "target": "p1", "weight": 0.5}]}],
]
EVERY = 2  # changes after which the journal is folded
NODES = [f"p{i}" for i in range(12) if i != 5]


def answers(live: Live) -> torch.Tensor:
    """Outputs of all nodes that are never removed, and of the new one if it is there."""
    return live.predict([*NODES, *(["n1"] if live.has("n1") else [])]).outputs


def serve(run: Path, state: Path, told: Path, tell: Callable[[str], None] | None) -> None:
    """Apply all changes, each with a key, fold when it is due, and tell of each acknowledgement."""

    def work() -> None:
        with opened_service(run, state, checkpoint_every=EVERY) as service:
            for number, change in enumerate(CHANGES, start=1):
                service.change(change, key=f"key-{number}")
                with open(told, "a") as file:
                    file.write(f"{number}\n")
                if service.due:
                    service.fold()

    if tell is None:
        work()
        return
    with before_each_write(state, tell):
        work()


def forked(work: Callable[[], None]) -> int | None:
    """Do some work in a copy of this process; return its exit code."""
    process = os.fork()
    if process:
        return wait(process)
    code = 70
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def last_of_each_kind(writes: list[str]) -> list[int]:
    """Places of the last writes of each kind; a start leaves all in a hidden folder aside alike."""
    kinds = [re.sub(r"\d+|(?<=partial/).*", "", write) for write in writes]
    return sorted({kind: place for place, kind in enumerate(kinds)}.values())


def main() -> None:
    run = Path(sys.argv[1])
    torch.set_num_threads(1)
    live = load_run(run).live()
    wanted = [answers(live)]
    for change in CHANGES:
        live.apply(change)
        wanted.append(answers(live))
    assert not any(torch.equal(a, b) for a, b in pairwise(wanted))
    with tempfile.TemporaryDirectory(prefix="vrgcn-kills-") as name:
        state, told, log = (Path(name).resolve() / part for part in ("state", "told", "log"))

        def attempt(last: int | None) -> tuple[int | None, list[str]]:
            done = 0

            def tell(write: str) -> None:
                nonlocal done
                with open(log, "a") as file:
                    file.write(f"{write}\n")
                if done == last:
                    os.kill(os.getpid(), signal.SIGKILL)
                done += 1

            log.write_text("")
            told.write_text("")
            return forked(lambda: serve(run, state, told, tell)), log.read_text().splitlines()

        def check(acknowledged: int) -> None:
            with opened_service(run, state, checkpoint_every=EVERY) as service:
                there = service.number
                assert acknowledged <= there <= acknowledged + 1, (acknowledged, there)
                found = answers(service.live)
                assert torch.allclose(found, wanted[there], atol=1e-5), there
                states = [path.name for path in state.glob("state-*")]
                assert len(states) <= 1, states

        code, writes = attempt(None)
        assert code == 0
        check(len(CHANGES))
        shutil.rmtree(state)
        chosen = range(len(writes)) if "--all" in sys.argv else last_of_each_kind(writes)
        for number in chosen:
            write = writes[number]
            code, done = attempt(number)
            assert (code, done) == (-signal.SIGKILL, writes[: number + 1]), write
            acknowledged = len(told.read_text().split())
            assert forked(lambda count=acknowledged: check(count)) == 0, f"killed before {write}"
            # The client repeats everything: each change is applied once all the same.
            assert forked(lambda: serve(run, state, told, None)) == 0, f"killed before {write}"
            assert forked(lambda: check(len(CHANGES))) == 0, f"repeated after {write}"
            shutil.rmtree(state)
        print(len(chosen))


if __name__ == "__main__":
    main()
