"""Calibration: what is fitted on which nodes, in files and in predictions."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.inference.test_model_file import change
from tests.messages import refused
from vrgcn.graph.graph import Graph
from vrgcn.inference.calibration import (
    Calibration,
    calibrate,
    choose_cut,
    deal_folds,
)
from vrgcn.inference.embed import embeddings
from vrgcn.inference.predict import predict
from vrgcn.inference.predictions import predictions
from vrgcn.inference.regions import by_degree, coverage_of, model_region
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.models.models import GCN
from vrgcn.tasks import find_task
from vrgcn.tasks.regions import limit_of

CLASSES, NUMBERS = find_task("classes"), find_task("regression")


def drawn(count: int, temperature: float, classes: int = 3) -> tuple[Tensor, Tensor]:
    """Outputs, and labels drawn from the softmax of outputs / temperature."""
    draw = torch.Generator().manual_seed(1)
    outputs = 3 * torch.randn(count, classes, generator=draw, dtype=torch.float64)
    chances = (outputs / temperature).softmax(1)
    return outputs, torch.multinomial(chances, 1, generator=draw)[:, 0]


def same(a: Calibration, b: Calibration) -> bool:
    return a.settings == b.settings and torch.equal(a.scores, b.scores)


def test_labels_of_test_and_training_nodes_reach_nothing() -> None:
    outputs, labels = drawn(600, 2.0, classes=2)
    val = torch.arange(200, 400)
    found = calibrate(CLASSES, outputs, labels, val)
    other, moved = labels.clone(), outputs.clone()
    outside = torch.ones(600, dtype=torch.bool)
    outside[val] = False
    other[outside] = 1 - labels[outside]
    moved[outside] += 5
    assert same(calibrate(CLASSES, moved, other, val), found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_strangeness_depends_on_nothing_that_was_fitted(dtype: torch.dtype) -> None:
    """Sets are those of the model without its temperature: this keeps validation nodes
    exchangeable with others. So all of them are counted."""
    outputs, labels = drawn(600, 3.0)
    outputs, val = outputs.to(dtype), torch.arange(200, 500)
    found = calibrate(CLASSES, outputs, labels, val)
    assert found.temperature == pytest.approx(3, rel=0.2)
    assert (found.fitted, len(found.scores)) == (300, 300)
    plain = CLASSES.strangeness(outputs[val], labels[val])
    torch.testing.assert_close(found.scores, plain.sort().values)
    wanted = CLASSES.region(outputs, limit_of(plain, 0.7) + 1e-6)
    assert torch.equal(found.region(CLASSES, 0.7)(found.outputs(outputs)), wanted)


def test_nodes_like_the_one_that_sets_the_limit_are_covered() -> None:
    """Its outputs are divided and multiplied again; the limit has the same rounding."""
    outputs, labels = drawn(300, 3.0)
    outputs = outputs.float()
    found = calibrate(CLASSES, outputs, labels, torch.arange(300))
    assert found.temperature != 1
    for coverage in torch.linspace(0.5, 0.95, 40).tolist():
        sets = found.region(CLASSES, coverage)(found.outputs(outputs))
        assert int(CLASSES.covers(sets, labels).sum()) >= math.ceil(301 * coverage)


def test_the_threshold_is_one_of_calibrated_probabilities() -> None:
    outputs, labels = drawn(900, 2.0, classes=2)
    outputs[:, 0] += 4
    found = calibrate(CLASSES, outputs, labels, torch.arange(900))
    assert found.temperature != 1
    assert found.threshold is not None
    margins = outputs[:, 1] - outputs[:, 0]
    cut = choose_cut(margins, labels == 1, deal_folds(labels))
    chosen = found.outputs(outputs).softmax(1)[:, 1] >= found.threshold
    assert torch.equal(chosen, margins >= cut)


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_sets_of_nodes_like_the_validation_nodes_hold_their_labels(coverage: float) -> None:
    outputs, labels = drawn(12_000, 2.0)
    found = calibrate(CLASSES, outputs, labels, torch.arange(2000))
    test = torch.arange(2000, 12_000)
    region = found.region(CLASSES, coverage)
    covered = coverage_of(CLASSES, found.outputs(outputs[test]), labels[test], region, {})[0]
    # Deviation over calibrations of 2,000 nodes: at most .009; over test nodes .004.
    assert covered.share == pytest.approx(coverage, abs=0.03)
    assert 1 <= covered.size < 3


def test_intervals_of_numbers_hold_them() -> None:
    draw = torch.Generator().manual_seed(2)
    outputs = torch.randn(6000, 1, generator=draw, dtype=torch.float64)
    labels = outputs[:, 0] + torch.randn(6000, generator=draw, dtype=torch.float64)
    found = calibrate(NUMBERS, outputs, labels, torch.arange(2000))
    assert (found.temperature, found.threshold) == (1.0, None)
    assert found.limit(0.9) == pytest.approx(1.645, abs=0.15)  # of the normal distribution
    test = torch.arange(2000, 6000)
    covered = coverage_of(NUMBERS, outputs[test], labels[test], found.region(NUMBERS, 0.9), {})[0]
    assert covered.share == pytest.approx(0.9, abs=0.03)


def test_groups_by_degree_cover_all_nodes_once() -> None:
    degrees = torch.tensor([0, 0, 1, 1, 1, 2, 5, 9, 9, 40])
    groups = by_degree(degrees)
    assert torch.equal(sum(g.long() for g in groups.values()), torch.ones(10).long())
    assert next(iter(groups)) in ("degree 0", "degree 0 to 1")
    assert list(groups)[-1].endswith("40")


def saved_model() -> tuple[Graph, SavedModel]:
    torch.manual_seed(0)
    graph = Graph([[0, 1], [1, 2]], torch.randn(30, 4), torch.arange(30) % 2, train=range(10))
    scores = torch.rand(50, dtype=torch.float64).sort().values
    calibration = Calibration(2.5, 0.4, 51, scores)
    return graph, SavedModel.of(GCN(4, 8, 2)).then(calibration)


def test_predictions_are_divided_by_the_temperature_and_embeddings_are_not() -> None:
    graph, saved = saved_model()
    plain = saved.before(Calibration)
    torch.testing.assert_close(predict(saved, graph), predict(plain, graph) / 2.5)
    torch.testing.assert_close(predict(saved, graph, [4, 2]), predict(plain, graph, [4, 2]) / 2.5)
    assert torch.equal(embeddings(saved, graph), embeddings(plain, graph))
    assert torch.equal(predict(saved.model, graph), predict(plain, graph))


def test_a_file_keeps_the_calibration(tmp_path: Path) -> None:
    graph, saved = saved_model()
    save_model(saved, tmp_path / "model.safetensors")
    read = load_model(tmp_path / "model.safetensors")
    assert read.calibration is not None
    assert saved.calibration is not None
    assert same(read.calibration, saved.calibration)
    assert torch.equal(read.predict(graph), saved.predict(graph))


def test_a_file_with_a_calibration_that_cannot_be_is_refused(tmp_path: Path) -> None:
    _, saved = saved_model()
    path = tmp_path / "model.safetensors"
    save_model(saved, path)
    change(path, place=1, stage={"temperature": -1.0})
    with refused():
        load_model(path)


def test_a_table_of_predictions_has_the_sets_that_are_asked_for() -> None:
    graph, saved = saved_model()
    found = predictions(saved, graph, [3, 9])
    sets = found.to_arrow(coverage=0.8)["set"].to_pylist()
    inside = model_region(saved, 0.8)(predict(saved, graph, [3, 9])).tolist()
    limit = limit_of(saved.calibration.scores, 0.8)  # type: ignore[union-attr]
    plain = predict(saved.model, graph, [3, 9])
    assert inside == CLASSES.region(plain, limit).tolist()
    assert sets == ["|".join(str(c) for c in range(2) if row[c]) for row in inside]
    assert "set" not in found.to_arrow().column_names
    with refused():
        predictions(saved.model, graph).to_arrow(coverage=0.8)


def test_a_model_without_a_calibration_promises_no_coverage() -> None:
    _, saved = saved_model()
    with refused():
        model_region(saved.before(Calibration), 0.9)
    with refused():
        model_region(replace(saved, multilabel=True), 0.9)
