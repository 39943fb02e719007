"""Predictions as a table: ids, classes and probabilities as the user calls them."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, GraphSAGE, TrainConfig, fit, predict, predictions
from vrgcn.graph.names import Names

IDS = [f"p-{i}" for i in range(30)]


def graph(labels=None, **given) -> Graph:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(30) % 3 if labels is None else labels
    edges = torch.randint(30, (2, 90), generator=generator)
    features = torch.randn(30, 4, generator=generator)
    return Graph(edges, features, labels, train=range(20), **given)


def trained(g: Graph, classes: int) -> GraphSAGE:
    torch.manual_seed(0)
    model = GraphSAGE(4, 8, classes)
    fit(model, g, TrainConfig(epochs=2))
    return model


def test_a_frame_has_ids_for_its_index_and_a_probability_for_each_class():
    pytest.importorskip("pandas")
    g = graph(names=Names(pa.array(IDS), ["ant", "bee", "cat"]))
    model = trained(g, 3)
    frame = predictions(model, g).to_pandas()
    outputs = predict(model, g)
    assert frame.index.tolist() == IDS
    assert frame.index.name == "id"
    assert list(frame.columns) == ["label", "p_ant", "p_bee", "p_cat"]
    assert frame["label"].tolist() == [["ant", "bee", "cat"][i] for i in outputs.argmax(1)]
    found = torch.tensor(frame.iloc[:, 1:].to_numpy())
    assert torch.allclose(found, outputs.softmax(1), atol=1e-6)


def test_chosen_nodes_and_the_most_probable_classes():
    pytest.importorskip("pandas")
    g = graph(names=Names(pa.array(IDS), ["ant", "bee", "cat"]))
    some = predictions(trained(g, 3), g, nodes=[7, 3])
    assert len(some) == 2
    frame = some.to_pandas(top=1)
    assert frame.index.tolist() == ["p-7", "p-3"]
    assert list(frame.columns) == ["label_1", "p_1"]
    assert (frame["p_1"] >= 1 / 3).all()


@pytest.mark.parametrize("top", [0, 4])
def test_as_many_classes_as_there_are_can_be_chosen_from(top: int):
    g = graph()
    found = predictions(trained(g, 3), g)
    assert len(found.to_arrow(top=3).column_names) == 7
    with refused():
        found.to_arrow(top=top)


def test_nodes_and_classes_without_names_have_their_numbers():
    g = graph()
    table = predictions(trained(g, 3), g).to_arrow()
    assert table["id"].to_pylist() == list(range(30))
    assert set(table["label"].to_pylist()) <= {"0", "1", "2"}


def test_numbers_are_predicted_in_their_unit():
    g = graph(1000 + torch.arange(30.0), task="regression")
    found = predictions(trained(g, 1), g)
    assert found.to_arrow().column_names == ["id", "prediction"]
    assert min(found.to_arrow()["prediction"].to_pylist()) > 900
    with refused():
        _ = found.probabilities
    with refused():
        found.to_arrow(top=1)


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    g = graph()
    found = predictions(trained(g, 3), g)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refused(ImportError):
        found.to_pandas()
