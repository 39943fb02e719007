"""Exact sweeps: what they keep between each other. That they are exact, theory/test_theorem1.py
proves."""

from __future__ import annotations

import pytest
import torch

from tests.messages import refused
from tests.theory.problems import MODELS, random_graph
from vrgcn import (
    GCN,
    Graph,
    MiniBatches,
    SavedModel,
    TrainConfig,
    fit,
    load_model,
    predict,
    save_model,
    scale_graph,
)
from vrgcn.graph.names import Names
from vrgcn.graph.sparse import CSR
from vrgcn.inference.predict import exact_sweeps
from vrgcn.inference.sweeps import ExactSweeps

GRAPH = random_graph()


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of P times the features, counted."""
    rows: list[int] = []
    product = CSR.__matmul__

    def counted(self: CSR, dense: torch.Tensor) -> torch.Tensor:
        if dense.shape[1] == GRAPH.num_features:
            rows.append(self.num_rows)
        return product(self, dense)

    monkeypatch.setattr(CSR, "__matmul__", counted)
    return rows


def sweeps(graph: Graph = GRAPH, layers: int = 3) -> ExactSweeps:
    model = MODELS["gcn"](layers).double()
    return exact_sweeps(model, graph)


def test_features_are_averaged_once_for_all_sweeps(products: list[int]) -> None:
    made = sweeps()
    first = made.outputs()
    assert sum(products) == GRAPH.num_nodes
    assert torch.equal(made.outputs(), first)
    assert sum(products) == GRAPH.num_nodes  # they do not depend on the weights


def test_averages_are_kept_for_the_nodes_that_were_needed(products: list[int]) -> None:
    made = sweeps(layers=2)
    some = made.outputs(torch.tensor([7]))
    near = sum(products)
    assert 0 < near < GRAPH.num_nodes
    everyone = made.outputs()
    torch.testing.assert_close(everyone[[7]], some)
    assert GRAPH.num_nodes <= sum(products) <= near + GRAPH.num_nodes


def test_one_sweep_and_sparse_averages_keep_none() -> None:
    one = sweeps(layers=1)
    one.outputs()
    assert one.setup.averages[None].values is None
    wide = torch.zeros(GRAPH.num_nodes, 200, dtype=torch.float64)
    wide[torch.arange(GRAPH.num_nodes), torch.arange(GRAPH.num_nodes) * 3] = 1.0
    model = GCN(200, 4, 3).double()
    sparse, dense = (
        exact_sweeps(model, GRAPH.with_features(features))
        for features in (wide.to_sparse_csr(), wide)
    )
    torch.testing.assert_close(sparse.outputs(), dense.outputs())
    assert sparse.setup.averages[None].values is None


def test_averages_of_sparse_features_that_are_dense_are_kept_as_those_of_dense_ones() -> None:
    sparse = sweeps(GRAPH.with_features(GRAPH.features.to_sparse_csr()))
    torch.testing.assert_close(sparse.outputs(), sweeps().outputs())
    averages = sparse.setup.averages[None]
    torch.testing.assert_close(averages.table, averages.P @ GRAPH.features)


def test_exact_sweeps_share_the_setup_of_training_and_leave_its_histories_alone() -> None:
    model = MODELS["gcn"](2, order="before", dropout=0.5).double()
    training = MiniBatches(model, GRAPH, estimator="cv", history_dtype="float64")
    training.warm_start(model)  # the history of its first call is of the features
    made = ExactSweeps(model, training.setup)
    assert torch.equal(made.outputs(), predict(model, GRAPH))
    assert torch.equal(training.histories.tables[0, "h"].values, GRAPH.features)


def test_averages_may_lie_in_a_file(tmp_path) -> None:
    model = MODELS["gcn"](2).double()
    wanted = predict(model, GRAPH)
    assert torch.equal(predict(model, GRAPH, directory=tmp_path), wanted)
    assert (tmp_path / "averages-0.bin").stat().st_size == GRAPH.features.numel() * 8


@pytest.fixture
def raw() -> Graph:
    """Features far from mean 0 and deviation 1."""
    return GRAPH.with_features(GRAPH.features.float() * 50 + 1000)


@pytest.fixture
def trained(raw: Graph, tmp_path) -> tuple[GCN, Graph]:
    """A model that learned from scaled features, and those; saved as model.safetensors."""
    scaled, _ = scale_graph(raw, "standard")
    model = GCN(raw.num_features, 8, raw.num_classes)
    fit(model, scaled, TrainConfig(epochs=2, propagation="mean"))
    save_model(model, tmp_path / "model.safetensors")
    return model, scaled


def test_a_saved_model_predicts_for_a_graph_as_it_was_loaded(raw, trained, tmp_path) -> None:
    model, scaled = trained
    wanted = predict(model, scaled, propagation="mean")
    saved = load_model(tmp_path)
    for outputs in (
        predict(saved, raw),
        saved.predict(raw),
        predict(saved, scaled),  # not scaled twice
        predict(saved.model, saved.prepare(raw)),  # by the matrix of its training
        predict(saved, raw, directory=tmp_path),
    ):
        torch.testing.assert_close(outputs, wanted)
    torch.testing.assert_close(saved.predict(raw, nodes=[7, 3]), wanted[[7, 3]])


@pytest.mark.parametrize("kind", ["none", "row"])
def test_a_bare_model_refuses_columns_in_another_order(raw, kind):
    columns = [f"f{i}" for i in range(raw.num_features)]
    edges = raw.edge_index()

    def graph(order) -> Graph:
        names = Names(features=[columns[i] for i in order])
        return Graph(edges, raw.features[:, order], raw.labels, train=raw.train, names=names)

    order = list(range(raw.num_features))
    same, turned = graph(order), graph(order[::-1])
    model = GCN(raw.num_features, 8, raw.num_classes)
    fit(model, scale_graph(same, kind)[0], TrainConfig(epochs=1))
    saved = SavedModel.of(model)
    assert torch.allclose(saved.predict(turned), saved.predict(same), atol=1e-5)
    scaled = scale_graph(turned, kind)[0]
    with refused():
        predict(model, scaled)
    fit(model, scaled, TrainConfig(epochs=1))  # the model then belongs to these features
    assert len(predict(model, scaled)) == raw.num_nodes


def test_a_bare_model_refuses_features_that_are_not_scaled_as_in_training(raw, trained, tmp_path):
    model, _ = trained
    for bare in (model, load_model(tmp_path).model):
        with refused():
            predict(bare, raw)
        with refused():
            MiniBatches(bare, raw)
    otherwise, _ = scale_graph(raw, "row")
    for given in (model, load_model(tmp_path)):
        with refused():
            predict(given, otherwise)


def test_what_is_fitted_on_features_as_they_are_predicts_on_them(raw, trained) -> None:
    model, _ = trained
    fit(model, raw, TrainConfig(epochs=1, learning_rate=1e-6))  # it is trained on these now
    assert predict(model, raw).shape == (raw.num_nodes, raw.num_classes)


def test_what_is_no_model_is_said() -> None:
    with refused(TypeError):
        predict(3, GRAPH)  # type: ignore[call-overload]
