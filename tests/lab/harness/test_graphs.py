"""Graphs by name, scaled as their data sets say."""

from __future__ import annotations

from pathlib import Path

import torch

from lab.harness import graphs
from vrgcn.data.opening import Opened


def test_the_features_are_scaled_as_the_data_set_says(graph, monkeypatch):
    asked = []

    def open_graph(dataset, data_root):
        asked.append((dataset, data_root))
        return Opened(graph.with_features(7 + 3 * graph.features), "standard", None)

    monkeypatch.setattr(graphs, "open_graph", open_graph)
    rows = graphs.scaled_graph("some", Path("raw")).features[graph.train]
    assert asked == [("some", Path("raw"))]
    assert torch.allclose(rows.mean(0), torch.zeros(rows.shape[1]), atol=1e-5)
    assert torch.allclose(rows.std(0, correction=0), torch.ones(rows.shape[1]), atol=1e-5)
