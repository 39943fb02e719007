"""A task is a file and a line in TASKS: one that this file adds is trained, stored and split."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.messages import refused
from vrgcn import (
    MLP,
    Graph,
    SavedModel,
    TrainConfig,
    fit,
    load_graph,
    load_model,
    predict,
    random_split,
    save_graph,
    save_model,
)
from vrgcn.data.id_columns import IdColumns
from vrgcn.data.predictions import PredictionRows
from vrgcn.graph.names import Names
from vrgcn.tasks import TASKS, find_task
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.regression import Number
from vrgcn.tasks.task import Criterion, Facts


class Counts(Number):
    """Counts of something: the output is the logarithm of their mean, the loss that of Poisson."""

    name = "counts"
    label = "one count per node"
    metrics = ("mae",)
    unused = ("loss", "class_weights", "label_smoothing")

    def needs(self, settings: LossConfig) -> tuple[str, ...]:
        return ()

    def criterion(self, settings: LossConfig, facts: Facts) -> Criterion:
        return Poisson()

    def array(self, outputs: Tensor) -> Tensor:
        return super().array(outputs).exp()


class Poisson:
    centre = 0.0

    def prepare(self, model: nn.Module) -> None:
        pass

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return outputs[:, 0].exp() - labels * outputs[:, 0]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Graph:
    """Nodes of two kinds, 20 and 2 of something on average."""
    monkeypatch.setitem(TASKS, "counts", "Counts")
    monkeypatch.setitem(sys.modules, "vrgcn.tasks.counts", sys.modules[__name__])
    generator = torch.Generator().manual_seed(0)
    kind = torch.arange(400) % 2
    labels = torch.poisson(torch.tensor([20.0, 2.0])[kind], generator=generator)
    labels[::50] = torch.nan
    features = nn.functional.one_hot(kind, 2).float()
    return Graph([], features, labels, task="counts")


def test_a_new_task_is_split_stored_trained_and_shown(counted: Graph, tmp_path: Path) -> None:
    graph = random_split(counted, (0.6, 0.2, 0.2))
    assert int(graph.labelled.sum()) == len(graph.train) + len(graph.val) + len(graph.test) == 392
    save_graph(graph, tmp_path / "g")
    graph = load_graph(tmp_path / "g")
    assert graph.task == "counts"
    assert "counts, train=" in repr(graph)

    torch.manual_seed(0)
    model = MLP(2, 8, 1, dropout=0.0, bias=True)
    result = fit(model, graph, TrainConfig(epochs=60, batch_size=64, select="last"))
    assert result.metric.title == "MAE"
    nodes = torch.tensor([0, 1])
    outputs = predict(model, graph, nodes)
    means = [float(graph.labels[kind::2].nanmean()) for kind in (0, 1)]
    assert outputs[:, 0].exp().tolist() == pytest.approx(means, rel=0.15)
    rows = PredictionRows(IdColumns(Names()), find_task("counts"), [], top=None).batch(
        nodes, outputs
    )
    assert rows.schema.names == ["id", "prediction"]


def test_settings_and_metrics_of_other_tasks_are_refused(counted: Graph) -> None:
    graph, model = random_split(counted, (0.6, 0.2, 0.2)), MLP(2, 8, 1)
    with refused():
        fit(model, graph, TrainConfig(epochs=1, loss="mae"))
    with refused():
        fit(model, graph, TrainConfig(epochs=1, metric="rmse"))


def test_a_model_file_says_its_task(counted: Graph, tmp_path: Path) -> None:
    graph, model = random_split(counted, (0.6, 0.2, 0.2)), MLP(2, 8, 1)
    fit(model, graph, TrainConfig(epochs=1))
    assert SavedModel.of(model).task == "counts"
    save_model(model, tmp_path / "model.safetensors")
    assert load_model(tmp_path / "model.safetensors").task == "counts"
