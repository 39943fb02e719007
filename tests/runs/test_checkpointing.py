"""`fit` with checkpoints: stopped anywhere, it goes on to the bits of a run without a break."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.messages import refused
from tests.training.test_state import BATCH, EPOCHS, SETTINGS, graph
from vrgcn import Graph, GraphSAGE, StopTraining, TrainConfig, TrainResult, fit
from vrgcn.files.writing import DiskFullError
from vrgcn.runs import checkpointing
from vrgcn.runs.checkpoint import (
    HISTORIES,
    checkpoint_name,
    checkpoints_in,
    load_checkpoint,
)
from vrgcn.runs.folder import LOCK, LockedError, locked
from vrgcn.runs.interrupts import Interrupted
from vrgcn.training.clock import Clock
from vrgcn.training.divergence import DivergedError
from vrgcn.training.state import Epoch
from vrgcn.training.trainer import Trainer

EVERY_STEP = "0.0000001m"
STEPS = 4  # minibatches of an epoch


def model(layers: int = 2, seed: int = 7, **given: object) -> nn.Module:
    torch.manual_seed(seed)
    return GraphSAGE(5, 8, 3, **({"dropout": 0.3, "layers": layers} | given))


def train(folder: Path | None = None, *, network=None, on=None, data=None, **given) -> TrainResult:
    """on: callbacks; given: settings, and arguments of `fit` where it has them."""
    arguments = {k: given.pop(k) for k in ("resume", "checkpoint_every") if k in given}
    shape = {name: given.pop(name) for name in ("layers", "norm") if name in given}
    settings = {"epochs": EPOCHS, "batch_size": BATCH, "diagnostics": 0, "seed": 4}
    settings |= {"estimator": "cvd", **given}
    where = {} if folder is None or "resume" in arguments else {"checkpoints": folder}
    return fit(
        network or model(**shape),
        data or graph(),
        TrainConfig(**settings),
        **where,
        **arguments,
        **(on or {}),
    )


class CrashError(Exception):
    pass


def crash_after(steps: int) -> dict:
    """A callback that ends a run at a step, as a fault of any kind would."""
    done = [0]

    def step(*_: int) -> None:
        done[0] += 1
        if done[0] == steps:
            raise CrashError

    return {"on_step": step}


def assert_same(one: TrainResult, other: TrainResult) -> None:
    assert one.weights.keys() == other.weights.keys()
    assert all(torch.equal(one.weights[k], other.weights[k]) for k in one.weights)
    without = [
        [{k: v for k, v in p.as_dict().items() if k != "seconds"} for p in result.curve]
        for result in (one, other)
    ]
    assert without[0] == without[1]
    assert (one.epoch, one.val, one.test) == (other.epoch, other.val, other.test)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_that_broke_off_ends_as_one_that_did_not(tmp_path: Path, name: str) -> None:
    settings = SETTINGS[name]
    wanted = train(**settings)
    breaks = [3] if name == "patience" else [3, 2]  # inside epochs
    for number, steps in enumerate(breaks):
        going_on = {"resume": tmp_path} if number else {}
        with pytest.raises(CrashError):
            train(
                tmp_path, checkpoint_every=EVERY_STEP, on=crash_after(steps), **going_on, **settings
            )
    # Weights and generators are from the checkpoint, whatever they were before.
    torch.manual_seed(99)
    other = model(settings.get("layers", 2), 123, norm=settings.get("norm", "auto"))
    assert_same(train(resume=tmp_path, network=other, **settings), wanted)


class Ordinary(nn.Module):
    """Draws from PyTorch's own generator, and has numbers that are no weights."""

    propagation = "mean"

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.first, self.norm = nn.Linear(5, 8), nn.BatchNorm1d(8)
        self.dropout, self.last = nn.Dropout(0.4), nn.Linear(8, 3)

    def forward(self, x, propagate):
        return self.last(propagate(self.dropout(self.norm(self.first(propagate(x))).relu())))


@pytest.mark.parametrize("estimator", ["ns", "cv"])
def test_a_model_of_ordinary_pytorch_goes_on_in_the_same_bits(tmp_path, estimator) -> None:
    wanted = train(network=Ordinary(), estimator=estimator)
    with pytest.raises(CrashError):
        train(
            tmp_path,
            network=Ordinary(),
            estimator=estimator,
            checkpoint_every=EVERY_STEP,
            on=crash_after(6),
        )
    torch.manual_seed(99)
    assert_same(train(resume=tmp_path, network=Ordinary(), estimator=estimator), wanted)


def test_a_run_may_be_ended_where_it_is_resumed(tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        train(tmp_path, checkpoint_every="1", on=crash_after(STEPS + 1))

    def stop(curve: list[Epoch]) -> None:
        assert [point.epoch for point in curve] == [1]
        raise StopTraining

    found = train(resume=tmp_path, on={"on_restore": stop})
    assert found.stopped == "callback"
    assert_same(found, train(epochs=1))


def test_the_newest_two_checkpoints_are_kept_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".step-00000003.abc.partial").mkdir()  # left by a killed process
    seen = []
    train(
        tmp_path,
        checkpoint_every=EVERY_STEP,
        on={"on_step": lambda *_: seen.append(len(os.listdir(tmp_path)))},
    )
    assert max(seen) == 3  # with the lock
    assert sorted(os.listdir(tmp_path)) == ["step-00000010", "step-00000011"]


@pytest.mark.parametrize(
    ("every", "steps"),
    [("1", [4, 8]), ("2", [4, 8]), ("0", []), ("auto", [4]), ("60m", [4])],
)
def test_checkpoints_come_when_they_are_due(tmp_path: Path, every: str, steps: list[int]) -> None:
    train(tmp_path, checkpoint_every=every)
    assert [int(path.name[5:]) for path in checkpoints_in(tmp_path)][::-1] == steps


def test_what_takes_long_to_write_comes_less_often(tmp_path: Path, monkeypatch) -> None:
    now, written = [0.0], []
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: now[0]))

    def save(folder: Path, state, identity) -> Path:
        written.append(state.position.step)
        now[0] += 18.0  # of writing: at 2%, 900 seconds until the next
        return folder / checkpoint_name(state)

    monkeypatch.setattr(checkpointing, "save_checkpoint", save)

    def step(*_: int) -> None:
        now[0] += 150.0

    result = train(tmp_path, epochs=5, on={"on_step": step})
    assert written == [2, 8, 14]
    assert result.checkpoint_seconds == 3 * 18.0


def changed_graph(part: str) -> Graph:
    g = graph()
    parts = {
        "edge_index": g.edge_index(),
        "features": g.features.clone(),
        "labels": g.labels.clone(),
        "train": g.train,
        "val": g.val,
        "test": g.test,
    }
    if part == "edge_index":
        parts[part] = parts[part][:, 1:]
    elif part == "train":
        parts[part] = g.train[1:]
    else:
        parts[part][3] = parts[part][3] + 1 if part == "features" else (g.labels[3] + 1) % 3
    return Graph(**parts)


@pytest.mark.parametrize(
    "change",
    [
        {"data": "edge_index"},
        {"data": "features"},
        {"data": "labels"},
        {"data": "train"},
        {"network": {"dropout": 0.4}},
        {"layers": 3, "fanout": 1},
        {"learning_rate": 0.5},
        {"estimator": "cv"},
        {"fanout": (2,)},
        {"propagation": "gcn"},
        {"epochs": 1},
    ],
)
def test_another_run_is_refused_with_the_difference_named(tmp_path, change) -> None:
    with pytest.raises(CrashError):
        train(tmp_path, checkpoint_every=EVERY_STEP, on=crash_after(10))
    if "data" in change:
        change = {"data": changed_graph(change["data"])}
    if "network" in change:
        change = {"network": model(**change["network"])}
    with refused():
        train(resume=tmp_path, **change)


def test_a_run_may_go_on_for_longer_measured_and_kept_otherwise(tmp_path: Path) -> None:
    wanted = train(epochs=5)
    with pytest.raises(CrashError):
        train(tmp_path, checkpoint_every="1", on=crash_after(7))
    free = {"epochs": 5, "patience": 50, "checkpoint_every": "2", "on_nan": "rollback"}
    assert_same(train(resume=tmp_path, **free), wanted)


def test_another_number_of_threads_is_told(tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        train(tmp_path, checkpoint_every="1", on=crash_after(7))
    notes: list[str] = []
    train(resume=tmp_path, threads=2, on={"on_note": notes.append})
    assert len(notes) == 1
    assert "had 1 CPU threads and resumes with 2" in notes[0]


def test_a_damaged_checkpoint_is_warned_of_and_the_older_used(tmp_path: Path) -> None:
    wanted = train()
    with pytest.raises(CrashError):
        train(tmp_path, checkpoint_every=EVERY_STEP, on=crash_after(7))
    newest = checkpoints_in(tmp_path)[0]
    content = bytearray((newest / HISTORIES).read_bytes())
    content[-9] ^= 4
    (newest / HISTORIES).write_bytes(content)
    with pytest.warns(UserWarning, match=rf"{HISTORIES} is damaged.* step-00000005 is used"):
        result = train(resume=tmp_path, checkpoint_every=EVERY_STEP)
    assert_same(result, wanted)
    for path in checkpoints_in(tmp_path):
        load_checkpoint(path)


def test_resuming_where_there_is_no_checkpoint_yet_begins_at_the_beginning(tmp_path: Path) -> None:
    assert_same(train(resume=tmp_path / "new"), train())


def test_checkpoints_of_another_run_are_neither_used_nor_removed(tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        train(tmp_path, checkpoint_every="1", on=crash_after(7))
    with refused(FileExistsError):
        train(tmp_path)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["step-00000004"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_step_and_keeps_everything(tmp_path, number, capfd) -> None:
    wanted = train()
    steps = []

    def step(*_: int) -> None:
        steps.append(1)
        if len(steps) == 6:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with refused(Interrupted) as caught:
        train(tmp_path, on={"on_step": step})
    assert caught.value.signal == number
    assert signal.getsignal(number) is before
    names = [path.name for path in checkpoints_in(tmp_path)]
    assert names == ["step-00000006", "step-00000004"]  # the second is of the first epoch
    assert "once more stops at once" in capfd.readouterr().err
    assert_same(train(resume=tmp_path), wanted)


def signal_when_scoring_tests(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Send signals when the first run begins to score its test nodes."""
    score = Trainer._score

    def stop(self: Trainer, split: str) -> float | None:
        if split == "test":
            monkeypatch.setattr(Trainer, "_score", score)
            for number in numbers:
                os.kill(os.getpid(), number)
        return score(self, split)

    monkeypatch.setattr(Trainer, "_score", stop)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_scoring_of_the_trained_model(tmp_path, number, monkeypatch) -> None:
    wanted, network = train(), model()
    signal_when_scoring_tests(monkeypatch, number)
    with refused(Interrupted) as caught:
        train(tmp_path, network=network)
    assert caught.value.signal == number
    assert_same(train(resume=tmp_path), wanted)


def test_a_run_that_was_stopped_while_it_was_scored_may_go_on_for_longer(
    tmp_path, monkeypatch
) -> None:
    """The checkpoint has the last weights, not the best, which were being scored."""
    assert train().epoch < EPOCHS  # another epoch than the last is the best
    wanted = train(epochs=EPOCHS + 2)
    signal_when_scoring_tests(monkeypatch, signal.SIGINT)
    with pytest.raises(Interrupted):
        train(tmp_path)
    assert_same(train(resume=tmp_path, epochs=EPOCHS + 2), wanted)


def test_a_signal_while_an_epoch_is_scored_that_the_time_cut_short_keeps_the_run(
    tmp_path, monkeypatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(Clock, "now", lambda self: seconds[0])

    def step(*_: int) -> None:
        seconds[0] += 10

    score = Trainer._score

    def stop(self: Trainer, split: str) -> float | None:
        monkeypatch.setattr(Trainer, "_score", score)
        os.kill(os.getpid(), signal.SIGTERM)
        return score(self, split)

    limited = {"time_limit": "15s", "on": {"on_step": step}}
    wanted = train(tmp_path / "whole", **limited)
    seconds[0] = 0.0
    monkeypatch.setattr(Trainer, "_score", stop)
    with refused(Interrupted):
        train(tmp_path / "cut", **limited)
    found = train(resume=tmp_path / "cut", **limited)
    assert (found.stopped, len(found.curve)) == ("time", 1)
    assert_same(found, wanted)


def test_a_second_signal_stops_the_scoring_at_once_without_a_checkpoint(
    tmp_path, monkeypatch
) -> None:
    signal_when_scoring_tests(monkeypatch, signal.SIGINT, signal.SIGINT)
    with pytest.raises(Interrupted):
        train(tmp_path, checkpoint_every="0")
    assert not checkpoints_in(tmp_path)


def test_a_second_signal_stops_at_once_without_a_checkpoint(tmp_path: Path, capfd) -> None:
    def twice(*_: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("went on after the second")

    with pytest.raises(Interrupted):
        train(tmp_path, on={"on_step": twice})
    assert not checkpoints_in(tmp_path)


def test_a_folder_in_use_is_refused_and_a_dead_owner_is_no_obstacle(tmp_path: Path) -> None:
    with locked(tmp_path), refused(LockedError, varying=r"\d+"):
        train(tmp_path)
    (tmp_path / LOCK).write_text("1")  # left by a process that was killed
    train(tmp_path)
    assert not (tmp_path / LOCK).exists()


def fail_with_enospc(*_: object) -> Path:
    error = DiskFullError("no room")
    error.errno = errno.ENOSPC
    raise error


def test_training_goes_on_without_checkpoints_on_a_full_disk_or_stops(tmp_path, monkeypatch):
    wanted = train()
    monkeypatch.setattr(checkpointing, "save_checkpoint", fail_with_enospc)
    notes: list[str] = []
    result = train(tmp_path, checkpoint_every="1", on={"on_note": notes.append})
    assert_same(result, wanted)
    assert notes == [
        f"no checkpoint at step {step}: no room; training continues" for step in (4, 8)
    ]
    with pytest.raises(DiskFullError):
        train(tmp_path, checkpoint_every="1", on_full_disk="stop")


class Poisoned(nn.Module):
    """Answers NaN in its n-th forward pass of training; the first ones are looks at the model."""

    propagation = "mean"

    def __init__(self, at: set[int]) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.layer, self.at, self.count = nn.Linear(5, 3), at, 0

    def forward(self, x, propagate):
        y = self.layer(propagate(x))
        if self.training and torch.is_grad_enabled():
            self.count += 1
            if self.count in self.at:
                return y * float("nan")
        return y


def poisoned(at: set[int], folder: Path, **given) -> tuple[TrainResult, list[str]]:
    notes: list[str] = []
    settings = {"estimator": "exact", "checkpoint_every": "1", **given}
    result = train(folder, network=Poisoned(at), on={"on_note": notes.append}, **settings)
    return result, notes


def test_a_loss_of_nan_stops_with_epoch_and_batch_and_the_last_checkpoint_intact(tmp_path):
    with refused(DivergedError):
        poisoned({7}, tmp_path)
    (path,) = checkpoints_in(tmp_path)
    assert load_checkpoint(path).state.position.step == 4


def test_rolling_back_goes_on_from_the_last_checkpoint_with_half_the_rate(tmp_path):
    result, notes = poisoned({7}, tmp_path, on_nan="rollback", learning_rate=0.04)
    assert len(result.curve) == EPOCHS
    assert len(notes) == 1
    assert (
        "loss became nan at epoch 2, step 3; back to step-00000004 with half the rate, 0.02 "
        in (notes[0])
    )
    state = load_checkpoint(checkpoints_in(tmp_path)[0]).state
    assert state.progress.rollbacks == 1
    assert {group["lr"] for group in state.optimizer["param_groups"]} == {0.02}


def test_rolling_back_is_done_three_times_and_halves_each_time(tmp_path):
    # Steps 7, 9 and 11 are the third, first and first after going back to step 4.
    with refused(DivergedError):
        poisoned({7, 9, 11, 13}, tmp_path, on_nan="rollback", learning_rate=0.04)
    notes = poisoned({7, 9, 11}, tmp_path / "b", on_nan="rollback", learning_rate=0.04)[1]
    assert [note.split("rate, ")[1].split(" ")[0] for note in notes] == ["0.02", "0.01", "0.005"]


def test_rolling_back_before_the_first_checkpoint_begins_again(tmp_path):
    result, notes = poisoned({2}, tmp_path, on_nan="rollback")
    assert "back to step-00000000" in notes[0]
    assert len(result.curve) == EPOCHS
    with refused():
        train(on_nan="rollback")


def test_weights_that_are_lost_never_become_a_checkpoint(tmp_path):
    network = model()

    def spoil(*_: int) -> None:
        with torch.no_grad():
            next(network.parameters()).fill_(float("inf"))

    with refused(DivergedError):
        train(tmp_path, network=network, checkpoint_every=EVERY_STEP, on={"on_step": spoil})
    assert not checkpoints_in(tmp_path)
