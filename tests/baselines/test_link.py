"""LINK: the formula, and rows that follow their nodes."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.problems import TASKS, small
from tests.messages import refused
from vrgcn.baselines import link
from vrgcn.baselines.link import fit_link
from vrgcn.baselines.problem import Problem
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.live.live import Live
from vrgcn.tasks import find_task


@pytest.mark.parametrize("powers", link._POWERS)
def test_outputs_are_the_formula_of_dense_matrices(powers, monkeypatch) -> None:
    monkeypatch.setattr(link, "_POWERS", (powers,))
    graph = small()
    model = fit_link(Problem.of(graph))
    A = graph.adjacency.to_torch(graph.dtype).to_dense().fill_diagonal_(0)
    P = A / A.sum(1, keepdim=True).clamp(min=1) ** powers[0]
    wanted = P @ model.neighbours.rows + model.bias
    torch.testing.assert_close(predict(model, graph), wanted, rtol=1e-4, atol=1e-5)
    # A node that no training node has for a neighbour tells nothing.
    unseen = (A[graph.train] == 0).all(0)
    assert unseen.any()
    assert (model.neighbours.rows[unseen] == 0).all()


def followers(nodes: int = 200) -> Graph:
    """Every node follows four accounts; the accounts it is followed by tell its class."""
    generator = torch.Generator().manual_seed(3)
    group = torch.randint(0, 2, (nodes,), generator=generator)
    followed = torch.arange(nodes).repeat_interleave(4)
    hubs = 2 * torch.randint(0, 5, followed.shape, generator=generator) + group[followed]
    order = torch.randperm(nodes, generator=generator) + 10
    labels = torch.cat([torch.zeros(10, dtype=torch.int64), group])
    edges = torch.stack([followed + 10, hubs])  # messages go from source to target
    splits = {"train": order[:80], "val": order[80:140], "test": order[140:]}
    return Graph(edges, torch.ones(nodes + 10, 1), labels, **splits)


def test_a_directed_graph_is_read_in_both_directions_where_that_tells_more(tmp_path) -> None:
    graph = followers()
    model = fit_link(Problem.of(graph))
    assert model.propagation == "both"
    outputs = predict(model, graph)
    assert graph.labels is not None
    right = outputs[graph.test].argmax(1) == graph.labels[graph.test]
    assert right.float().mean() > 0.95
    save_model(SavedModel.of(model), tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert torch.equal(loaded.predict(graph), outputs)
    with refused():
        Live(loaded, graph)


@pytest.mark.parametrize("task", TASKS)
def test_who_the_neighbours_are_tells_labels(task: str) -> None:
    graph = small(task, nodes=120)
    assert graph.labels is not None
    outputs = predict(fit_link(Problem.of(graph)), graph)[graph.test]
    found = find_task(task).find_metric().compute(outputs, graph.labels[graph.test])
    assert found < 7 if task == "regression" else found > 0.7
