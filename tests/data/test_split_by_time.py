"""Nodes that are split by time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, ModelConfig, TrainConfig
from vrgcn.costs.order import build_for
from vrgcn.graph.scaling import scale_graph
from vrgcn.targets.label_split import split_by_time
from vrgcn.training.components import look_at

MONTHS = [1, 2, 3, 4, 7, 8, 11, 12, 0, 1]


def papers(*, edge_months: list[int] | None = None) -> Graph:
    """Ten papers in a ring with a month each; the ninth has none, the last no label."""
    dates = np.array([f"2026-{m:02d}" if m else "NaT" for m in MONTHS], "datetime64[M]")
    edges = torch.stack([torch.arange(10), (torch.arange(10) + 1) % 10])
    columns = {}
    if edge_months is not None:
        columns["since"] = np.array([f"2026-{m:02d}" for m in edge_months], "datetime64[M]")
    labels = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, 0, -1])
    return Graph(
        edges,
        torch.arange(20.0).view(10, 2),
        labels,
        undirected=True,
        node_columns={"published": dates},
        edge_columns=columns,
    )


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    return {(u, v) for u, v in graph.edge_index().t().tolist() if u < v}


def test_labelled_nodes_are_split_at_the_ends_of_months() -> None:
    graph = split_by_time(papers(), "2026-04", "2026-08")
    assert graph.train.tolist() == [0, 1, 2, 3]
    assert graph.val.tolist() == [4, 5]
    assert graph.test.tolist() == [6, 7]  # the ninth has no time, the last no label


def test_training_sees_edges_among_nodes_that_are_there() -> None:
    graph = split_by_time(papers(), "2026-04", "2026-08")
    # A node without a date is there always.
    assert edges_of(graph.in_training()) == {(0, 1), (1, 2), (2, 3), (8, 9), (0, 9)}
    assert len(edges_of(graph)) == 10


def test_training_does_not_see_later_edges_of_early_nodes() -> None:
    graph = split_by_time(papers(edge_months=[1, 9, 1, 1, 1, 1, 1, 1, 1, 1]), "2026-04")
    assert edges_of(graph.in_training()) == {(0, 1), (2, 3), (8, 9), (0, 9)}


def test_the_matrix_of_training_has_no_later_edge_and_that_of_evaluation_has_all() -> None:
    graph = scale_graph(split_by_time(papers(), "2026-04", "2026-08"), "standard")[0]
    model = build_for(ModelConfig("gcn", hidden=4, learned_rows=False), graph, 2, 0)
    setup = look_at(model, graph, TrainConfig())
    assert setup.inductive
    hidden = torch.tensor([4, 5, 6, 7])
    [P] = setup.P.values()
    assert not P.adjacency.rows(hidden).num_entries
    [P] = setup.on_all_edges().P.values()
    assert P.adjacency.rows(hidden).num_entries == 8


def test_scaling_knows_training_nodes_alone() -> None:
    graph = split_by_time(papers(), "2026-04", "2026-08")
    _, scaling = scale_graph(graph, "standard")
    assert scaling.mean is not None
    assert scaling.mean.tolist() == [3, 4]


def test_without_an_end_of_validation_a_tenth_of_the_training_nodes_is_drawn() -> None:
    edges = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    dates = np.array(["2026-01"] * 30 + ["2026-09"] * 10, "datetime64[M]")
    labels = torch.arange(40) % 2
    graph = Graph(edges, torch.rand(40, 2), labels, node_columns={"t": dates})
    found = split_by_time(graph, "2026-06")
    assert (len(found.train), len(found.val)) == (27, 3)
    assert found.test.tolist() == list(range(30, 40))


@pytest.mark.parametrize(
    "until",
    [
        ("2025",),
        ("2026-06", "2026-05"),
        ("2026-06", None, "born"),
    ],
)
def test_moments_that_cannot_be_are_refused(until: tuple[str, ...]) -> None:
    with refused():
        split_by_time(papers(), *until)
