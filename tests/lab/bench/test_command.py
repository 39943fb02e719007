"""`vrgcn bench --quick`, as a user runs it."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from lab.bench import startup
from lab.bench.bench import COMPARED
from lab.bench.run import SECTIONS
from vrgcn.cli.bench import SectionName


def test_the_flag_names_the_sections_that_there_are():
    assert get_args(SectionName) == tuple(SECTIONS)


@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler'")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_quick_run_prints_a_table_a_section_and_writes_the_numbers(vrgcn, tmp_path, monkeypatch):
    few = startup.MISTAKES[:2]  # each is a new process
    monkeypatch.setattr(startup, "MISTAKES", few)
    code, out, _ = vrgcn("bench", "--quick", "--threads", 1)
    assert code == 0
    assert "\x1b" not in out
    found = json.loads((tmp_path / "results" / "bench.json").read_text())
    assert list(found["sections"]) == list(SECTIONS)
    for name in (*SECTIONS, "limits"):
        assert any(line.startswith(name) for line in out.splitlines())
    assert found["machine"]["threads"] == 1
    assert found["about"]["dataset"] == "quick"

    sections = found["sections"]
    assert list(sections["epoch"]["algorithms"]) == list(COMPARED)
    for name in COMPARED:
        times = sections["epoch"]["algorithms"][name]
        assert 0 < times["step_ms"]["low"] <= times["step_ms"]["median"]
        assert sections["accuracy"]["algorithms"][name]["seconds"] > 0
    assert sections["epoch"]["algorithms"]["MLP"]["ratio_to_mlp"]["median"] == 1
    assert sections["accuracy"]["algorithms"]["two-way"]["memory"]["peak"] > 0
    growth = sections["growth"]
    assert [point["nodes"] for point in growth["nodes"]["points"]] == [500, 1_000]
    assert growth["degree"]["points"][0]["two_hop"] < growth["degree"]["points"][1]["two_hop"]
    assert all("exponent" in growth[name] for name in ("hidden", "layers", "batch", "fanout"))
    assert sections["inference"]["bytes"] > 1_000 * 32 * 4
    assert 0 <= sections["histories"]["accuracy"]["float16"]["p"] <= 1
    assert sections["startup"]["programs"]["import torch"]["ratio_to_torch"]["median"] == 1
    mistakes = sections["startup"]["mistakes"]
    assert list(mistakes["seconds"]) == list(few)
    assert mistakes["slowest"] == max(mistakes["seconds"].values(), key=lambda s: s["median"])
    assert {limit["met"] for limit in found["limits"]} <= {True, False, None}
    assert sum(limit["met"] is not None for limit in found["limits"]) >= 10


def test_with_check_a_missed_limit_is_exit_code_1(vrgcn, monkeypatch):
    from lab.bench import epoch

    measured = epoch.ratio
    flags = ("bench", "--quick", "--threads", 1, "--sections", "epoch", "--out", "b.json")
    monkeypatch.setattr(epoch, "ratio", lambda a, b: measured(a, a))
    assert vrgcn(*flags, "--check")[0] == 0
    monkeypatch.setattr(epoch, "ratio", lambda a, b: measured(a, a).times(3))
    assert vrgcn(*flags)[0] == 0
    code, out, _ = vrgcn(*flags, "--check")
    assert code == 1
    assert "not measured" in out
    assert "written to b.json" in out


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (("--out", "numbers.txt"), 1, "--out: numbers.txt must end in .json"),
        (("--dataset", "nothing"), 1, "there is no dataset 'nothing'"),
        (("--threads", "0"), 2, "threads must be at least 1"),
        (("--seeds", "1"), 2, "seeds must be at least 2"),
        (("--target", "96"), 2, "target is a score"),
        (("--sections", "speed"), 2, "--sections"),
    ],
)
def test_bad_flags_are_named_before_anything_is_measured(vrgcn, flags, code, message):
    exit_code, out, err = vrgcn("bench", *flags)
    assert exit_code == code
    assert message in err
    assert "Traceback" not in out + err
