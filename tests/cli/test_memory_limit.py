"""Commands that run out of memory: an error that says what would fit, and nothing left behind.

Which allocation fails is decided here; tests/soak/soak_memory.py has real limits.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import torch

from tests.cli.conftest import small_graph
from tests.memory import set_memory, set_room_of_tables
from vrgcn.data.store import save_graph
from vrgcn.data.tables import adjacency
from vrgcn.graph.graph import Graph


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 4.58 MiB for an array with shape (600000,)"),
        pa.ArrowMemoryError("malloc of size 64 failed"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_import_says_what_takes_less(vrgcn, tmp_path: Path, monkeypatch, error) -> None:
    def fails(*_: object) -> None:
        raise error

    (tmp_path / "edges.csv").write_text("a,b\n0,1\n1,2\n")
    monkeypatch.setattr(adjacency, "write_adjacency", fails)
    monkeypatch.setattr(adjacency.EdgeFile, "append", fails)
    code, _, err = vrgcn("import", "--edges", "edges.csv", "--out", "g")
    assert code == 1
    assert err.startswith("vrgcn: error: there is not enough memory to import these tables")
    assert err.rstrip().endswith(f"({error})")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_predict_says_what_takes_less(vrgcn, tmp_path: Path, monkeypatch) -> None:
    save_graph(small_graph(), tmp_path / "graph")
    flags = ("--hidden", 16, "--epochs", 1, "--out", "run")
    assert vrgcn("train", "--graph", "graph", *flags)[0] == 0
    set_room_of_tables(monkeypatch, 4000)  # a table has 120 rows of 64 bytes
    code, _, err = vrgcn("predict", "run", "--out", "p.npy")
    assert code == 1, err
    assert "there is not enough memory to predict. What takes less:" in err
    assert "--memory disk" in err
    assert not (tmp_path / "p.npy").exists()
    assert vrgcn("predict", "run", "--memory", "disk", "--out", "p.npy")[0] == 0


def test_train_says_what_would_have_fit_where_a_table_does_not(
    vrgcn, tmp_path: Path, monkeypatch
) -> None:
    """Histories of 8 MB, and as much for the evaluation, where there is room for one of them."""
    nodes = 20_000
    graph = Graph(
        torch.stack([torch.arange(999), torch.arange(1, 1000)]),
        torch.zeros(nodes, 2),
        torch.arange(nodes) % 3,
        train=range(500),
    )
    save_graph(graph, tmp_path / "graph")
    set_memory(monkeypatch, 13_000_000, taken=300 << 20, addresses=(300 << 20) + 13_000_000)
    set_room_of_tables(monkeypatch, 6_000_000)
    flags = ("--estimator", "cvd", "--hidden", 100, "--batch-size", 50, "--epochs", 1)
    flags = (*flags, "--no-verify", "--scaling", "none", "--out", "run")
    code, _, err = vrgcn("train", "--graph", "graph", *flags)
    assert code == 1, err
    lines = {line.split(":")[0].strip(): line for line in err.splitlines()}
    head = err.splitlines()[0]
    assert head.startswith("vrgcn: error: there is not enough memory to train on 20,000 nodes")
    assert "(8 MB more were asked for, the process has 315 MB)" in head
    assert "histories 8.16 MB, exact evaluation 8.16 MB" in head
    assert head.endswith(", and 13 MB were free. What takes less:")
    assert lines["--memory disk"].endswith("(ulimit -v) counts files too")
    assert lines["--estimator ns"].endswith("which would have fit")
    assert "in all, not enough by itself" in lines["--batch-size 25"]
    assert lines["--history-dtype float16"].endswith("which would have fit")
    assert "--hidden" in lines
    assert not (tmp_path / "run").exists()
