"""`vrgcn audit` prints findings, writes them as JSON, and fails where it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

Run = Callable[..., tuple[int, str, str]]
N = 400


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Two graphs: `clean`, and `leaky` with a column that is made of the label."""
    from vrgcn import Graph

    rng = np.random.default_rng(0)
    label = rng.integers(2, size=N)
    nodes = pd.DataFrame({"id": range(N), "age": rng.normal(size=N), "label": label})
    edges = pd.DataFrame(rng.integers(N, size=(900, 2)), columns=["source", "target"])
    for name, extra in (("clean", {}), ("leaky", {"paid": 3.5 - label})):
        made = nodes.assign(**extra)
        Graph.from_pandas(made, edges, label="label", ratio=(0.6, 0.2, 0.2), out=tmp_path / name)
    return tmp_path


def test_a_leak_is_printed_and_written_and_strict_fails(vrgcn: Run, tables: Path) -> None:
    code, out, _ = vrgcn("audit", tables / "leaky", "--json", "found.json")
    assert code == 0
    assert "high: column 'paid' alone tells the label" in out
    assert "vrgcn import --drop paid" in out
    assert "1 finding, 1 severe" in out
    [finding] = json.loads((tables / "found.json").read_text())["findings"]
    assert finding["severity"] == "high"
    assert finding["check"] == "column"
    assert vrgcn("audit", tables / "leaky", "--strict")[0] == 1


def test_a_clean_graph_passes_for_labels_and_for_pairs(vrgcn: Run, tables: Path) -> None:
    for flags in ((), ("--predict", "edges"), ("--predict", "edges", "--leave-one-out")):
        code, out, _ = vrgcn("audit", tables / "clean", "--strict", *flags)
        assert code == 0
        assert "no leak was found" in out


def test_training_warns_in_one_line(vrgcn: Run, tables: Path) -> None:
    flags = ("--epochs", "1", "--no-baseline", "--model", "mlp")
    _, out, _ = vrgcn("train", tables / "leaky", *flags, "--out", "one")
    [line] = [line for line in out.splitlines() if "possible leak" in line]
    assert line.startswith("warning: possible leak: column 'paid' alone tells the label")
    _, out, _ = vrgcn("train", tables / "clean", *flags, "--out", "two")
    assert "possible leak" not in out


def test_mistakes_are_told(vrgcn: Run, tables: Path) -> None:
    code, _, err = vrgcn("audit", tables / "clean", "--json", "found.txt")
    assert code == 1
    assert "found.txt" in err
    code, _, err = vrgcn("audit", tables / "clean", "--predict", "user-bought-item")
    assert code == 1
    assert "--predict user-bought-item: the graph offers label, edges" in err


def test_training_from_python_warns_too(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import vrgcn as package

    settings = {"epochs": 1, "model": "mlp", "verbose": True}
    package.train(tables / "leaky", out=tmp_path / "run", **settings)
    assert "warning: possible leak: column 'paid' alone tells the label" in capsys.readouterr().out
