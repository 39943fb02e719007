"""`--out` that is a link: followed where it leads somewhere, and never in the way of the cause."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

FLAGS = ("--batch-size", 8, "--epochs", 2, "--hidden", 8)
WILD = ("--learning-rate", "1e30", "--no-layer-norm")  # ends in a loss of NaN


@pytest.fixture
def link(tmp_path: Path) -> Path:
    (tmp_path / "big").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "big")
    return tmp_path / "link"


def test_a_run_goes_where_the_link_leads(vrgcn, graph_folder, link: Path) -> None:
    code, _, err = vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", link)
    assert code == 0, err
    assert link.is_symlink()
    assert (link.parent / "big" / "model.safetensors").is_file()
    assert vrgcn("predict", link, "--out", "p.csv")[0] == 0


def test_a_run_that_fails_says_why_and_leaves_the_link(vrgcn, graph_folder, link: Path) -> None:
    code, out, err = vrgcn("train", "--graph", graph_folder, *FLAGS, *WILD, "--out", link)
    assert code == 1
    assert "became" in err
    assert "at epoch 1, step" in err
    assert "Traceback" not in out + err
    assert os.listdir(link.parent / "big") == []
    assert link.is_symlink()


def test_checkpoints_that_are_a_link_are_in_nobody_s_way(
    vrgcn, graph_folder, link: Path, tmp_path: Path
) -> None:
    assert vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "run")[0] == 0
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    (tmp_path / "run" / "checkpoints").symlink_to(link)
    (link / "mine.txt").write_text("kept")
    flags = (*FLAGS, *WILD, "--out", "run", "--overwrite")
    code, _, err = vrgcn("train", "--graph", graph_folder, *flags)
    assert code == 1
    assert "at epoch 1, step" in err
    assert (link / "mine.txt").read_text() == "kept"


@pytest.mark.parametrize("below", ["", "deeper/run"])
def test_a_link_to_nowhere_is_named_before_anything_is_done(
    below: str, vrgcn, graph_folder, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    code, out, err = vrgcn(
        "train", "--graph", graph_folder, *FLAGS, "--out", tmp_path / "link" / below
    )
    assert code == 1
    assert f"--out: {tmp_path / 'link'} is a link to {tmp_path / 'nowhere'}" in err
    assert "which is not there; make that folder" in err
    assert out == ""


def test_a_link_to_a_file_is_named(vrgcn, graph_folder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    code, _, err = vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", tmp_path / "link")
    assert code == 1
    assert "link is a file; name a folder" in err
    assert (tmp_path / "file").read_text() == "mine"
