"""What a search ends with is calibrated on validation nodes, as single runs are; no other node's
label matters for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.baselines.problems import small
from tests.cli.conftest import small_graph
from vrgcn import Graph, ModelConfig, TrainConfig, predict, tune
from vrgcn.inference.average import Average
from vrgcn.inference.calibration import Calibration, calibrate
from vrgcn.inference.saved import load_model
from vrgcn.tasks import find_task
from vrgcn.training.clock import Clock
from vrgcn.tuning.members import Member
from vrgcn.tuning.session import Session

pytest.importorskip("optuna")


def noisy(test_labels: int = 0) -> Graph:
    """Enough validation nodes, a quarter of them mislabelled, which no model can know, and features
    that tell little; the classes of test nodes are moved by `test_labels`."""
    graph = small_graph(900)
    assert graph.labels is not None
    generator = torch.Generator().manual_seed(0)
    features = graph.features / 3 + torch.randn(graph.features.shape, generator=generator)
    labels = graph.labels.clone()
    labels[graph.val[::4]] = (labels[graph.val[::4]] + 1) % 3
    labels[graph.test] = (labels[graph.test] + test_labels) % 3
    splits = {name: graph.split(name) for name in ("train", "val", "test")}
    return Graph.from_parts(graph.adjacency, features, labels, splits, 3, graph.names)


def found(graph: Graph, folder: Path) -> tuple[Average, float]:
    result = tune(
        graph,
        ModelConfig(hidden=8, layers=1),
        TrainConfig(epochs=2),
        trials=1,
        baselines=("linear", "labels"),
        folder=folder,
        on_note=lambda _: None,
    )
    assert result.average is not None
    assert result.average_result is not None
    assert result.average_result.test is not None
    return result.average, result.average_result.test


def test_where_the_time_is_over_the_heaviest_members_alone_are_averaged_and_nothing_is_smoothed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end has 10 seconds, and each member takes 5 to predict the validation nodes, 7 for all:
    there is time for one. By the clock nothing else takes time."""
    graph, now = small(), [0.0]
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: now[0]))
    folder = tmp_path / "search"
    given = {"trials": 1, "baselines": ("linear-2", "trees-2", "smoothed"), "folder": folder}
    config = TrainConfig(epochs=2, batch_size=64, seed=1)
    whole = tune(graph, ModelConfig(hidden=8), config, time_limit="100s", **given)
    assert whole.average is not None
    assert len(whole.average.members) > 1
    read = Session.members

    def dear(self: Session) -> list[Member]:
        now[0] = 90.0
        return [replace(m, tried=replace(m.tried, predicting_seconds=5.0)) for m in read(self)]

    monkeypatch.setattr(Session, "members", dear)
    (folder / "best" / "result.json").unlink()
    short = tune(graph, ModelConfig(hidden=8), config, time_limit="100s", **given)
    assert short.average is not None
    heaviest = max(zip(whole.average.weights, whole.average.members, strict=True))[1]
    assert list(short.average.members) == [heaviest]
    assert short.average.smoothing is None


def test_the_average_and_the_best_are_calibrated_on_validation_nodes_alone(tmp_path: Path) -> None:
    graph = noisy()
    average, test = found(graph, tmp_path / "a")
    assert average.calibration is not None
    assert graph.labels is not None
    plain = predict(average.before(Calibration), graph)
    wanted = calibrate(find_task("classes"), plain, graph.labels, graph.val)
    assert average.calibration.settings == wanted.settings
    assert torch.equal(average.calibration.scores, wanted.scores)
    assert wanted.temperature != 1
    best = load_model(tmp_path / "a" / "best")
    assert best.calibration is not None
    card = (tmp_path / "a" / "average" / "README.md").read_text()
    assert f"temperature {wanted.temperature:.4g}" in card

    other, other_test = found(noisy(test_labels=1), tmp_path / "b")
    assert other.calibration is not None
    assert other.calibration.settings == average.calibration.settings
    assert torch.equal(other.calibration.scores, average.calibration.scores)
    assert other_test != test


def test_a_calibrated_average_is_loaded_as_it_was_and_a_damaged_one_refused(tmp_path: Path) -> None:
    graph = noisy()
    average, _ = found(graph, tmp_path / "a")
    loaded = load_model(tmp_path / "a" / "average")
    assert loaded.calibration is not None
    assert average.calibration is not None
    assert loaded.calibration.settings == average.calibration.settings
    assert torch.equal(predict(loaded, graph), predict(average, graph))
    outputs = predict(loaded.before(Calibration), graph) / loaded.calibration.temperature
    assert torch.allclose(predict(loaded, graph), outputs)
