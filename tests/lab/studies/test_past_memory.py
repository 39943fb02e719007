"""lab/studies/past_memory.py and what it is made of, on a small graph."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab.studies.past_memory import shares

ROOT = Path(__file__).parents[3]


def test_a_command_under_the_limit_tells_where_its_time_went(tmp_path):
    options = "--nodes 3000 --degree 6 --features 8 --share 2000 --fits 0 --hidden 4"
    program = [sys.executable, "-m", "lab.studies.past_memory", tmp_path, *options.split()]
    program += ["--batch-size", "500", "--cases", "random/blocks", "--epochs", "2"]
    shown = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT)
    assert shown.returncode == 0, shown.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    trained, predicted = (result["commands"][f"{x} random/blocks"] for x in ("train", "predict"))
    assert 2 * 2900 < trained["nodes"] <= 2 * 3000  # some have no neighbour, and no label
    assert 2 * 6 <= trained["steps"] <= 2 * 7
    phases = trained["phases"]
    assert {"plan", "gather", "compute"} <= phases["train"].keys()
    assert {"scale", "prepare", "evaluate", "other"} <= phases.keys()
    whole = sum(part["wall"] for phase in phases.values() for part in phase.values())
    assert whole == pytest.approx(trained["seconds"], rel=0.02)
    assert predicted["phases"]["predict"]["gather"]["cpu"] > 0
    assert predicted["test"] == pytest.approx(trained["result"]["test"], abs=1e-9)
    assert trained["limit"]["bytes"] / 2000 == pytest.approx(
        result["files"]["random"] + result["derived"]["random"], rel=0.05
    )
    assert "train random/blocks | " in shown.stdout


def test_shares_of_the_time_add_up_to_all_of_it():
    part = {"wall": 5.0, "stopped": 1.0, "cpu": 1.0, "waited": 2.5, "queued": 0.5}
    told = shares({"plan": part, "gather": part, "compute": part | {"wall": 9.0, "cpu": 5.0}})
    assert told == {
        "plan": 1 / 16,
        "gather": 1 / 16,
        "compute": 5 / 16,
        "disk": 7.5 / 16,
        "others": 1.5 / 16,
    }
