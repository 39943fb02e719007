"""Progress: the same lines wherever training is started from."""

from __future__ import annotations

import re
from dataclasses import replace
from threading import Event

import pytest

from tests.runs.test_fit import graph, model
from vrgcn import TrainConfig, fit
from vrgcn.tasks.metrics import METRICS
from vrgcn.training import progress as module
from vrgcn.training.state import Epoch

CONFIG = TrainConfig(epochs=3, batch_size=8)
LINE = r"epoch \d  loss \d\.\d{4}  validation accuracy \d\.\d{4}  .*\d\.\d\d s"


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_training_is_silent_unless_told_otherwise(capsys):
    fit(model(), graph(), CONFIG)
    assert lines(capsys) == []


def test_verbose_training_shows_a_line_for_each_epoch(capsys):
    fit(model(), graph(), CONFIG, verbose=True)
    shown = lines(capsys)
    assert [line[:7] for line in shown] == ["epoch 1", "epoch 2", "epoch 3"]
    assert all(re.fullmatch(LINE, line) for line in shown), shown


def test_ones_own_callbacks_are_called_too_and_first(capsys):
    steps = []
    fit(
        model(),
        graph(),
        CONFIG,
        verbose=True,
        on_epoch=lambda point: print(f"mine {point.epoch}"),
        on_step=lambda done, total: steps.append((done, total)),
    )
    shown = lines(capsys)
    assert [line[:7].strip() for line in shown[:4]] == ["mine 1", "epoch 1", "mine 2", "epoch 2"]
    assert steps == [(1, 3), (2, 3), (3, 3)] * 3


def test_a_notebook_without_widgets_shows_the_same_lines_as_plain_text(capsys, monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    fit(model(), graph(), CONFIG, verbose=True)  # a warning of rich's would be an error here
    shown = lines(capsys)
    assert len(shown) == 3
    assert all(re.fullmatch(LINE, line) for line in shown), shown


def test_a_notebook_with_widgets_has_a_bar(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    assert not module.progress_bar().disable


def test_a_run_that_goes_on_is_shown_from_where_it_stands(tmp_path, capsys, monkeypatch):
    fit(model(), graph(), CONFIG, checkpoints=tmp_path, checkpoint_every=1)
    begun, begin = [], module.EpochProgress._begin

    def noted(self, epoch: int) -> None:
        begun.append(epoch)
        begin(self, epoch)

    monkeypatch.setattr(module.EpochProgress, "_begin", noted)
    longer = TrainConfig(epochs=5, batch_size=8)
    fit(model(), graph(), longer, resume=tmp_path, checkpoint_every=1, verbose=True)
    assert begun == [3, 4, 5, 6]  # the last checkpoint is the one before the last epoch
    assert [line[:7] for line in lines(capsys)] == ["epoch 3", "epoch 4", "epoch 5"]


def test_without_a_terminal_a_line_every_ten_seconds_tells_how_much_is_left(capsys):
    now = 0.0
    with module.progress_bar() as bar:
        bar.get_time = lambda: now
        task = bar.add_task("reading", total=1000)
        bar.tasks[0]._get_time = bar.get_time
        for _ in range(90):  # 1 in a second, and then a fifth
            now += 10
            bar.advance(task, 10)
        for _ in range(40):
            now += 10
            bar.update(task, advance=2)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 129
    assert told[0] == "reading: 2% after 0:00:20, about 0:16:20 left"
    # At the speed of the last five minutes; at the mean speed, half a minute would be left.
    assert told[-1] == "reading: 98% after 0:21:40, about 0:01:40 left"


def test_what_moves_in_long_pieces_has_an_estimate_too(capsys):
    now = 0.0
    with module.progress_bar() as bar:
        bar.get_time = lambda: now
        task = bar.add_task("sorting", total=1.0)
        bar.tasks[0]._get_time = bar.get_time
        for done in (0.1, 0.2, 0.3):
            now += 500
            bar.update(task, completed=done)
    assert capsys.readouterr().err.splitlines()[-1] == (
        "sorting: 30% after 0:25:00, about 0:58:20 left"
    )


def test_exact_scores_have_progress_of_their_own(monkeypatch):
    told: list[tuple[str, float | None, float]] = []
    evaluated = module.EpochProgress.evaluated

    def noted(self, nodes: int) -> None:
        evaluated(self, nodes)
        task = self._bar.tasks[1]
        told.append((task.description, task.total, task.completed))

    monkeypatch.setattr(module.EpochProgress, "evaluated", noted)
    fit(model(), graph(), TrainConfig(epochs=2, batch_size=8), verbose=True)
    titles = [title for title, total, done in told if done == total]
    # After each epoch on the validation nodes, at last on the test nodes.
    assert titles == [f"epoch {epoch}/2, evaluating" for epoch in (1, 2, 2)]
    assert all(total is not None and 0 < done <= total for _, total, done in told)


def test_work_of_unknown_length_is_told_every_ten_seconds(capsys, monkeypatch):
    """The first wait ends at once, as after ten seconds; the second with the work."""
    now, waits = 0.0, []
    done = Event()

    class Waiting(Event):
        def wait(self, timeout=None):
            nonlocal now
            waits.append(timeout)
            now += timeout
            done.set()
            return len(waits) > 2

    monkeypatch.setattr(module, "Event", Waiting)
    usual = module.progress_bar

    def bar(*columns):
        made = usual(*columns)
        made.get_time = lambda: now
        return made

    monkeypatch.setattr(module, "progress_bar", bar)
    with module.working("thinking"):
        done.wait()
    told = capsys.readouterr().err.splitlines()
    assert waits == [10.0, 10.0, 10.0]
    assert told == ["thinking: 0:00:10", "thinking: 0:00:20"]


def test_quick_work_is_not_told(capsys):
    with module.working("thinking"):
        pass
    with module.working("thinking", shown=False):
        pass
    assert capsys.readouterr() == ("", "")


def test_trainings_that_take_turns_are_named_until_one_is_left(capsys):
    shown = module.EpochProgress(9, METRICS["accuracy"], "gcn")
    point = Epoch(1, 0.5, 0.75, 1.0, None, 0.0, 0.0)
    with shown:
        shown.epoch(point)
        shown.alone()
        shown.epoch(replace(point, epoch=2))
    assert [line.split("  ")[0] for line in lines(capsys)] == ["gcn: epoch 1", "epoch 2"]
