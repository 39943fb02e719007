"""The journal of a service: bits turned, files cut to every length, a kill before each write, and
kills at random moments while six clients write.

    python -m tests.soak.soak_journal --kills 40

Whatever happens, a start has all that was acknowledged, once, or refuses and names the file.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

import torch

import vrgcn
from tests.processes import wait
from tests.serve.damage import content, flips, outcome, truncations, write_journal
from tests.serve.kills import forked
from tests.serve.papers import write_papers
from vrgcn.live.saving import verified_description
from vrgcn.serve.app import build_app
from vrgcn.serve.bodies import Limits
from vrgcn.serve.head import FILE
from vrgcn.serve.running import listen, serve
from vrgcn.serve.service import opened_service

CLIENTS = 6
KILLS = 40


def damaged_journals(folder: Path) -> Counter[str]:
    """Every bit of a log, one of each byte of a head, and every length."""
    counts, copy = Counter[str](), folder / "copy"
    write_journal(folder / "whole")
    wanted = content(folder / "whole")
    for file in sorted((folder / "whole").iterdir()):
        data = file.read_bytes()
        bits = range(1 if file.name == FILE else 8)
        turned = (damage for bit in bits for damage in flips(data, range(len(data)), bit))
        for what, damaged in (*turned, *truncations(data, range(len(data)))):
            shutil.copytree(folder / "whole", copy)
            (copy / file.name).write_bytes(damaged)
            found = outcome(copy, copy / file.name)
            assert found in (wanted, None), f"{file.name}, {what}: {found}"
            # A block of the head has a second one; nothing in the log is there twice.
            same = file.name == FILE and len(damaged) >= len(data) // 2
            assert (found is None) != same, f"{file.name}, {what}"
            counts[f"{file.name}: {'refused' if found is None else 'the same'}"] += 1
            shutil.rmtree(copy)
    return counts


def damaged_states(run: Path, folder: Path, draw: random.Random) -> Counter[str]:
    """Some hundred flips and lengths of each file of a state."""
    counts = Counter[str]()
    saved = vrgcn.load_run(run).saved
    vrgcn.load_run(run).live().save(folder / "state")
    for file in sorted(path for path in (folder / "state").rglob("*") if path.is_file()):
        data = file.read_bytes()
        places = sorted(draw.sample(range(len(data)), min(len(data), 200)))
        for what, damaged in (*flips(data, places), *truncations(data, places)):
            file.write_bytes(damaged)
            problem = "not noticed"
            try:
                verified_description(folder / "state", saved)
            except (ValueError, OSError) as error:
                problem = str(error)
            assert str(file) in problem, f"{file}, {what}: {problem}"
            counts["files of a state: refused"] += 1
        file.write_bytes(data)
    verified_description(folder / "state", saved)
    return counts


def kills_under_load(run: Path, folder: Path, kills: int, draw: random.Random) -> Counter[str]:
    """Six clients add weight to edges of their own; the service is killed and started again."""
    counts, state = Counter[str](), folder / "live"
    done = [0] * CLIENTS
    for number in range(kills):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        process = os.fork()
        if not process:
            _serve(run, state, port)
        until = time.monotonic() + draw.uniform(0.2, 1.5)
        threads = [
            threading.Thread(target=_write, args=(port, client, done, until))
            for client in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        time.sleep(max(0.0, until - time.monotonic()))  # the kill comes at a random moment
        os.kill(process, signal.SIGKILL)
        wait(process)
        for thread in threads:
            thread.join()
        assert forked(lambda: _check(run, state, done)) == 0, f"after kill {number}"
    counts["kills under load"] = kills
    counts["acknowledged changes, all there once"] = sum(done)
    return counts


def _serve(run: Path, state: Path, port: int) -> None:
    try:
        with (
            redirect_stdout(io.StringIO()),
            listen("127.0.0.1", port) as listening,
            opened_service(run, state, checkpoint_every=25) as service,
        ):
            serve(build_app(service, Limits(), None, loopback=True), listening)
    finally:
        os._exit(70)


def _write(port: int, client: int, done: list[int], until: float) -> None:
    """Add 1 to the weight of an edge again and again; repeat what was not answered."""
    while time.monotonic() < until + 1:
        edge = {"source": f"p{client}", "target": f"p{client}", "weight": 1}
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": f"{client} {done[client] + 1}",
        }
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("POST", "/edges", json.dumps({"edges": [edge]}), headers)
            if connection.getresponse().status == 201:
                done[client] += 1
        except (OSError, http.client.HTTPException):
            if time.monotonic() > until:
                return
            time.sleep(0.01)  # it has not begun yet, or was killed
        finally:
            connection.close()


def _check(run: Path, state: Path, done: list[int]) -> None:
    with opened_service(run, state) as service:
        for client in range(CLIENTS):
            node = f"p{client}"
            own = [e["weight"] for e in service.live.neighbours(node) if e["id"] == node]
            there = own[0] if own else 0
            assert done[client] <= there <= done[client] + 1, (client, done[client], there)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    draw = random.Random(asked.seed)
    print(f"seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="vrgcn-journal-") as name:
        folder = Path(name)
        run = write_papers(folder)
        with patch.object(os, "fsync", lambda _: None):  # nothing here loses power
            counts = damaged_journals(folder)
            counts += damaged_states(run, folder, draw)
        counts += kills_under_load(run, folder, asked.kills, draw)
        command = [sys.executable, "-m", "tests.serve.kills", str(run), "--all"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        counts["kills before each write"] = int(done.stdout)
        for what, count in sorted(counts.items()):
            print(f"{count:6} {what}")


if __name__ == "__main__":
    main()
