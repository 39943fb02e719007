"""The result of a run, in three lines and as a picture."""

from __future__ import annotations

import sys

import pytest

from tests.messages import refused
from tests.runs.test_fit import graph, model
from vrgcn import TrainConfig, fit
from vrgcn.files.wording import seconds_text


@pytest.fixture
def pyplot(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_a_result_prints_as_three_lines():
    result = fit(model(), graph(), TrainConfig(epochs=4))
    scores, loss, time = str(result).splitlines()
    assert scores == (
        f"test accuracy {result.test:.4f} (kept epoch {result.epoch} of 4, validation accuracy "
        f"{result.val:.4f})"
    )
    first, last = result.curve[0].loss, result.curve[-1].loss
    assert loss == f"training loss {first:.4f} in the first epoch, {last:.4f} in the last"
    assert time.startswith(f"{seconds_text(result.seconds)} of training")


def test_a_result_without_validation_and_test_nodes_says_so():
    result = fit(model(), graph(val=None, test=None), TrainConfig(epochs=2))
    assert str(result).startswith("no test nodes (kept epoch 2 of 2)\n")


def test_a_plot_shows_the_loss_and_the_score_of_every_epoch(pyplot):
    result = fit(model(), graph(), TrainConfig(epochs=4, evaluate_every=2))
    loss, score = result.plot()
    assert loss.lines[0].get_xydata().tolist() == [[p.epoch, p.loss] for p in result.curve]
    points = [[p.epoch, p.val] for p in result.curve if p.val is not None]
    assert score.lines[0].get_xydata().tolist() == points
    assert [point[0] for point in points] == [2, 4]
    assert score.get_ylabel() == "validation accuracy"
    assert score.lines[1].get_xdata()[0] == result.epoch


def test_a_plot_without_validation_nodes_has_one_panel(pyplot):
    assert len(fit(model(), graph(val=None), TrainConfig(epochs=2)).plot()) == 1


def test_a_plot_without_matplotlib_says_what_to_install(monkeypatch):
    result = fit(model(), graph(), TrainConfig(epochs=1))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refused():
        result.plot()
