"""`record`: the code of a checkout is recorded, and a change of it is found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.golden.compare import compare
from lab.golden.record import record
from tests.messages import refused

ROOT = Path(__file__).resolve().parents[3]


def test_the_code_of_another_checkout_is_recorded(tmp_path: Path) -> None:
    checkout, folder = tmp_path / "checkout", tmp_path / "recorded"
    shutil.copytree(ROOT / "vrgcn", checkout / "vrgcn")
    shutil.copy(ROOT / "pyproject.toml", checkout)
    (checkout / "lab").mkdir()  # its own, not the one that records
    (checkout / "lab" / "__init__.py").write_text("raise ImportError", encoding="utf-8")
    config = checkout / "vrgcn" / "training" / "config.py"
    source = config.read_text(encoding="utf-8")
    default, other = (f"epochs: int = declared({epochs}, " for epochs in (30, 31))
    assert source.count(default) == 1
    config.write_text(source.replace(default, other), encoding="utf-8")

    command = ["record", str(folder), "--code", str(checkout), "--sections", "names"]
    done = subprocess.run(
        [sys.executable, "-m", "lab.golden", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    recorded = (folder / "names" / "vrgcn.TrainConfig.txt").read_text(encoding="utf-8")
    assert "  field epochs: int = 31\n" in recorded
    assert compare(folder, folder, ("names",), 0) == 0


def test_a_folder_without_the_package_is_refused(tmp_path: Path) -> None:
    with refused(ValueError):
        record(tmp_path / "out", tmp_path, ("names",))
    assert not (tmp_path / "out").exists()


def test_a_recording_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        record(tmp_path, None, ("names",))
