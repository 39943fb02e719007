"""Commands under a limit of memory: an error that says what would fit, no abort and no hang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

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
