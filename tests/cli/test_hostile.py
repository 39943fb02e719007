"""Commands on input that is broken, huge or meant to harm: an error that names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import named, small_graph
from tests.messages import refused
from vrgcn import embeddings, load_model
from vrgcn.data.store import load_graph, save_graph
from vrgcn.graph.names import Names

ODD_NAMES = ["[deleted]", "[/x]", "$x^$", "$10-$20", "\x1b[2J", "two\nlines", "<b>&"]


def test_of_two_predictions_to_one_file_one_wins_and_the_other_says_so(
    vrgcn, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "p.csv"

    def meanwhile(*given: object) -> None:
        """Another run begins after the first has, and ends before it."""
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert vrgcn("predict", run, "--out", out)[0] == 0

    monkeypatch.setattr("vrgcn.inference.predict.check_outputs", meanwhile)
    code, _, err = vrgcn("predict", run, "--out", out, "--top", 1)
    assert code == 1
    assert f"{out} was written by somebody else in the meantime" in err
    assert out.read_text().startswith('"id","label","p_amber"')  # the winner's, whole
    assert not list(tmp_path.glob(".*"))


def test_two_processes_that_predict_to_one_file_do_not_mix(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.npy"
    code = f"from vrgcn.cli import main; main(['predict', {str(run)!r}, '--out', {str(out)!r}])"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    ended = [(process.communicate()[1], process.returncode) for process in both]
    assert sorted(code for _, code in ended) in ([0, 1], [0, 0]), ended
    if sum(code for _, code in ended):
        assert any("somebody else" in err or "exists already" in err for err, _ in ended)
    rows = np.load(out)
    assert rows.shape == (120, 3)
    assert np.allclose(rows.sum(1), 1)


def test_a_link_in_place_of_the_file_is_not_followed(vrgcn, run: Path, tmp_path: Path) -> None:
    (tmp_path / "p.csv").symlink_to(tmp_path / "theirs.csv")
    code, _, err = vrgcn("predict", run, "--out", "p.csv")
    assert code == 1
    assert "p.csv is a link, to" in err
    assert not (tmp_path / "theirs.csv").exists()


def full_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every file that is newly written below a folder be on a disk without room."""
    plain = os.open

    def opened(path, flags, *mode, **named):
        descriptor = plain(path, flags, *mode, **named)
        if not flags & os.O_CREAT or folder not in Path(path).resolve().parents:
            return descriptor
        os.close(descriptor)
        return plain("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(os, "open", opened)


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet"])
def test_a_full_disk_is_told_by_file_and_disk_and_leaves_nothing(
    suffix: str, vrgcn, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    full_below(tmp_path / "out", monkeypatch)
    code, _, err = vrgcn("predict", run, "--out", f"out/p{suffix}")
    assert code == 1
    assert f"out/p{suffix}: the disk at " in err
    assert " is full" in err
    assert not os.listdir(tmp_path / "out")


@pytest.mark.parametrize("command", ["report", "evaluate"])
def test_a_full_disk_keeps_the_page_and_the_picture_that_were_there(
    command: str, vrgcn, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out" / {"report": "page.html", "evaluate": "picture.png"}[command]
    first = {"report": out, "evaluate": out.with_name("evaluation-picture.json")}[command]
    out.parent.mkdir()
    out.write_text("before")
    full_below(out.parent, monkeypatch)
    code, _, err = vrgcn(command, run, "--out", out)
    assert code == 1
    assert f"{first}: the disk at " in err
    assert out.read_text() == "before"
    assert os.listdir(out.parent) == [out.name]


def test_features_that_are_nan_are_no_prediction(vrgcn, run: Path, tmp_path: Path) -> None:
    graph = named(small_graph())
    features = graph.features.clone()
    features[7, 2] = float("nan")
    save_graph(graph.with_features(features), tmp_path / "bad")
    for command in (("predict", run, "--out", "p.csv"), ("evaluate", run)):
        code, _, err = vrgcn(*command, "--graph", tmp_path / "bad")
        assert code == 1
        assert "the prediction of node 'n-" in err
        assert "features hold NaN or infinite values (at least 1), first: node 7, column 2" in err
    assert not (tmp_path / "p.csv").exists()
    for layer in (0, -2):
        flags = ("--graph", tmp_path / "bad", "--layer", layer, "--out", "e.npy")
        code, _, err = vrgcn("embed", run, *flags)
        assert code == 1
        assert "the embedding of node 'n-" in err
        assert not (tmp_path / "e.npy").exists()
        with refused():
            embeddings(load_model(run), load_graph(tmp_path / "bad"), layer)


@pytest.mark.parametrize("size", [1e30, 3e38])
def test_features_near_the_end_of_floating_point_work_or_are_explained(
    size: float, vrgcn, run: Path, tmp_path: Path
) -> None:
    graph = named(small_graph())
    save_graph(graph.with_features(graph.features.sign() * size), tmp_path / "large")
    code, _, err = vrgcn("predict", run, "--graph", tmp_path / "large", "--out", "p.csv")
    assert code == 0 or "not a finite number" in err, err
    for scaling in ("none", "standard", "row"):
        for model in ("gcn", "graphsage", "mlp"):
            arguments = ("--graph", "large", "--epochs", 1, "--scaling", scaling, "--model", model)
            code, _, err = vrgcn("train", *arguments, "--out", f"{scaling}-{model}")
            assert code == 0 or (code == 1 and err.startswith("vrgcn: error:")), err


def test_class_names_are_shown_as_they_are(vrgcn, tmp_path: Path) -> None:
    graph = small_graph(210, len(ODD_NAMES)).replace(names=Names(classes=ODD_NAMES))
    save_graph(graph, tmp_path / "graph")
    assert vrgcn("train", "--graph", "graph", "--epochs", 2, "--out", "[b]$x^$")[0] == 0
    code, out, err = vrgcn("evaluate", "[b]$x^$", "--out", "picture.svg")
    assert code == 0, err
    for name in ("[deleted]", "[/x]", "$x^$", "$10-$20", r"\x1b[2J", r"two\nlines", "<b>&"):
        assert f" {name} " in out, name
    code, _, err = vrgcn("report", "[b]$x^$")
    assert code == 0, err
    page = (tmp_path / "report.html").read_text()
    assert "<td>&lt;b&gt;&amp;</td>" in page
    assert "<td>$x^$</td>" in page
