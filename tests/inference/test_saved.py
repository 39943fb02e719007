"""Saved models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.messages import refused
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.scaling import Scaling, scale_graph
from vrgcn.graph.sparse import select_columns
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.models.models import GCN, GraphSAGE
from vrgcn.runs.fit import fit
from vrgcn.training.config import TrainConfig


def test_a_model_comes_back_whole(tmp_path: Path):
    model = GCN(4, 8, 3, layers=3, dropout=0.1, order="before", bias=True).double().eval()
    x = torch.randn(5, 4, dtype=torch.float64)
    scaling = Scaling.fit("standard", x, torch.arange(5))
    saved = SavedModel(model, "mean", scaling, True, ["a", "b", "ü"], list("wxyz"))
    save_model(saved, tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert torch.equal(model(x, lambda h: h), loaded.model(x, lambda h: h))
    assert torch.equal(loaded.scaling.apply(x), scaling.apply(x))
    assert loaded.model.arguments == model.arguments
    assert (loaded.propagation, loaded.multilabel) == ("mean", True)
    assert (loaded.classes, loaded.features) == (["a", "b", "ü"], ["w", "x", "y", "z"])
    assert [file.name for file in tmp_path.iterdir()] == ["m.safetensors"]


def test_a_model_that_fit_trained_is_saved_with_all_it_was_trained_on(tmp_path: Path):
    names = Names(classes=["a", "b", "c"], features=list("wxyz"))
    graph, scaling = scale_graph(_graph(names), "standard")
    model = GCN(4, 8, 3)
    fit(model, graph, TrainConfig(epochs=1, propagation="mean"))
    save_model(model, str(tmp_path / "m.safetensors"))
    loaded = load_model(str(tmp_path / "m.safetensors"))
    assert (loaded.classes, loaded.features) == (["a", "b", "c"], list("wxyz"))
    assert (loaded.task, loaded.propagation) == ("classes", "mean")
    assert loaded.scaling.same(scaling)


def test_a_model_of_blocks_scales_a_graph_as_it_was_loaded_in_any_layout(tmp_path: Path):
    dense, tags = torch.randn(4, 2), torch.tensor([[1.0, 3], [0, 2], [0, 0], [4, 0]])
    x = Blocks.beside([dense, tags.to_sparse_csr()])
    names = Names(features=list("wxyz"))
    raw = Graph([[0, 1, 2], [1, 2, 3]], x, [0, 1, 0, 1], train=[0, 1, 2], names=names)
    graph, scaling = scale_graph(raw, "blocks")
    model = GCN(4, 8, 2)
    fit(model, graph, TrainConfig(epochs=1))
    save_model(model, tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert loaded.scaling.same(scaling)
    outputs = loaded.predict(raw)
    assert torch.equal(outputs, predict(model, graph))
    assert torch.allclose(loaded.predict(raw.with_features(x.to_dense())), outputs)
    features = select_columns(x, torch.tensor([3, 0, 2, 1]))
    turned = raw.replace(features=features, names=Names(features=list("zwyx")))
    assert torch.allclose(loaded.predict(turned), outputs)


def test_a_model_of_numbers_is_saved_as_one(tmp_path: Path):
    graph = _graph()
    assert graph.labels is not None
    prices = Graph(
        graph.edge_index(), graph.features, graph.labels.double(), train=[0, 1], task="regression"
    )
    model = GCN(4, 8, 1)
    fit(model, prices, TrainConfig(epochs=1))
    save_model(model, tmp_path / "m.safetensors")
    assert load_model(tmp_path / "m.safetensors").task == "regression"


def test_a_model_of_other_features_than_the_named_ones_can_be_loaded(tmp_path: Path):
    graph = _graph(Names(features=list("wxyz")))
    model = GCN(2, 8, 3)
    fit(model, graph.with_features(graph.features[:, :2]), TrainConfig(epochs=1))
    save_model(model, tmp_path / "m.safetensors")
    assert load_model(tmp_path / "m.safetensors").features is None


def test_the_folder_of_a_run_stands_for_its_model(tmp_path: Path):
    save_model(GCN(4, 8, 3), tmp_path / "model.safetensors")
    assert isinstance(load_model(tmp_path).model, GCN)
    (tmp_path / "empty").mkdir()
    with refused(FileNotFoundError):
        load_model(tmp_path / "empty")


def test_what_is_no_model_is_not_saved(tmp_path: Path):
    with refused(TypeError):
        save_model("m", tmp_path / "m")  # type: ignore[arg-type]


def test_files_that_are_no_models_are_named(tmp_path: Path):
    with refused(FileNotFoundError):
        load_model(tmp_path / "nothing.safetensors")
    (tmp_path / "text").write_text("not a model")
    with refused():
        load_model(tmp_path / "text")
    save_file({"w": torch.ones(2)}, tmp_path / "other")
    with refused():
        load_model(tmp_path / "other")
    future = {"vrgcn-model": json.dumps({"version": 99})}
    save_file({"w": torch.ones(2)}, tmp_path / "future", metadata=future)
    with refused():
        load_model(tmp_path / "future")


def test_a_cut_off_file_is_refused(tmp_path: Path):
    path = tmp_path / "m.safetensors"
    save_model(SavedModel(GCN(4, 8, 3), "gcn"), path)
    path.write_bytes(path.read_bytes()[:-10])
    with refused():
        load_model(path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_of_numbers_comes_back_with_its_unit(dtype, tmp_path: Path):
    model = GraphSAGE(4, 8, 1, dropout=0.0).to(dtype).eval()
    x = torch.randn(5, 4, dtype=dtype)
    propagate = _Own()
    plain = model(x, propagate)
    model.set_output_scale(1.7e9, 3.5)
    save_model(SavedModel(model, "mean", regression=True), tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert (loaded.task, loaded.regression, loaded.multilabel) == ("regression", True, False)
    assert torch.equal(loaded.model(x, propagate), model(x, propagate))
    assert torch.equal(loaded.model(x, propagate), plain.double() * 3.5 + 1.7e9)
    assert next(loaded.model.parameters()).dtype == dtype


@pytest.mark.parametrize("kind", ["none", "standard"])
def test_columns_are_put_in_order_once_however_often_a_graph_is_prepared(kind: str):
    graph, scaling = scale_graph(_graph(Names(features=list("wxyz"))), kind)
    saved = SavedModel(GCN(4, 8, 3), "gcn", scaling, features=list("wxyz"))
    expected = saved.predict(graph)
    plain = _graph().features
    for order in ([2, 0, 3, 1], [1, 2, 0, 3, 0]):  # the last has a column too many
        columns = ["wxyz"[i] for i in order[:4]] + ["more"] * (len(order) - 4)
        other = Graph(graph.edge_index(), plain[:, order], names=Names(features=columns))
        prepared = saved.prepare(other)
        assert prepared.names.features == list("wxyz")
        assert torch.equal(saved.predict(other), expected)
        assert torch.equal(saved.predict(prepared), expected)


def _graph(names: Names | None = None) -> Graph:
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    return Graph(
        edges,
        10 + 5 * torch.randn(5, 4),
        torch.tensor([0, 1, 2, 0, 1]),
        train=[0, 1, 2],
        undirected=True,
        names=names,
    )


class _Own:
    """P = I."""

    def __call__(self, h: torch.Tensor) -> torch.Tensor:
        return h

    def beside(self, h: torch.Tensor) -> torch.Tensor:
        return torch.cat([h, h], dim=-1)


def _description(path: Path) -> dict:
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["vrgcn-model"])
