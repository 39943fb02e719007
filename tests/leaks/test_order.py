"""Rows and ids that were sorted by label are found."""

from __future__ import annotations

import pyarrow as pa
import torch

from vrgcn import Graph
from vrgcn.graph.names import Names
from vrgcn.leaks.finding import FULL
from vrgcn.leaks.telling import orders_that_tell_labels

N = 500
EDGES = torch.stack([torch.arange(N), torch.arange(N).roll(1)])


def graph(labels: torch.Tensor, ids: list[str] | None = None) -> Graph:
    names = None if ids is None else Names(nodes=pa.array(ids))
    task = "regression" if labels.is_floating_point() else None
    return Graph(EDGES, torch.ones(N, 1), labels, train=range(N), names=names, task=task)


def test_shuffled_labels_have_no_order() -> None:
    labels = torch.arange(N)[torch.randperm(N)] % 5
    ids = [f"n{i:04}" for i in torch.randperm(N).tolist()]
    assert list(orders_that_tell_labels(graph(labels, ids), FULL)) == []


def test_rows_sorted_by_class_are_found() -> None:
    [finding] = orders_that_tell_labels(graph(torch.arange(N) // 100), FULL)
    assert finding.severity == "medium"
    assert "rows" in finding.text


def test_ids_that_begin_with_the_class_are_found_although_rows_are_shuffled() -> None:
    labels = torch.randperm(N) % 5
    ids = [f"{'qwert'[label]}-{i:03}" for i, label in enumerate(labels.tolist())]
    [finding] = orders_that_tell_labels(graph(labels, ids), FULL)
    assert "ids" in finding.text


def test_numbers_that_grow_with_the_row_are_found() -> None:
    numbers = torch.arange(N).float() + torch.randn(N)
    [finding] = orders_that_tell_labels(graph(numbers), FULL)
    assert "skill 1.00" in finding.text or "0.99" in finding.text
