"""lab/studies/past_memory.py and what it is made of, on a small graph."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from mmap import PAGESIZE
from pathlib import Path

import pytest

from lab.studies.past_memory import disk_speed, shares

ROOT = Path(__file__).parents[3]


def test_a_command_under_the_limit_tells_where_its_time_went(tmp_path):
    options = "--nodes 3000 --degree 6 --features 8 --share 2000 --fits 0 --hidden 4"
    program = [sys.executable, "-m", "lab.studies.past_memory", tmp_path, *options.split()]
    program += ["--batch-size", "500", "--cases", "random/blocks", "--epochs", "2"]
    known = {"commands": {}, "disk": {}}  # it would be measured for four seconds
    (tmp_path / "result.json").write_text(json.dumps(known))
    start = time.perf_counter()
    shown = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT)
    around = time.perf_counter() - start
    assert shown.returncode == 0, shown.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    trained, predicted = (result["commands"][f"{x} random/blocks"] for x in ("train", "predict"))
    assert 2 * 2900 < trained["nodes"] <= 2 * 3000  # some have no neighbour, and no label
    assert 2 * 6 <= trained["steps"] <= 2 * 7
    phases = trained["phases"]
    assert {"plan", "gather", "compute"} <= phases["train"].keys()
    assert {"scale", "prepare", "evaluate", "other"} <= phases.keys()
    # The stopwatch starts before the seconds are counted, and stops after them.
    whole = {name: wall(told["phases"]) for name, told in result["commands"].items()}
    assert all(whole[name] >= told["seconds"] for name, told in result["commands"].items())
    assert sum(whole.values()) <= around
    assert predicted["phases"]["predict"]["gather"]["cpu"] > 0
    assert predicted["test"] == pytest.approx(trained["result"]["test"], abs=1e-9)
    assert trained["limit"]["bytes"] / 2000 == pytest.approx(
        result["files"]["random"] + result["derived"]["random"], rel=0.05
    )
    assert "train random/blocks | " in shown.stdout


def wall(phases: dict) -> float:
    return sum(part["wall"] for phase in phases.values() for part in phase.values())


def test_the_speed_of_a_disk_is_that_of_its_reads(tmp_path):
    (tmp_path / "file").write_bytes(bytes(16 << 20))
    speed = disk_speed(tmp_path / "file", 0.0)
    page = speed["milliseconds_of_a_random_page"]
    assert speed["random_megabytes_per_second"] == pytest.approx(PAGESIZE / 1e3 / page)
    assert speed["sequential_megabytes_per_second"] > 0


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
