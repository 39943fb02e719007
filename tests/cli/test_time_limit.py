"""`vrgcn train --time-limit`, as a user runs it."""

from __future__ import annotations

import json

from tests.cli.test_resume import FLAGS, outcome


def test_a_run_stops_in_time_says_so_and_goes_on_with_more(
    vrgcn, graph_folder, tmp_path, by_hand, monkeypatch
):
    given = ("--graph", graph_folder, *FLAGS, "--epochs", 6)
    code, out, err = vrgcn("train", *given, "--time-limit", "0.9s", "--out", "run")
    assert code == 0, err
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["stopped"] == "time"
    done = len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert done == 2
    assert "the time limit of 0.9s ended the training in epoch 2 of 6" in out
    assert (tmp_path / "run" / "model.safetensors").exists()
    code, out, _ = vrgcn("train", "--resume", "run")
    assert (code, "has finished already" in out) == (0, True)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    code, out, err = vrgcn("train", "--resume", "run", "--time-limit", "10m")
    assert code == 0, err
    assert "time limit" not in out
    assert vrgcn("train", *given, "--out", "whole")[0] == 0
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_a_time_that_is_none_names_the_flag(vrgcn, graph_folder):
    code, _, err = vrgcn("train", "--graph", graph_folder, "--time-limit", "10")
    assert code == 2
    assert "--time-limit '10' is no time, such as 90s, 10m or 2h" in err
