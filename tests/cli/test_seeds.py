"""`vrgcn train --seeds`: several runs in one folder, one table, killed and gone on with."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from statistics import fmean, stdev

import pytest

from tests.cli.test_resume import outcome
from vrgcn.runs.job import Job
from vrgcn.runs.record import Record
from vrgcn.training.progress import EpochProgress
from vrgcn.training.trainer import Trainer

FLAGS = (
    *("--batch-size", 16, "--epochs", 3, "--hidden", 8, "--smooth", "never", "--no-learned-rows"),
    *("--seeds", 3, "--seed", 4),
)


def results(folder: Path) -> list[dict]:
    return [json.loads((folder / f"seed-{n}" / "result.json").read_text()) for n in (4, 5, 6)]


def test_seeds_are_runs_in_one_folder_with_one_table(vrgcn, graph_folder, tmp_path):
    code, out, err = vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "many")
    assert code == 0, err
    scores = results(tmp_path / "many")
    tests = [score["test"] for score in scores]
    assert f"{fmean(tests):.4f} ± {stdev(tests):.4f}" in out
    assert "3 seeds, mean ± standard deviation" in out
    single = ("--seed", 5, "--out", "one")
    flags = (*FLAGS[:-4], *single)
    assert vrgcn("train", "--graph", graph_folder, *flags)[0] == 0
    assert outcome(tmp_path / "one") == outcome(tmp_path / "many" / "seed-5")
    assert len({score["val"] for score in scores}) + len({s["test"] for s in scores}) > 2


def test_stopped_it_goes_on_where_it_was_to_the_same_bits(
    vrgcn, graph_folder, tmp_path, monkeypatch
):
    vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "whole")
    shown, seen = EpochProgress.step, []

    def step(self, done: int, total: int) -> None:
        shown(self, done, total)
        seen.append(done)
        if len(seen) == 4 * 4 + 2:  # in the second epoch of the second run
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(EpochProgress, "step", step)
    code, out, _ = vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "cut")
    monkeypatch.setattr(EpochProgress, "step", shown)
    assert code == 130
    assert "vrgcn train --resume cut resumes it" in out
    assert sorted(p.name for p in (tmp_path / "cut").glob("seed-*")) == ["seed-4", "seed-5"]
    code, _, err = vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "cut")
    assert (code, "has not finished (1 of 3 runs)" in err) == (1, True)
    first = (tmp_path / "cut" / "seed-4" / "result.json").stat().st_mtime_ns
    code, out, err = vrgcn("train", "--resume", "cut")
    assert code == 0, err
    assert (tmp_path / "cut" / "seed-4" / "result.json").stat().st_mtime_ns == first
    for seed in (4, 5, 6):
        ends = [outcome(tmp_path / name / f"seed-{seed}") for name in ("cut", "whole")]
        assert ends[0] == ends[1]
    code, out, _ = vrgcn("train", "--resume", "cut")
    assert (code, "cut has finished already" in out) == (0, True)
    code, out, _ = vrgcn("train", "--resume", "cut", "--seeds", 4)
    assert code == 0
    assert (tmp_path / "cut" / "seed-7" / "result.json").is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seed", [4, 6])
def test_stopped_while_the_test_nodes_are_scored_that_seed_goes_on_and_no_other_begins(
    seed: int, number: int, vrgcn, graph_folder, tmp_path, monkeypatch
):
    vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "whole")
    score = Trainer._score

    def stop(self, split):
        if split == "test" and self.config.seed == seed:
            os.kill(os.getpid(), number)
        return score(self, split)

    monkeypatch.setattr(Trainer, "_score", stop)
    code, out, _ = vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "cut")
    monkeypatch.setattr(Trainer, "_score", score)
    assert code == 128 + number
    assert "stopped while the trained model was scored; everything is kept in" in out
    assert out.endswith("vrgcn train --resume cut resumes it\n")
    begun = [f"seed-{n}" for n in range(4, seed + 1)]
    assert sorted(p.name for p in (tmp_path / "cut").glob("seed-*")) == begun
    done = [p.parent.name for p in (tmp_path / "cut").glob("seed-*/result.json")]
    assert sorted(done) == begun[:-1]
    code, _, err = vrgcn("train", "--resume", "cut")
    assert code == 0, err
    for each in (4, 5, 6):
        ends = [outcome(tmp_path / name / f"seed-{each}") for name in ("cut", "whole")]
        assert ends[0] == ends[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_while_a_result_is_written_it_begins_no_other_seed(
    number: int, vrgcn, graph_folder, tmp_path, monkeypatch
):
    vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "whole")
    finish = Record.finish

    def stop(self, result, saved):
        os.kill(os.getpid(), number)
        finish(self, result, saved)

    monkeypatch.setattr(Record, "finish", stop)
    code, out, _ = vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "cut")
    monkeypatch.setattr(Record, "finish", finish)
    assert code == 128 + number
    assert "stopped before seed 5\nvrgcn train --resume cut resumes it" in out
    assert sorted(p.name for p in (tmp_path / "cut").glob("seed-*")) == ["seed-4"]
    code, _, err = vrgcn("train", "--resume", "cut")
    assert code == 0, err
    for seed in (4, 5, 6):
        ends = [outcome(tmp_path / name / f"seed-{seed}") for name in ("cut", "whole")]
        assert ends[0] == ends[1]


def test_the_report_shows_them_and_other_commands_name_one(vrgcn, graph_folder, tmp_path):
    vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "many")
    code, out, err = vrgcn("report", "many", "--no-scores")
    assert code == 0, err
    assert "report of 3 runs" in out
    page = (tmp_path / "report.html").read_text()
    vals = [score["val"] for score in results(tmp_path / "many")]
    assert "many: 3 seeds" in page
    assert re.search(rf"{fmean(vals):.4f} ± {stdev(vals):.4f}", page)
    code, _, err = vrgcn("predict", "many", "--out", "p.csv")
    assert code == 1
    assert "many holds 3 runs: name one, such as many/seed-4" in err
    assert vrgcn("predict", "many/seed-4", "--out", "p.csv")[0] == 0


@pytest.mark.parametrize(("count", "code"), [(1, 2), (0, 2)])
def test_one_seed_has_no_deviation(vrgcn, graph_folder, count, code):
    found, _, err = vrgcn("train", "--graph", graph_folder, "--seeds", count)
    assert found == code
    assert "--seeds must be at least 2" in err


def test_stopped_in_the_first_epoch_of_the_first_it_keeps_the_checkpoint(
    vrgcn, graph_folder, tmp_path, monkeypatch
):
    given = ("train", "--graph", graph_folder, *FLAGS)
    shown = EpochProgress.step

    def step(self, done: int, total: int) -> None:
        shown(self, done, total)
        if done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(EpochProgress, "step", step)
    code, out, _ = vrgcn(*given, "--out", "cut")
    monkeypatch.setattr(EpochProgress, "step", shown)
    assert code == 130
    kept = tmp_path / "cut" / "seed-4" / "checkpoints" / "step-00000002"
    assert "stopped in epoch 1, after step 2 of 4; everything is kept in" in out
    assert "vrgcn train --resume cut resumes it" in out
    assert kept.is_dir()
    code, out, err = vrgcn("train", "--resume", "cut")
    assert code == 0, err
    assert "resuming after epoch 0" in out
    assert vrgcn(*given, "--out", "whole")[0] == 0
    ends = [outcome(tmp_path / name / "seed-4") for name in ("cut", "whole")]
    assert ends[0] == ends[1]


def test_runs_that_were_to_be_made_longer_are_not_taken_for_finished(
    vrgcn, graph_folder, tmp_path, monkeypatch
):
    """Stopped after the first of them was, and before the second was begun again."""
    vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", "many")
    run, begun = Job.run, []

    def stop(job: Job, folder: Path, *given, **options):
        begun.append(folder)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return run(job, folder, *given, **options)

    monkeypatch.setattr(Job, "run", stop)
    code, out, _ = vrgcn("train", "--resume", "many", "--epochs", 5)
    monkeypatch.setattr(Job, "run", run)
    assert (code, "vrgcn train --resume many resumes it" in out) == (130, True)
    code, out, err = vrgcn("train", "--resume", "many")
    assert code == 0, err
    assert out.count("has finished already") == 1  # the first
    for seed in (4, 5, 6):
        lines = (tmp_path / "many" / f"seed-{seed}" / "metrics.jsonl").read_text().splitlines()
        assert len(lines) == 5
    assert "many has finished already" in vrgcn("train", "--resume", "many")[1]
