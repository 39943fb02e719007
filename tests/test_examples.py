"""The examples run as they are written."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_planetoid_example_reaches_the_papers_accuracy(real_data, tmp_path):
    shutil.copytree(real_data / "planetoid" / "Cora" / "raw", tmp_path / "Cora" / "raw")
    script = ROOT / "examples" / "planetoid.py"
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    accuracy = float(re.search(r"test accuracy ([\d.]+)", done.stdout)[1])
    assert 0.78 < accuracy < 0.85
