"""Models of one's own as files: what is kept of them, and how they are made again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.messages import refused
from tests.theory.problems import random_graph
from vrgcn import Graph, TrainConfig, fit, load_model, predict, save_model, scale_graph

GRAPH = random_graph()
FILE = "m.safetensors"


class Residual(nn.Module):
    """A model as in the README; `tied` has the same weights under two names."""

    propagation = "mean"

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.layer = nn.Linear(hidden, hidden)
        self.tied = self.layer
        self.last = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, propagate) -> Tensor:
        h = torch.relu(self.first(x))
        h = propagate.own(h) + torch.relu(self.layer(propagate(h)))
        return self.last(h)


class Remembering(Residual):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__(features, hidden, classes)
        self.arguments = {"features": features, "hidden": hidden, "classes": classes}


class ByItself(Residual):
    """Its matrix is no name but a method."""

    def propagation(self, graph: Graph):  # type: ignore[override]
        from vrgcn.graph.propagation import build_propagation

        return build_propagation("gcn", graph)


def raw_graph() -> Graph:
    """Features far from mean 0 and deviation 1."""
    return GRAPH.with_features(GRAPH.features.float() * 50 + 1000)


def train(kind: type[Residual], tmp_path: Path) -> tuple[Residual, Tensor]:
    """A model that learned from scaled features, in a file, and its outputs."""
    graph = scale_graph(raw_graph(), "standard")[0]
    model = kind(graph.num_features, 8, graph.num_classes)
    fit(model, graph, TrainConfig(epochs=1))
    save_model(model, tmp_path / FILE)
    return model, predict(model, graph)


def shapes() -> tuple[int, int, int]:
    return GRAPH.num_features, 8, GRAPH.num_classes


@pytest.mark.parametrize("kind", [Residual, ByItself])
def test_a_function_makes_the_model_and_the_file_the_rest(kind: type[Residual], tmp_path: Path):
    _, wanted = train(kind, tmp_path)
    saved = load_model(tmp_path / FILE, model=lambda: kind(*shapes()))
    torch.testing.assert_close(saved.predict(raw_graph()), wanted)
    assert not saved.model.training


def test_a_model_is_given_the_weights(tmp_path: Path):
    _, wanted = train(Residual, tmp_path)
    mine = Residual(*shapes())
    saved = load_model(tmp_path / FILE, model=mine)
    assert saved.model is mine
    torch.testing.assert_close(saved.predict(raw_graph()), wanted)


def test_a_class_is_called_with_the_arguments_that_the_model_had(tmp_path: Path):
    _, wanted = train(Remembering, tmp_path)
    saved = load_model(tmp_path / FILE, model=Remembering)
    torch.testing.assert_close(saved.predict(raw_graph()), wanted)
    by_name = load_model(tmp_path / FILE, model=f"{__name__}:Remembering")
    torch.testing.assert_close(by_name.predict(raw_graph()), wanted)


def test_nothing_is_imported_that_was_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine_elsewhere.py").write_text(
        "from tests.inference.test_own_models import Remembering as Elsewhere\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    train(Remembering, tmp_path)
    with refused():
        load_model(tmp_path / FILE)
    assert "mine_elsewhere" not in sys.modules
    load_model(tmp_path / FILE, model="mine_elsewhere:Elsewhere")
    assert sys.modules.pop("mine_elsewhere")


@pytest.mark.parametrize(
    "factory",
    [
        "no_such_module_here:Mine",
        f"{__name__}:Nobody",
        "Residual",
        f"{__name__}:FILE",
        Residual,
        lambda: 3,
        lambda: Residual(2, 3, 4),
    ],
)
def test_what_does_not_make_the_model_is_said(factory, tmp_path: Path):
    train(Residual, tmp_path)
    with refused((ValueError, TypeError)):
        load_model(tmp_path / FILE, model=factory)


def test_one_of_our_own_models_needs_no_function(tmp_path: Path):
    from vrgcn import GCN

    save_model(GCN(4, 8, 3), tmp_path / FILE)
    with refused():
        load_model(tmp_path / FILE, model=GCN)


def test_a_matrix_of_ones_own_is_to_be_given_again(tmp_path: Path):
    from vrgcn import GCN
    from vrgcn.graph.propagation import build_propagation

    graph = raw_graph()
    model = GCN(graph.num_features, 8, graph.num_classes)
    matrix = build_propagation("mean", graph)
    fit(model, graph, TrainConfig(epochs=1, learning_rate=1e-6), propagation=matrix)
    save_model(model, tmp_path / FILE)
    saved = load_model(tmp_path / FILE)
    for given in (model, saved):
        with refused():
            predict(given, graph)
    outputs = saved.predict(graph, propagation=matrix)
    torch.testing.assert_close(outputs, predict(model, graph, propagation="mean"))
