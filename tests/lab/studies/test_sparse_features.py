"""The table of a graph has a row for dense columns and one for each order of the products."""

from __future__ import annotations

from pathlib import Path

from lab.league.real_graphs import Entry
from lab.studies import sparse_features


def test_orders_are_compared_with_dense_columns_and_the_one_of_auto_is_marked(
    study, graph, monkeypatch
):
    sparse = graph.with_features(graph.features.to_sparse_csr())
    monkeypatch.setattr(sparse_features, "data_folder", Path)
    monkeypatch.setattr(sparse_features, "load", lambda *given: sparse)
    monkeypatch.setattr(sparse_features, "entry_of", Entry)
    shown = study(sparse_features, "--graphs", "cora", "--epochs", 1)
    rows = [line.split(" | ") for line in shown.splitlines()[2:]]
    assert [row[1] for row in rows] == ["64 dense columns", "never (auto)", "always"]
    assert all(float(cell.strip("| ")) > 0 for row in rows for cell in row[2:])
