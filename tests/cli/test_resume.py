"""`vrgcn train` stopped, killed, resumed and overwritten, as a user would."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.waiting import LONG
from vrgcn.files.writing import DiskFullError, remove_folder
from vrgcn.runs import checkpointing, folder, record
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.folder import locked
from vrgcn.training.progress import EpochProgress
from vrgcn.training.trainer import Trainer

FLAGS = (
    *("--estimator", "cvd", "--batch-size", 8, "--epochs", 3),
    *("--hidden", 8, "--checkpoint-every", 1),
)


def train(vrgcn, graph_folder: Path, *flags: object) -> tuple[int, str, str]:
    return vrgcn("train", "--graph", graph_folder, *FLAGS, *flags)


def outcome(run: Path) -> tuple[list[dict], bytes, dict]:
    """Return the outcome of a run without seconds: metrics, model file, result."""
    points = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    result = json.loads((run / "result.json").read_text())
    for line in (*points, result):
        for key in [key for key in line if key.endswith("seconds")]:
            del line[key]
    return points, (run / "model.safetensors").read_bytes(), result


@pytest.fixture
def stopped(vrgcn, graph_folder, tmp_path, monkeypatch) -> Path:
    """A run that got SIGINT in its second epoch."""
    shown, seen = EpochProgress.step, []

    def step(self, done: int, total: int) -> None:
        shown(self, done, total)
        seen.append(done)
        if len(seen) == 11:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(EpochProgress, "step", step)
    code, out, err = train(vrgcn, graph_folder, "--out", "cut")
    monkeypatch.setattr(EpochProgress, "step", shown)
    assert code == 130
    assert "stopped in epoch 2, after step 3 of 8" in out
    assert "vrgcn train --resume cut resumes it" in out
    assert "Traceback" not in out + err
    return tmp_path / "cut"


def test_a_run_that_was_stopped_ends_in_the_same_bits(vrgcn, graph_folder, tmp_path, stopped):
    assert not (stopped / "result.json").exists()
    train(vrgcn, graph_folder, "--out", "whole")
    code, out, err = vrgcn("train", "--resume", "cut")
    assert code == 0, err
    assert "resuming after epoch 1" in out
    assert outcome(stopped) == outcome(tmp_path / "whole")
    configs = [(tmp_path / name / "config.toml").read_text() for name in ("cut", "whole")]
    assert configs[0] == configs[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_last_evaluation_stops_the_run_and_keeps_it(
    number, vrgcn, graph_folder, tmp_path, monkeypatch
):
    plain = ("--smooth", "never")  # before the last evaluation nothing is smoothed
    train(vrgcn, graph_folder, *plain, "--out", "whole")
    score = Trainer._score

    def stop(self, split):
        if split == "test":
            os.kill(os.getpid(), number)
        return score(self, split)

    monkeypatch.setattr(Trainer, "_score", stop)
    code, out, err = train(vrgcn, graph_folder, *plain, "--out", "cut")
    monkeypatch.setattr(Trainer, "_score", score)
    assert code == 128 + number
    cut = tmp_path / "cut"
    assert out.endswith(
        "\nstopped while the trained model was scored; everything is kept in "
        "cut/checkpoints/step-00000024\nvrgcn train --resume cut resumes it\n"
    )
    assert "Traceback" not in out + err
    assert not (cut / "result.json").exists()
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("cut", "whole")]
    assert models[0] == models[1]
    code, out, err = vrgcn("train", "--resume", "cut")
    assert code == 0, err
    assert "resuming after epoch 3" in out
    assert outcome(cut) == outcome(tmp_path / "whole")


def test_predicting_by_a_run_that_was_stopped_says_so(vrgcn, stopped):
    code, out, _ = vrgcn("predict", "cut", "--out", "p.csv")
    assert code == 0
    assert "has not finished (1 of 3 epochs): this is its best model so far" in out


def test_a_run_may_be_made_longer_even_after_it_has_finished(vrgcn, graph_folder, tmp_path):
    train(vrgcn, graph_folder, "--out", "short")
    before = outcome(tmp_path / "short")
    (tmp_path / "short" / ".lock").write_text("1")  # as of a process killed at its very end
    code, out, _ = vrgcn("train", "--resume", "short")
    assert code == 0
    assert "short has finished already; with more --epochs or a longer --time-limit it" in out
    assert outcome(tmp_path / "short") == before
    assert not (tmp_path / "short" / ".lock").exists()
    train(vrgcn, graph_folder, "--out", "long", "--epochs", 5)
    assert vrgcn("train", "--resume", "short", "--epochs", 5)[0] == 0
    assert outcome(tmp_path / "short") == outcome(tmp_path / "long")
    assert tomllib.loads((tmp_path / "short" / "config.toml").read_text())["epochs"] == 5


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--learning-rate", 0.5), "learning_rate was 0.01 and is 0.5"),
        (("--estimator", "cv"), "estimator was 'cvd' and is 'cv'"),
        (("--history-cap", 2), "history_cap was None and is 2"),
        (("--hidden", 16), "hidden was 8 and is 16"),
        (("--out", "elsewhere"), "no --out, --name, --overwrite"),
        (("--config", "c.toml"), "leave --config out"),
    ],
)
def test_a_run_does_not_go_on_as_another(vrgcn, stopped, tmp_path, flags, message):
    before = (stopped / "config.toml").read_text()
    (tmp_path / "c.toml").write_text("")
    code, out, err = vrgcn("train", "--resume", "cut", *flags)
    assert code == 1
    assert message in err
    assert "Traceback" not in out + err
    assert (stopped / "config.toml").read_text() == before
    assert vrgcn("train", "--resume", "cut")[0] == 0


def test_a_run_does_not_go_on_with_another_graph(vrgcn, stopped, graph_folder, tmp_path):
    from tests.cli.conftest import small_graph
    from vrgcn.data.store import save_graph

    save_graph(small_graph(seed=1), tmp_path / "other")
    code, _, err = vrgcn("train", "--resume", "cut", "--graph", "other")
    assert code == 1
    assert "the graph's features are not the same" in err
    (graph_folder).rename(tmp_path / "moved")  # but with the same one from elsewhere
    assert vrgcn("train", "--resume", "cut", "--graph", "moved")[0] == 0


def test_what_cannot_be_resumed_is_explained(vrgcn, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = vrgcn("train", "--resume", "nowhere")
    assert (code, "there is no run folder nowhere" in err) == (1, True)
    code, _, err = vrgcn("train", "--resume", "empty")
    assert (code, "empty is not a run: it has no config.toml" in err) == (1, True)


def test_the_same_command_again_names_both_ways_on(vrgcn, graph_folder, stopped, tmp_path):
    code, _, err = train(vrgcn, graph_folder, "--out", "cut")
    assert code == 1
    assert "holds a run that has not finished (1 of 3 epochs)" in err
    assert "vrgcn train --resume cut resumes it" in err
    assert "--overwrite starts over" in err
    (stopped / "notes.txt").write_text("mine")
    assert train(vrgcn, graph_folder, "--out", "cut", "--overwrite", "--seed", 5)[0] == 0
    assert len(outcome(stopped)[0]) == 3
    assert (stopped / "notes.txt").read_text() == "mine"
    code, _, err = train(vrgcn, graph_folder, "--out", "cut")
    assert (code, "holds a run that has finished" in err) == (1, True)


def test_a_run_that_was_killed_as_it_began_is_no_obstacle(vrgcn, graph_folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").write_text("1")
    (tmp_path / "run" / ".config.toml.0123abcd.partial").write_text("epo")
    code, _, err = train(vrgcn, graph_folder, "--out", "run")
    assert code == 0, err
    assert not list((tmp_path / "run").glob(".*"))


def test_overwriting_removes_runs_that_were_killed_before_their_first_epoch(
    vrgcn, graph_folder, tmp_path
):
    flags = ("--seeds", 2, "--out", "run")
    assert train(vrgcn, graph_folder, *flags, "--seed", 7)[0] == 0
    for name in ("model.safetensors", "metrics.jsonl", "result.json"):
        (tmp_path / "run" / "seed-8" / name).unlink()
    (tmp_path / "run" / "seed-9").mkdir()
    (tmp_path / "run" / "seed-9" / ".lock").touch()
    (tmp_path / "run" / "seed-notes").mkdir()
    (tmp_path / "run" / "seed-notes" / "mine.txt").touch()
    code, _, err = train(vrgcn, graph_folder, *flags, "--seed", 7, "--overwrite", "--hidden", 4)
    assert code == 0, err
    assert len(outcome(tmp_path / "run" / "seed-8")[0]) == 3
    assert not (tmp_path / "run" / "seed-9").exists()
    assert (tmp_path / "run" / "seed-notes" / "mine.txt").exists()


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("flags", [(), ("--seeds", 2)])
def test_overwriting_that_was_killed_half_way_may_be_repeated(
    vrgcn, graph_folder, tmp_path, monkeypatch, flags
):
    assert train(vrgcn, graph_folder, *flags, "--out", "run", "--seed", 7)[0] == 0
    removed = []

    def die(folder: Path) -> None:
        removed.append(folder)
        if len(removed) == (2 if flags else 1):
            raise KilledError
        remove_folder(folder)

    with monkeypatch.context() as patch:
        patch.setattr(folder, "remove_folder", die)
        with pytest.raises(KilledError):
            train(vrgcn, graph_folder, *flags, "--out", "run", "--overwrite")
    code, _, err = train(vrgcn, graph_folder, *flags, "--out", "run")
    assert (code, "--overwrite starts over" in err) == (1, True)
    code, _, err = train(vrgcn, graph_folder, *flags, "--out", "run", "--overwrite")
    assert code == 0, err
    assert train(vrgcn, graph_folder, *flags, "--out", "fresh")[0] == 0
    for name in ("seed-0", "seed-1") if flags else ("",):
        assert outcome(tmp_path / "run" / name) == outcome(tmp_path / "fresh" / name)


def test_overwriting_leaves_folders_that_are_no_runs_alone(vrgcn, graph_folder, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("kept")
    code, _, err = train(vrgcn, graph_folder, "--out", "full", "--overwrite")
    assert code == 1
    assert "--out: full exists already" in err
    assert os.listdir(tmp_path / "full") == ["precious.txt"]


def test_a_run_that_fails_leaves_what_a_person_put_into_its_folder(vrgcn, graph_folder, stopped):
    (stopped / "notes.txt").write_text("mine")
    flags = ("--out", "cut", "--overwrite", "--learning-rate", "1e30", "--no-layer-norm")
    assert train(vrgcn, graph_folder, *flags)[0] == 1
    assert os.listdir(stopped) == ["notes.txt"]


def test_a_run_in_use_is_refused(vrgcn, graph_folder, stopped):
    with locked(stopped):
        for flags in (
            ("--resume", "cut"),
            ("--graph", graph_folder, "--out", "cut", "--overwrite"),
        ):
            code, _, err = vrgcn("train", *flags)
            assert code == 1
            assert "cut is in use by another process" in err
    assert vrgcn("train", "--resume", "cut")[0] == 0


def test_a_graph_that_is_changed_during_the_run_is_noticed(
    vrgcn, graph_folder, tmp_path, monkeypatch
):
    shown = EpochProgress.epoch

    def change(self, point) -> None:
        shown(self, point)
        if point.epoch == 2:
            with open(graph_folder / "features_0.npy", "r+b") as file:
                file.seek(-4, os.SEEK_END)
                file.write(b"\0\0\0\0")

    monkeypatch.setattr(EpochProgress, "epoch", change)
    code, out, err = train(vrgcn, graph_folder, "--out", "cut")
    assert code == 1
    assert "features_0.npy was changed while training read it" in err
    assert "Traceback" not in out + err
    # The checkpoint of the first epoch is from before the change; none came after it.
    assert [p.name for p in checkpoints_in(tmp_path / "cut" / "checkpoints")] == ["step-00000008"]


def test_a_graph_that_disappears_during_the_run_is_told_and_the_run_ends(
    vrgcn, graph_folder, tmp_path, monkeypatch
):
    train(vrgcn, graph_folder, "--out", "whole")
    shown = EpochProgress.epoch

    def remove(self, point) -> None:
        shown(self, point)
        if point.epoch == 1:
            graph_folder.rename(tmp_path / "gone")

    monkeypatch.setattr(EpochProgress, "epoch", remove)
    code, out, _ = train(vrgcn, graph_folder, "--out", "run")
    assert code == 0
    assert out.count("has disappeared since training began") == 1
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def full(*_: object) -> None:
    error = DiskFullError("model.safetensors: the disk at / is full")
    error.errno = errno.ENOSPC
    raise error


def test_a_full_disk_for_a_while_costs_nothing_but_notes(
    vrgcn, graph_folder, tmp_path, monkeypatch
):
    train(vrgcn, graph_folder, "--out", "whole")

    shown = EpochProgress.epoch
    monkeypatch.setattr(record, "save_model", full)
    monkeypatch.setattr(checkpointing, "save_checkpoint", full)
    monkeypatch.setattr(record, "write_text", full)

    def room(self, point) -> None:
        shown(self, point)
        if point.epoch == 2:
            monkeypatch.undo()
            monkeypatch.chdir(tmp_path)

    monkeypatch.setattr(EpochProgress, "epoch", room)
    code, out, err = train(vrgcn, graph_folder, "--out", "run")
    assert code == 0, err
    assert out.count("is full; training continues, and writes it again later") == 3
    assert "no checkpoint at step 8" in out
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_a_full_disk_stops_the_run_if_asked_to(vrgcn, graph_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "save_checkpoint", full)
    code, out, err = train(vrgcn, graph_folder, "--out", "run", "--on-full-disk", "stop")
    assert code == 1
    assert "the disk at / is full" in err
    assert "Traceback" not in out + err
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_a_loss_of_nan_is_rolled_back_if_asked_to(vrgcn, graph_folder, tmp_path):
    wild = ("--learning-rate", "1e19", "--no-layer-norm", "--optimizer", "sgd", "--out", "run")
    code, out, err = train(vrgcn, graph_folder, *wild, "--on-nan", "rollback")
    assert code == 1
    assert out.count("back to step-00000000 with half the rate") == 3
    assert "rolled back 3 times already" in err
    assert "Traceback" not in out + err


def command(*arguments: object) -> list[str]:
    code = "from vrgcn.cli import main; main()"
    return [sys.executable, "-c", code, *map(str, arguments)]


def test_output_that_nobody_reads_is_no_reason_to_stop(graph_folder, tmp_path):
    shell = '"$@" | head -n 1; exit "${PIPESTATUS[0]}"'
    arguments = command("train", "--graph", graph_folder, *FLAGS, "--epochs", 20, "--out", "run")
    done = subprocess.run(
        ["bash", "-c", shell, "bash", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
        timeout=LONG,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert len(outcome(tmp_path / "run")[0]) == 20


WITHOUT_TORCH = """
import sys
from vrgcn.cli import main
try:
    main(sys.argv[1:])
finally:
    print("torch was loaded:", "torch" in sys.modules)
"""


def test_another_run_is_refused_before_torch_is_loaded(stopped, tmp_path):
    flags = ("--learning-rate", "0.5", "--hidden", "16")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "train", "--resume", "cut", *flags],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 1
    assert "hidden was 8 and is 16; learning_rate was 0.01 and is 0.5" in done.stderr
    assert done.stdout == "torch was loaded: False\n"
