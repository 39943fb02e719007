"""`vrgcn tune`, as a user runs it: searched, stopped, gone on with, reported."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import small_graph
from tests.tuning.conftest import one_look_at_the_schema  # noqa: F401
from vrgcn.baselines import RECIPES
from vrgcn.cli import main
from vrgcn.cli.tune import print_result
from vrgcn.data.store import save_graph
from vrgcn.tasks.metrics import METRICS
from vrgcn.training.trainer import Trainer
from vrgcn.tuning.leaderboard import Leaderboard
from vrgcn.tuning.study import Tried

pytest.importorskip("optuna")

FLAGS = ("--epochs", 3, "--batch-size", 32, "--hidden", 8, "--trials", 3)


def trials(folder: Path) -> list[tuple]:
    about = json.loads((folder / "leaderboard.json").read_text())
    return [(t["number"], t["state"], t["val"], t["values"], t["epochs"]) for t in about["trials"]]


STOPPED = (*FLAGS, "--no-baselines")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple]:
    """The trials of a search that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    save_graph(small_graph(), folder / "small")
    words = ("tune", folder / "small", *STOPPED, "--out", folder / "whole")
    main([str(word) for word in words])
    return trials(folder / "whole")


def test_a_search_leaves_runs_a_table_and_a_model(vrgcn, graph_folder, tmp_path):
    code, out, err = vrgcn("tune", graph_folder, *FLAGS, "--no-baselines")
    assert code == 0, err
    folder = tmp_path / "runs" / "small-tuned"
    assert "Best of 3 trials, accuracy" in out
    assert "3 trials: " in out
    first, best = trials(folder)[0], json.loads((folder / "best" / "result.json").read_text())
    assert best["val"] >= first[2]
    assert vrgcn("predict", "runs/small-tuned/best", "--out", "p.csv")[0] == 0
    code, _, err = vrgcn("evaluate", "runs/small-tuned")
    assert (code, "name one, such as runs/small-tuned/best" in err) == (1, True)
    code, out, err = vrgcn("report", "runs/small-tuned")
    assert code == 0, err
    assert "report of 4 runs" in out
    page = (tmp_path / "report.html").read_text()
    assert "trial-000" in page
    assert "trial-002" in page
    assert "no scores" not in out  # scores of trials are not requested
    repeated = ("--config", folder / "best" / "config.toml", "--out", "again")
    assert vrgcn("train", *repeated)[0] == 0
    again = json.loads((tmp_path / "again" / "result.json").read_text())
    assert (again["val"], again["test"]) == (best["val"], best["test"])


def test_baselines_come_first_and_the_average_predicts(vrgcn, graph_folder, tmp_path):
    code, out, err = vrgcn("tune", graph_folder, *FLAGS, "--out", "t")
    assert code == 0, err
    fitted = [out.index(f"\n{name}  ") for name in ("linear", "smoothed", "trees-2", "trees")]
    assert fitted == sorted(fitted)
    assert fitted[-1] < out.index("\ntrial   0  ")
    assert f"{len(RECIPES)} baselines; 3 trials: " in out
    assert "the average: vrgcn predict t/average --out predictions.csv" in out
    about = json.loads((tmp_path / "t" / "leaderboard.json").read_text())
    assert about["standings"][-1]["kind"] == "average"
    for run in ("t/best", "t/average", "t/baselines/trees-2"):
        files = [tmp_path / f"{Path(run).name}-{memory}.csv" for memory in ("ram", "disk")]
        for file, memory in zip(files, ("ram", "disk"), strict=True):
            code, _, err = vrgcn("predict", run, "--out", file, "--memory", memory)
            assert code == 0, err
        assert files[0].read_text() == files[1].read_text()
        code, out, err = vrgcn("evaluate", run)
        assert code == 0, err
        assert "test   accuracy" in out
    code, _, err = vrgcn("embed", "t/average", "--out", "e.npy")
    assert (code, "name a single model, such as the best of them: t/best" in err) == (1, True)
    code, _, err = vrgcn("diagnose", "t/average")
    assert (code, "t/average/config.toml is of an average of models" in err) == (1, True)
    runs = ("t/average", "t/baselines/trees", "t/trials/trial-000")
    code, out, err = vrgcn("report", *runs)
    assert (code, "report of 3 runs" in out, "no scores" in out) == (0, True, False), err
    code, out, err = vrgcn("report", "t/average", "--out", "alone.html")
    assert (code, "report of 1 run" in out) == (0, True), err
    page = (tmp_path / "alone.html").read_text()
    assert f"{json.loads((tmp_path / 't/average/result.json').read_text())['test']:.4f}" in page
    code, _, err = vrgcn("train", "--config", "t/baselines/trees/config.toml")
    assert (code, "is of a baseline, and not of a network" in err) == (1, True)
    code, _, err = vrgcn("evaluate", "t")
    assert (code, "name one, such as t/best" in err) == (1, True)
    (tmp_path / "t" / "baselines" / "mine.txt").write_text("mine")
    again = ("--out", "t", "--overwrite", "--no-baselines")
    assert vrgcn("tune", graph_folder, *FLAGS, *again)[0] == 0
    assert [path.name for path in (tmp_path / "t" / "baselines").iterdir()] == ["mine.txt"]


def test_in_the_end_the_best_is_compared_with_what_was_given(capsys):
    first = Tried(0, "complete", 0.8, {}, 3, 4.0)
    better = Tried(1, "complete", 0.9, {}, 5, 4.0)
    trained = SimpleNamespace(val=0.9123, metric=METRICS["accuracy"])

    def said(trials: list[Tried], best: Tried) -> str:
        found = SimpleNamespace(
            trials=trials,
            best=best,
            result=trained,
            standings=[SimpleNamespace(gain=0.0125)],
            average=object(),
        )
        print_result(found, Path("found"))
        return capsys.readouterr().out

    compared = "validation accuracy 0.9123; trial 0, with the settings that `vrgcn train` takes, "
    compared += "has 0.8000"
    assert f"{compared}\n" in said([first, better], better)
    cut = replace(first, reason="it had its share of the time")
    assert f"{compared}, after 3 epochs: it had its share" in said([cut, better], better)
    assert "takes, is the best single model" in said([first], first)
    gain = "the average is 0.0125 better than the best baseline on the validation nodes"
    assert gain in said([first], first)


def test_stopped_it_goes_on_and_finished_it_goes_on_for_more(
    vrgcn, graph_folder, tmp_path, monkeypatch, whole
):
    shown = Leaderboard.epoch

    def stop(self, number: int, epoch: int, *rest) -> None:
        shown(self, number, epoch, *rest)
        if (number, epoch) == (1, 1):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Leaderboard, "epoch", stop)
    code, out, err = vrgcn("tune", graph_folder, *STOPPED, "--out", "cut")
    monkeypatch.setattr(Leaderboard, "epoch", shown)
    assert code == 130, err
    assert "vrgcn tune --resume cut resumes it" in out
    code, _, err = vrgcn("tune", "--resume", "cut", "--epochs", 4)
    assert (code, "epochs was 3 and is 4" in err) == (1, True)
    code, out, err = vrgcn("tune", "--resume", "cut")
    assert code == 0, err
    assert trials(tmp_path / "cut") == whole
    code, out, _ = vrgcn("tune", "--resume", "cut")
    assert (code, "cut has finished already; with more --trials" in out) == (0, True)
    code, out, err = vrgcn("tune", "--resume", "cut", "--trials", 4)
    assert code == 0, err
    assert len(trials(tmp_path / "cut")) == 4
    assert (tmp_path / "cut" / "best" / "result.json").exists()


def test_a_folder_in_use_by_a_search_is_overwritten_only_if_asked_to(vrgcn, graph_folder, tmp_path):
    few = (*FLAGS[:-1], 1, "--no-baselines", "--search", "layers", "dropout", "--out", "s")
    assert vrgcn("tune", graph_folder, *few)[0] == 0
    (tmp_path / "s" / "notes.txt").write_text("mine")
    code, _, err = vrgcn("tune", graph_folder, *few)
    assert (code, "s exists already, and holds a run that has finished" in err) == (1, True)
    assert "vrgcn tune --resume s --time-limit MORE resumes it" in err
    assert vrgcn("tune", graph_folder, *few, "--overwrite", "--seed", 1)[0] == 0
    assert list(trials(tmp_path / "s")[0][3]) == ["layers", "dropout"]
    assert len(trials(tmp_path / "s")) == 1
    assert (tmp_path / "s" / "notes.txt").read_text() == "mine"


def test_what_is_wrong_is_told_by_its_flag(vrgcn, graph_folder, monkeypatch):
    code, _, err = vrgcn("tune", graph_folder, "--search", "depth")
    assert (code, "--search: 'depth' is none of model, layers" in err) == (2, True)
    code, _, err = vrgcn("tune", graph_folder, "--trials", 0)
    assert (code, "--trials must be at least 1" in err) == (2, True)
    monkeypatch.setitem(sys.modules, "optuna", None)
    code, _, err = vrgcn("tune", graph_folder, *FLAGS)
    assert (code, "pip install 'vrgcn[tune]'" in err) == (1, True)
    assert "Traceback" not in err


def test_a_search_does_not_go_on_with_another_graph_and_stays_as_it_is(
    vrgcn, graph_folder, tmp_path
):
    flags = ("--epochs", 1, "--batch-size", 32, "--hidden", 8, "--search", "dropout")
    flags += ("--no-baselines",)
    assert vrgcn("tune", "--graph", graph_folder, *flags, "--trials", 1, "--out", "t")[0] == 0
    kept = [tmp_path / "t" / name for name in ("config.toml", "best/result.json")]
    before = [file.read_text() for file in kept]
    save_graph(small_graph(seed=1), tmp_path / "other")
    code, _, err = vrgcn("tune", "--resume", "t", "--trials", 2, "--graph", "other")
    assert code == 1
    assert "t holds another search: " in err
    assert [file.read_text() for file in kept] == before
    graph_folder.rename(tmp_path / "moved")
    code, _, err = vrgcn("tune", "--resume", "t", "--trials", 2, "--graph", "moved")
    assert code == 0, err


def test_stopped_in_the_first_epoch_of_the_first_trial_it_goes_on(
    vrgcn, graph_folder, tmp_path, monkeypatch, whole
):
    step, done = Trainer._step, []

    def stop(self, batch) -> None:
        step(self, batch)
        done.append(batch)
        if len(done) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "_step", stop)
    code, out, err = vrgcn("tune", graph_folder, *STOPPED, "--out", "cut")
    assert code == 130, err
    assert "vrgcn tune --resume cut resumes it" in out
    assert (tmp_path / "cut" / "trials" / "trial-000" / "checkpoints" / "step-00000001").is_dir()
    code, _, err = vrgcn("tune", "--resume", "cut")
    assert code == 0, err
    assert trials(tmp_path / "cut") == whole


def test_stopped_when_a_trial_is_done_it_begins_no_other(
    vrgcn, graph_folder, tmp_path, monkeypatch, whole
):
    finish = Trainer.finish

    def stop(self, *given):
        result = finish(self, *given)
        os.kill(os.getpid(), signal.SIGINT)
        return result

    monkeypatch.setattr(Trainer, "finish", stop)
    code, out, err = vrgcn("tune", graph_folder, *STOPPED, "--out", "cut")
    monkeypatch.setattr(Trainer, "finish", finish)
    assert code == 130, err
    assert "vrgcn tune --resume cut resumes it" in out
    assert len(trials(tmp_path / "cut")) == 1
    assert vrgcn("tune", "--resume", "cut")[0] == 0
    assert trials(tmp_path / "cut") == whole


def test_stopped_while_a_trial_is_scored_it_goes_on_with_that_trial(
    vrgcn, graph_folder, tmp_path, monkeypatch, whole
):
    score = Trainer._score

    def stop(self, split):
        if split == "test":
            os.kill(os.getpid(), signal.SIGTERM)
        return score(self, split)

    monkeypatch.setattr(Trainer, "_score", stop)
    code, out, err = vrgcn("tune", graph_folder, *STOPPED, "--out", "cut")
    monkeypatch.setattr(Trainer, "_score", score)
    assert code == 143, err
    assert "vrgcn tune --resume cut resumes it" in out
    assert vrgcn("tune", "--resume", "cut")[0] == 0
    assert trials(tmp_path / "cut") == whole
