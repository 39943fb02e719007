"""Limits of memory that the system sets: an error that says what would fit, no abort and no hang.

What a process takes is measured here. The suite tests the same promises with readings and refusals
of its own (`tests/memory.py`). A part of it: `python -m pytest tests/soak/soak_memory.py -k train`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from lab.harness.memory_limit import GroupLimit, memory_limit
from tests.cli.conftest import small_graph
from tests.command_imports import imported_by_running
from tests.waiting import LONG
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph

# Libraries are loaded before the limit is set: our own reading and computing meets it.
LIMITED = """
import sys, resource
from vrgcn.cli import main
import {modules}
import vrgcn.data.tables.importing, vrgcn.engine.setup, vrgcn.runs.folder
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {room}, used + {room}))
main(sys.argv[1:])
"""


def limited(room: int, folder: Path, *arguments: object) -> tuple[int, str]:
    modules = ", ".join(imported_by_running(str(arguments[0])))
    code = LIMITED.format(modules=modules, room=room)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LONG, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold to the limit")
@pytest.mark.parametrize("room", [20 << 20, 430 << 20])
def test_import_says_what_takes_less(room: int, tmp_path: Path) -> None:
    rows = 3000 if room < 100 << 20 else 600_000
    np.savetxt(
        tmp_path / "edges.csv",
        np.arange(2 * rows).reshape(-1, 2),
        "%d",
        ",",
        header="a,b",
        comments="",
    )
    code, err = limited(room, tmp_path, "import", "--edges", "edges.csv", "--out", "g")
    assert code in ((1,) if rows == 3000 else (0, 1)), err
    if code:
        assert err.startswith("vrgcn: error: there is not enough memory to import these tables"), (
            err
        )
        assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold to the limit")
def test_predict_says_what_takes_less(vrgcn, tmp_path: Path) -> None:
    small = small_graph()
    save_graph(small, tmp_path / "small")
    assert vrgcn("train", "--graph", "small", "--epochs", 1, "--out", "run")[0] == 0
    nodes = 1_000_000  # 32 MB of features, and as much scaled
    large = Graph([], torch.zeros(nodes, 8), small.labels.repeat(nodes // 120 + 1)[:nodes])
    save_graph(large, tmp_path / "large")
    arguments = ("predict", "run", "--graph", "large", "--out", "p.npy", "--threads", 1)
    code, err = limited(120 << 20, tmp_path, *arguments)
    assert code == 1, err
    assert "there is not enough memory to predict. What takes less:" in err
    assert "--memory disk" in err
    assert not (tmp_path / "p.npy").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold to the limit")
def test_train_says_what_would_have_fit_where_a_table_does_not(tmp_path: Path) -> None:
    """Histories of 120 MB, and as much for the evaluation, where there is room for one of them."""
    nodes = 300_000
    generator = torch.Generator().manual_seed(0)
    graph = Graph(
        torch.randint(nodes, (2, 1000), generator=generator),
        torch.zeros(nodes, 2),
        torch.arange(nodes) % 3,
        train=range(500),
    )
    save_graph(graph, tmp_path / "graph")
    flags = ("--estimator", "cvd", "--hidden", 100, "--batch-size", 50, "--epochs", 1)
    flags = (*flags, "--threads", 1, "--no-verify", "--scaling", "none", "--out", "run")
    code, err = limited(160 << 20, tmp_path, "train", "--graph", "graph", *flags)
    assert code == 1, err
    lines = {line.split(":")[0].strip(): line for line in err.splitlines()}
    assert "(120 MB more were asked for, the process has" in err.splitlines()[0]
    assert "histories 122 MB, exact evaluation 122 MB" in err.splitlines()[0]
    assert lines["--memory disk"].endswith("(ulimit -v) counts files too")
    assert lines["--estimator ns"].endswith("which would have fit")
    assert "Traceback" not in err
    assert not (tmp_path / "run").exists()


ANY_TABLE = """
import resource, sys
import torch
from vrgcn.cli import main
torch.ones(100, 100) @ torch.ones(100, 100)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 300_000_000,) * 2)
main()
"""


def test_too_little_memory_is_explained_by_what_would_take_less(tmp_path: Path) -> None:
    save_graph(small_graph(), tmp_path / "graph")
    flags = ("--hidden", 40_000, "--epochs", 1, "--batch-size", 60, "--out", "run")
    flags = (*flags, "--estimator", "cvd")
    done = subprocess.run(
        [sys.executable, "-c", ANY_TABLE, "train", "--graph", "graph", *map(str, flags)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "there is not enough memory to train" in done.stderr
    for way in ("--batch-size", "--hidden", "--history-dtype float16"):
        assert way in done.stderr
    assert "It takes about " in done.stderr
    assert re.search(r"were free\. What takes less:", done.stderr)
    assert re.search(r"--batch-size \d+: .* in all, ", done.stderr)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


# Imports tables in a process of its own; its last line is by how many MB that grew. The highest
# size that the system keeps for a process is its own, where `ru_maxrss` may be its parent's.
IMPORT = """
import re
from pathlib import Path
from vrgcn.data.tables import ImportSpec, importing

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10

before = peak()
spec = ImportSpec(nodes=Path("n.parquet"), edges=Path("e.csv"), out=Path("g"))
try:
    importing.run_import(spec, lambda name, rows: None, lambda title, rows: None)
except ValueError as error:
    print(error)
print(peak() - before)
"""

measured = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not tell the peak of a process"
)


def same(value, count: int) -> pa.DictionaryArray:
    """A cell again and again, which the file has once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([value]))


def write(folder: Path, columns: dict) -> None:
    table = pa.table(columns)
    pq.write_table(table, folder / "n.parquet", compression="zstd", store_schema=False)
    (folder / "e.csv").write_text("source,target\n0,1\n")


def growth(folder: Path) -> tuple[str, int]:
    """Return the output of an import, and by how many MB its process grew."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return "\n".join(done[:-1]), int(done[-1])


@measured
def test_a_text_that_is_long_and_often_there_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    write(tmp_path, {"id": range(40), "bio": same("a" * (16 << 20), 40)})
    assert (tmp_path / "n.parquet").stat().st_size < 5000
    said, grown = growth(tmp_path)
    assert said == (
        "n.parquet: column 'bio' holds a cell of 16.8 MB in row 1, where 4.19 MB are the most; "
        'leave the column out with drop="bio"'
    )
    assert grown < 300  # the cells are 671 MB


@measured
def test_ids_that_are_all_the_same_are_refused_early(tmp_path: Path) -> None:
    write(tmp_path, {"id": np.full(12_000_000, 7)})
    assert (tmp_path / "n.parquet").stat().st_size < 100_000
    said, grown = growth(tmp_path)
    assert said == (
        "n.parquet: column 'id' repeats the id of an earlier row, in 1,048,575 rows: '7' in row 2, "
        "'7' in row 3, '7' in row 4, ...; read no further than row 1,048,576; is this the column "
        "of ids? See id="
    )
    assert grown < 300


def test_free_memory_knows_the_limit_of_the_control_group_that_the_process_is_in():
    program = "from vrgcn.files.memory import free_memory; print(free_memory())"
    with memory_limit(300 << 20) as limit:
        if not isinstance(limit, GroupLimit):
            pytest.skip("no control group can be made here")
        command = [*limit.prefix, sys.executable, "-c", program]
        told = subprocess.run(command, check=True, capture_output=True, text=True)
    assert 0 < int(told.stdout) < 300 << 20


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
