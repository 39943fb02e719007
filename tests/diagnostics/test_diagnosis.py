"""A diagnosis: one training run, every estimator beside it, against the exact algorithm."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.diagnostics.models import Normed
from tests.messages import refused
from tests.theory.problems import (
    Embedded,
    dense_matrix,
    double_minibatches,
    exact_pass,
    gcn,
    graphsage,
    random_graph,
)
from vrgcn import GCN, Graph, TrainConfig, fit
from vrgcn.diagnostics.diagnosis import diagnose, measure
from vrgcn.diagnostics.staleness import measure_staleness
from vrgcn.diagnostics.trajectory import train_beside
from vrgcn.engine.batch import Position
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.engine.history import NEVER
from vrgcn.targets.opening import find_target

GRAPH = random_graph()
NODES = torch.arange(3, 15)
KIPF = {"dropout": 0.5, "layer_norm": False}


def compared(model: nn.Module, names=tuple(ESTIMATORS), *, warm: bool, passes: int):
    """The estimators on GRAPH, their histories empty or exact."""
    first = double_minibatches(model, GRAPH)
    batches = {name: first.sibling(ESTIMATORS[name]) for name in names}
    if warm:
        for theirs in batches.values():
            theirs.warm_start(model)
    return measure(model, batches, NODES, passes=passes)


def test_exact_has_neither_bias_nor_noise_without_dropout():
    found = compared(gcn(3), ["exact"], warm=False, passes=5)["exact"]
    parts = [*found.layers.values(), found.outputs]
    assert len(parts) == 2 + 1
    assert all(part.error == part.floor == 0 for part in parts)


def test_the_reference_is_the_dense_formula():
    model = gcn(3)
    P = dense_matrix(GRAPH, "gcn")
    # History-only over tables of zeros: own edge alone, nothing random; so its bias is known.
    found = compared(model, ["exact", "history"], warm=False, passes=3)["history"]
    first = exact_pass(model, GRAPH)[1].detach()
    exact, alone = (P @ first)[NODES], (P.diag()[:, None] * first)[NODES]
    assert found.layers[1].bias == pytest.approx(float((alone - exact).norm() / exact.norm()))
    assert found.layers[1].std == 0


def test_ns_is_unbiased_in_the_first_estimated_layer_and_noisy():
    found = compared(Embedded(2), ["exact", "ns", "is", "history"], warm=False, passes=100)
    for name in ("ns", "is"):
        first = found[name].layers[0]
        assert first.std > 0.2
        assert first.floor < 2 * first.std / 10
        assert not first.biased
    assert found["history"].layers[0].biased


@pytest.mark.parametrize("model", [gcn(3), graphsage(), Embedded(2)], ids=["gcn", "sage", "own"])
def test_cv_has_no_noise_and_no_bias_in_its_values_after_a_warm_start(model):
    names = ("cv", "cvd", "history", "gradient-only")
    warm, cold = (compared(model, ["exact", *names], warm=w, passes=3) for w in (True, False))
    for name in names:
        for layer in (*warm[name].layers.values(), warm[name].outputs):
            assert layer.error < 1e-12
    assert min(layer.std for layer in cold["cv"].layers.values()) > 0.1


def test_dropout_is_part_of_the_reference_and_its_noise_of_every_estimator():
    found = compared(gcn(dropout=0.5), ["exact", "ns", "cv", "cvd"], warm=True, passes=100)
    exact = found["exact"]
    assert exact.layers[1].std > 0.1
    assert exact.layers[1].bias == 0
    assert not found["ns"].layers[1].biased
    assert not found["cv"].layers[1].biased
    assert found["cvd"].layers[1].std < 0.8 * found["ns"].layers[1].std


@pytest.mark.parametrize("estimator", ["ns", "cvd", "history", "two-way", "two-way-cv"])
def test_training_is_that_of_fit_and_every_estimator_keeps_its_own_histories(estimator):
    config = TrainConfig(estimator=estimator, epochs=3, batch_size=17, select="last", visit="all")
    alone, model = Normed(), Normed()
    untouched = copy.deepcopy(model.state_dict())
    fitted = fit(alone, GRAPH, config).weights
    trajectory = train_beside(model, GRAPH, config)
    for name, value in trajectory.model.state_dict().items():
        assert torch.equal(value, fitted[name]), name
    assert all(torch.equal(value, untouched[name]) for name, value in model.state_dict().items())
    for name, batches in trajectory.batches.items():
        kept = batches.histories.tables
        assert set(kept) == {
            *([(1, "h")] if ESTIMATORS[name].history else []),
            *([(1, "g")] if ESTIMATORS[name].gradient_history else []),
        }
        assert all((one.written != NEVER).all() for one in kept.values())
        assert batches.step == (3 * len(batches) if kept else 0)
        assert "g" not in {kind for _, kind in kept} or kept[1, "g"].values.abs().sum() > 0
    # cvd keeps μ: nothing of it is dropped. cv keeps what dropout left.
    zeros = {
        name: float((trajectory.batches[name].histories.tables[1, "h"].values == 0).double().mean())
        for name in ("cv", "cvd")
    }
    assert zeros["cv"] > zeros["cvd"] + 0.2


def test_staleness_is_measured_at_the_rows_that_the_batch_reads():
    model = gcn()
    batches = double_minibatches(model, GRAPH, estimator="cv")
    exact = batches.sibling("exact")
    batches.histories.table(1, 8)
    target = find_target(GRAPH)
    (cold,) = measure_staleness(model, exact, batches, NODES, target)
    assert (cold.relative, cold.unwritten) == (1, 1)
    assert cold.by_age() == []
    batches.warm_start(model)
    (warm,) = measure_staleness(model, exact, batches, NODES, target)
    read = exact.batch(NODES).plan.levels[1].nodes
    assert torch.equal(warm.degree, batches.setup.P[None].adjacency.indptr.diff()[read])
    assert warm.relative < 1e-12
    # Rows of the second half are written again, in step 5, at twice the weights.
    batches.position = Position(step=5)
    with torch.no_grad():
        model.layers[0].linears[0].weight.mul_(2)
    half = read[len(read) // 2 :]
    h = exact_pass(model, GRAPH)[1].detach()
    batches.histories.tables[1, "h"].write(half, h[half], batches.step)
    batches.position = Position(step=8)
    (mixed,) = measure_staleness(model, exact, batches, NODES, target)
    bins = {(b.first, b.last): b for b in mixed.by_age()}
    assert set(bins) == {(2, 3), (8, 15)}
    assert bins[8, 15].relative == pytest.approx(0.5)
    assert bins[2, 3].relative < 1e-12
    assert bins[2, 3].rows == len(half)
    assert sum(b.rows for b in mixed.by_degree()) == len(read)
    assert all(
        b.rows == int(((mixed.degree >= b.first) & (mixed.degree <= b.last)).sum())
        for b in mixed.by_degree()
    )


def float_graph(**changed) -> Graph:
    generator = torch.Generator().manual_seed(0)
    given = {
        "edge_index": torch.randint(40, (2, 200), generator=generator),
        "features": torch.randn(40, 6, generator=generator),
        "labels": torch.arange(40) % 3,
        "train": torch.arange(24),
        "val": torch.arange(24, 32),
        "undirected": True,
    }
    return Graph(**{**given, **changed})


def test_what_an_estimator_cannot_do_is_reported_and_the_others_are_measured():
    torch.manual_seed(0)
    sparse = float_graph(features=torch.randn(40, 6).relu().to_sparse_csr())
    model = GCN(6, 8, 3, order="before", **KIPF)
    found = diagnose(model, sparse, TrainConfig(epochs=1, batch_size=10), passes=3)
    assert set(found.impossible) == {"cv", "history", "two-way"}
    assert all("sparse features under dropout" in why for why in found.impossible.values())
    assert set(found.estimators) == {"exact", "ns", "is", "cvd", "two-way-cv", "gradient-only"}
    assert set(found.estimators["cvd"].layers) == {0, 1}


SETTINGS = {
    "inductive": ({"inductive": True}, {}),
    "visit all": ({"visit": "all", "batch_size": 4}, {"train": torch.arange(8)}),
    "multi-label": ({}, {"labels": (torch.rand(40, 3) > 0.5).float()}),
    "no preprocessing": ({"preprocess": False}, {}),
    "thinned half-precision histories": ({"history_cap": 2, "history_dtype": "float16"}, {}),
}


@pytest.mark.parametrize(("settings", "changed"), SETTINGS.values(), ids=SETTINGS)
def test_settings_of_training_hold_for_every_estimator(settings, changed):
    torch.manual_seed(0)
    config = TrainConfig(**{"epochs": 2, "batch_size": 10, "estimator": "cv", **settings})
    found = diagnose(GCN(6, 8, 3, **KIPF), float_graph(**changed), config, passes=3)
    assert list(found.estimators) == list(ESTIMATORS)
    # Some of the estimators keep gradients, so all nodes are visited, but for inductive training.
    visited = 24 if settings.get("inductive") else 40
    assert found.steps == 2 * -(-visited // config.batch_size)
    assert found.preprocessed == settings.get("preprocess", True)
    assert (0 in found.estimators["cv"].layers) != found.preprocessed
    if settings.get("inductive"):
        assert int(found.staleness["cv"][0].degree.max()) <= 23
    assert all(0 < e.gradient.error < 100 for e in found.estimators.values())


def test_a_model_without_propagation_has_only_outputs_and_gradient():
    class Alone(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(6, 3)

        def forward(self, x, propagate):
            return self.linear(x)

    found = diagnose(Alone(), float_graph(), TrainConfig(epochs=1), passes=2)
    assert all(not measured.layers for measured in found.estimators.values())
    assert all(measured.gradient.error < 1e-6 for measured in found.estimators.values())
    assert not any(found.staleness.values())


def test_wide_activations_are_measured_on_some_of_their_columns():
    torch.manual_seed(0)
    wide = float_graph(features=torch.randn(40, 1500))
    found = diagnose(
        GCN(1500, 8, 3, order="before", **KIPF), wide, TrainConfig(epochs=1), passes=5
    ).estimators
    assert 0.5 < found["ns"].layers[0].std / found["exact"].layers[0].std < 5


def test_one_pass_is_too_few():
    with refused():
        diagnose(gcn(), GRAPH, passes=1)


def test_the_documented_python_runs(capsys):
    text = (Path(__file__).parents[2] / "docs" / "guides" / "diagnostics.md").read_text(
        encoding="utf-8"
    )
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    torch.manual_seed(0)
    exec(block, {"model": GCN(6, 8, 3, **KIPF), "graph": float_graph()})
    assert "minibatches" in capsys.readouterr().out


@pytest.mark.parametrize("settings", [{"schedule": "plateau"}, {"schedule": "cosine"}, {}])
def test_the_rate_is_the_one_that_is_named_whatever_a_runs_schedule(settings):
    config = TrainConfig(estimator="ns", epochs=3, batch_size=17, on_nan="rollback", **settings)
    plain = train_beside(gcn(), GRAPH, TrainConfig(estimator="ns", epochs=3, batch_size=17))
    found = train_beside(gcn(), GRAPH, config)
    for name, value in found.model.state_dict().items():
        assert torch.equal(value, plain.model.state_dict()[name])
