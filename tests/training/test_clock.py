"""Runs that stop in time, with what is best until then, and go on where they stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.messages import refused
from tests.runs.test_checkpointing import STEPS, CrashError, assert_same, crash_after, model, train
from tests.training.test_state import BATCH, graph
from vrgcn import TrainConfig
from vrgcn.runs.folder import METRICS
from vrgcn.runs.job import prepare
from vrgcn.training.clock import Clock, Interval
from vrgcn.training.listener import Callbacks, StopTraining


class Time:
    """A clock by hand: each step takes a second, once it is over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(Clock, "now", staticmethod(lambda: self.now))

    def step(self, *_: object) -> None:
        self.now += 1.0


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def test_a_limit_leaves_time_for_a_step_and_two_evaluations(time: Time) -> None:
    clock = Clock(20.0)
    clock.stepped(2.0)
    clock.evaluated(3.0)
    clock.evaluated(1.0)
    time.now += 11.9
    assert not clock.over
    time.now += 0.1
    assert clock.over
    assert not Clock(None).over


def test_time_of_other_processes_counts_and_none_is_given_back(time: Time) -> None:
    clock = Clock(20.0)
    time.now += 5
    clock.go_on(12.0)
    assert clock.used == 12.0
    time.now += 3
    clock.go_on(12.0)  # back to a checkpoint in the same process
    assert clock.used == 15.0


@pytest.mark.parametrize("estimator", ["two-way", "cvd"])
def test_a_run_ends_in_time_with_its_best_epoch(time: Time, estimator: str) -> None:
    whole = train(estimator=estimator, epochs=9)
    steps = len(whole.curve) and {"two-way": 12, "cvd": 4}[estimator]
    result = train(
        estimator=estimator, epochs=9, time_limit=f"{5 * steps + 2}s", on={"on_step": time.step}
    )
    assert result.stopped == "time"
    assert len(result.curve) == 5
    assert [p.loss for p in result.curve] == [p.loss for p in whole.curve[:5]]
    assert result.val == max(p.val for p in whole.curve[:5])
    assert whole.stopped == "epochs"


@pytest.mark.parametrize("estimator", ["two-way", "cvd"])
@pytest.mark.parametrize("schedule", ["none", "cosine"])
def test_with_more_time_it_ends_in_the_bits_of_a_run_without_a_limit(
    tmp_path: Path, time: Time, estimator: str, schedule: str
) -> None:
    settings = {"estimator": estimator, "schedule": schedule, "epochs": 6}
    wanted = train(**settings)
    on = {"on_step": time.step}
    for limit in ("6s", "7s", "15s"):  # all of them inside an epoch
        resume = {} if limit == "6s" else {"resume": tmp_path}
        result = train(tmp_path, time_limit=limit, on=on, **resume, **settings)
        assert result.stopped == "time"
    assert_same(train(resume=tmp_path, time_limit="500s", on=on, **settings), wanted)


def test_time_used_before_a_crash_counts(tmp_path: Path, time: Time) -> None:
    given = {"epochs": 9, "time_limit": "21s"}
    on = crash_after(12)
    crash = on["on_step"]
    on["on_step"] = lambda *at: (time.step(), crash(*at))
    with pytest.raises(CrashError):
        train(tmp_path, checkpoint_every="1", on=on, **given)
    result = train(resume=tmp_path, on={"on_step": time.step}, **given)
    # 8 of 12 steps are in the checkpoint, and the seconds with them; 13 are left.
    assert (result.stopped, len(result.curve)) == ("time", 5)


def test_a_limit_inside_the_first_epoch_still_leaves_a_model_that_was_scored(
    tmp_path: Path, time: Time
) -> None:
    on = {"on_step": time.step}
    result = train(tmp_path, epochs=4, time_limit="2s", on=on)
    (point,) = result.curve
    assert result.stopped == "time"
    assert point.val == result.val
    assert 0.5 < point.loss < 3  # the mean over visited nodes, not over all
    assert result.test is not None
    assert_same(train(resume=tmp_path, epochs=4, on=on), train(epochs=4))


def test_a_limit_that_is_over_before_it_begins_makes_one_step(time: Time) -> None:
    done = []
    on = {"on_step": lambda *at: (time.step(), done.append(at))}
    result = train(time_limit="0.000001s", on=on)
    assert (result.stopped, done) == ("time", [(1, 4)])


def test_a_callback_may_end_the_training(tmp_path: Path, capsys) -> None:
    def stop(point) -> None:
        if point.epoch == 2:
            raise StopTraining

    result = train(tmp_path, epochs=5, on={"on_epoch": stop, "verbose": True})
    assert "epoch 2 " in capsys.readouterr().out  # the last is shown like the others
    assert (result.stopped, len(result.curve)) == ("callback", 2)
    assert result.val == max(p.val for p in result.curve)
    assert_same(train(resume=tmp_path, epochs=5), train(epochs=5))


@pytest.mark.parametrize("select", ["best", "last"])
@pytest.mark.parametrize("epoch", [1, 5])
def test_the_epoch_that_a_callback_ended_is_evaluated_like_a_last_one(
    tmp_path: Path, select: str, epoch: int
) -> None:
    def stop(point) -> None:
        seen.append(point.epoch)
        if point.epoch == epoch:
            raise StopTraining

    seen, kept = [], []
    given = {"evaluate_every": 3, "select": select, "schedule": "plateau"}
    on = {"on_epoch": stop, "on_kept": kept.append}
    result = train(tmp_path, epochs=9, on=on, checkpoint_every=1, **given)
    assert (result.stopped, seen) == ("callback", list(range(1, epoch + 1)))
    whole = train(epochs=epoch, **given)
    assert_same(result, whole)
    assert result.curve[-1].val is not None
    assert result.epoch == whole.epoch
    assert (result.val, result.test) == (whole.val, whole.test)
    assert kept[-1].epoch == result.epoch
    assert_same(train(resume=tmp_path, epochs=9, **given), train(epochs=9, **given))


def test_an_epoch_after_which_a_resumed_run_ends_is_evaluated_too(tmp_path: Path) -> None:
    def stop(curve) -> None:
        assert [point.val for point in curve] == [None, None]
        raise StopTraining

    given = {"evaluate_every": 3, "checkpoint_every": 1}
    with pytest.raises(CrashError):
        train(tmp_path, epochs=9, on=crash_after(2 * STEPS + 1), **given)
    result = train(resume=tmp_path, epochs=9, on={"on_restore": stop}, **given)
    assert_same(result, train(epochs=2, evaluate_every=3))


def test_the_record_of_a_run_has_the_score_of_the_epoch_that_a_callback_ended(
    tmp_path: Path,
) -> None:
    def stop(point) -> None:
        assert point.val is None
        raise StopTraining

    config = TrainConfig(epochs=9, batch_size=BATCH, evaluate_every=3)
    job = prepare(model(), graph(), config)
    result = job.run(tmp_path, {}, Callbacks(on_epoch=stop))
    (line,) = (tmp_path / METRICS).read_text().splitlines()
    assert json.loads(line)["val"] == result.val
    assert result.val is not None


@pytest.mark.parametrize("text", ["10", "m", "0s", "-1m", "ten", 10])
def test_a_limit_that_is_no_time_is_refused(text: object) -> None:
    with refused():
        TrainConfig(time_limit=text)


def test_a_limit_before_any_evaluation_keeps_the_epoch_that_it_is_in(
    tmp_path: Path, time: Time
) -> None:
    on = {"on_step": time.step}
    given = {"epochs": 9, "evaluate_every": 9}
    result = train(tmp_path, time_limit="10s", on=on, **given)  # in the middle of the third
    assert (result.stopped, result.epoch, len(result.curve)) == ("time", 3, 3)
    assert [p.val for p in result.curve] == [None, None, result.val]
    assert_same(train(resume=tmp_path, **given), train(**given))


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "10d", "0m", "s", "m", "1 m"])
def test_an_interval_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="checkpoint_every"):
        TrainConfig(checkpoint_every=text)


def test_intervals_are_epochs_or_minutes() -> None:
    assert Interval.parse(3) == Interval(epochs=3)
    assert Interval.parse("10m") == Interval(seconds=600.0)
    assert Interval.parse("0.5m") == Interval.parse("30s") == Interval(seconds=30.0)
    assert Interval.parse("2h") == Interval(seconds=7200.0)
    assert Interval.parse("0") == Interval()
    assert Interval.parse("auto") == Interval(seconds=300.0, share=0.02)
