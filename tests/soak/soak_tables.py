"""Imports from databases, and predictions written to them, whose connection is lost at any moment.

A backend of PostgreSQL is ended in order or killed, which resets the whole server; a process that
writes to DuckDB or SQLite is killed; a file of DuckDB is damaged. A command ends with an error that
names the database and without a traceback, or it succeeds; there is no half-written folder, and a
table has all of its rows or does not exist.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import torch

from tests.data.databases.postgres import Server, running_server
from vrgcn import Graph, save_graph, train

NODES, EDGES = 20_000, 200_000
TRIALS = 8
_FILL = (
    "CREATE TABLE node AS SELECT n AS id, n % 97 AS x FROM generate_series(1, {nodes}) t(n)",
    "CREATE TABLE edge AS SELECT 1 + n % {nodes} AS source, 1 + n * 7 % {nodes} AS target "
    "FROM generate_series(1, {edges}) t(n)",
)


def command(folder: Path, *words: str) -> subprocess.Popen[str]:
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-m", "vrgcn", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        program, cwd=folder, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said = process.communicate(timeout=300)[0]
    assert "Traceback" not in said, said
    assert process.returncode in (0, 1, -signal.SIGKILL), (process.returncode, said)
    return process.returncode, said


def imports(address: str, out: str) -> tuple[str, ...]:
    tables = ("--nodes", f"{address}#node", "--edges", f"{address}#edge")
    return ("import", *tables, "--source", "source", "--target", "target", "--out", out)


def lost(server: Server, kill: bool) -> bool:
    """End the backends of other clients; return False if there were none."""
    with suppress(Exception):  # the server may be starting again
        others = server.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'vrgcn' AND pid <> "
            "pg_backend_pid()"
        )
        for (pid,) in others:
            if kill:
                os.kill(pid, signal.SIGKILL)
            else:
                server.execute(f"SELECT pg_terminate_backend({pid})")
        return bool(others)
    return False


def up(server: Server) -> None:
    """Wait until a server that was reset answers."""
    for _ in range(600):
        with suppress(Exception):
            server.execute("SELECT 1")
            return
        time.sleep(0.1)  # between two questions
    raise AssertionError("the server does not come back")


def postgresql(folder: Path, draw: random.Random, trials: int) -> Counter[str]:
    counts = Counter[str]()
    with running_server(folder / "postgres") as first:
        address = first.new_schema()
        server = Server(address, first.data)
        for statement in _FILL:
            server.execute(statement.format(nodes=NODES, edges=EDGES))
        for trial in range(trials):
            writes, kill = trial % 2 == 1, trial % 4 >= 2
            out = f"g{trial}"
            words = imports(address, out)
            if writes:
                words = ("predict", "run", "--out", f"{address}#p{trial}")
            process = command(folder, *words)
            wait, hit = time.monotonic() + draw.uniform(0, 1.5), False
            while process.poll() is None and not hit:
                time.sleep(0.002)  # between two looks
                # From a random moment after the first connection on.
                hit = time.monotonic() > wait and lost(server, kill)
            code, said = ended(process)
            up(server)
            what = "predict" if writes else "import"
            counts[f"{what}: {'lost' if hit else 'not hit'}, code {code}"] += 1
            if code:
                assert "postgresql://" in said, said
            if not writes:
                assert (folder / out).exists() == (code == 0), said
                left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
                assert not left, left
                continue
            [(there,)] = server.execute(f"SELECT to_regclass('p{trial}') IS NOT NULL")
            rows = server.execute(f"SELECT count(*) FROM p{trial}")[0][0] if there else 0
            assert rows == (NODES if there else 0), rows
            assert there or code, said
    return counts


def killed_writers(folder: Path, draw: random.Random, trials: int) -> Counter[str]:
    import duckdb

    counts = Counter[str]()
    for trial in range(trials):
        scheme = ("sqlite", "duckdb")[trial % 2]
        file = folder / f"p{trial}.{scheme}"
        process = command(folder, "predict", "run", "--out", f"{scheme}:///{file.name}#p")
        while process.poll() is None and not file.exists():
            time.sleep(0.002)  # between two looks
        time.sleep(draw.uniform(0, 4))  # the kill comes at a random moment
        if process.poll() is None:
            process.kill()
        code, said = ended(process)
        rows = 0
        if file.exists() and scheme == "sqlite":
            with closing(sqlite3.connect(file)) as opened, suppress(sqlite3.OperationalError):
                rows = opened.execute("SELECT count(*) FROM p").fetchone()[0]
        elif file.exists():
            with duckdb.connect(str(file)) as opened, suppress(duckdb.CatalogException):
                rows = opened.execute("SELECT count(*) FROM p").fetchone()[0]
        assert rows in (0, NODES), rows
        assert rows or code, said
        counts[f"{scheme}: {'all' if rows else 'no'} rows, code {code}"] += 1
    return counts


def damaged_duckdb(folder: Path, draw: random.Random, trials: int) -> Counter[str]:
    """Blocks of a file are overwritten, or its end is cut off."""
    import duckdb

    counts = Counter[str]()
    whole = folder / "whole.duckdb"
    with duckdb.connect(str(whole)) as opened:
        for statement in _FILL:
            opened.execute(statement.format(nodes=NODES, edges=EDGES))
    content = whole.read_bytes()
    for trial in range(trials):
        broken, place = bytearray(content), draw.randrange(len(content))
        if trial % 3:
            broken[place : place + 64] = draw.randbytes(64)
        else:
            del broken[place:]
        (folder / "broken.duckdb").write_bytes(broken)
        code, said = ended(command(folder, *imports("duckdb:///broken.duckdb", f"d{trial}")))
        assert (folder / f"d{trial}").exists() == (code == 0), said
        assert code == 0 or "duckdb:///broken.duckdb" in said, said
        counts[f"damaged file: code {code}"] += 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=TRIALS)
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    folder = Path(tempfile.mkdtemp(prefix="soak-tables-"))
    ends = torch.randint(NODES, (2, EDGES), generator=torch.Generator().manual_seed(0))
    labels = torch.arange(NODES) % 3
    save_graph(Graph(ends, torch.rand(NODES, 2), labels, train=range(64)), folder / "graph")
    train(folder / "graph", out=folder / "run", epochs=1, hidden=4)
    for part in (postgresql, killed_writers, damaged_duckdb):
        for what, count in sorted(part(folder, draw, asked.trials).items()):
            print(f"{what:<40} {count:>6}", flush=True)
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
