"""auto takes what is ahead on the graph at hand, and says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.messages import refused
from vrgcn import GCN, MLP, Graph, GraphSAGE, TrainConfig, fit, scale_graph
from vrgcn.costs.choice import candidate_costs, choice_by, choose_estimator
from vrgcn.costs.epoch_cost import Cost
from vrgcn.costs.order import build_for
from vrgcn.data.generate_kinds import generate_kinds
from vrgcn.data.generate_spec import GenerateSpec
from vrgcn.data.store import load_graph
from vrgcn.diagnostics.diagnosis import diagnose
from vrgcn.files.settings import AUTO
from vrgcn.models.config import ModelConfig


def ring(nodes: int, reach: int, *, sparse: bool = False) -> Graph:
    """Each node beside the `reach` next ones: of degree 2 reach."""
    ids = torch.arange(nodes)
    edges = torch.cat([torch.stack([ids, (ids + k) % nodes]) for k in range(1, reach + 1)], dim=1)
    torch.manual_seed(0)
    features = torch.rand(nodes, 6)
    return Graph(
        edges,
        features.to_sparse_csr() if sparse else features,
        torch.randint(3, (nodes,)),
        train=ids[: nodes // 2],
        val=ids[nodes // 2 : nodes // 2 + 20],
        test=ids[-20:],
        undirected=True,
    )


def chosen(model: torch.nn.Module, graph: Graph, **settings: object) -> str:
    config, choice = choose_estimator(model, graph, TrainConfig(batch_size=200, **settings))  # type: ignore[arg-type]
    assert choice is not None
    assert choice.estimator == config.estimator
    assert choice.reason
    return config.estimator


@pytest.mark.parametrize(("reach", "expected"), [(1, "exact"), (40, "two-way")])
def test_few_neighbours_are_computed_and_many_are_read(reach: int, expected: str) -> None:
    graph = ring(4000, reach)
    assert chosen(GraphSAGE(6, 8, 3), graph) == expected


def test_minibatches_of_few_nodes_are_trained_exactly_whatever_their_neighbours() -> None:
    config = TrainConfig(batch_size=4)
    assert choose_estimator(GraphSAGE(6, 8, 3), ring(4000, 40), config)[0].estimator == "exact"


def test_a_store_of_several_kinds_is_trained_by_two_way_though_few_of_its_nodes_have_labels(
    tmp_path: Path,
) -> None:
    # Two-way visits the nodes of all kinds and exact training only users with labels, a third of
    # them: even so their neighbours' neighbours are more than twice the work.
    generate_kinds(GenerateSpec(nodes=60_000, degree=20.2, features=8), tmp_path / "store")
    graph = load_graph(tmp_path / "store")
    model = build_for(ModelConfig(hidden=8), graph, graph.num_classes, seed=0)
    costs = candidate_costs(model, graph, TrainConfig(batch_size=512))
    assert len(graph.train) < 0.4 * graph.num_nodes
    assert 3 < costs["exact"].nodes / costs["two-way"].nodes < 4
    assert choice_by(costs).estimator == "two-way"


def test_a_model_without_neighbours_is_trained_exactly() -> None:
    assert chosen(MLP(6, 8, 3), ring(4000, 40)) == "exact"


def test_sparse_features_under_dropout_have_no_history_and_are_left_to_cvd() -> None:
    graph = ring(12_000, 60, sparse=True)
    model = GCN(6, 8, 3, dropout=0.5, order="before")
    config = TrainConfig(batch_size=200, epochs=1)
    assert chosen(model, graph) == "cvd"
    fit(model, graph, config)
    with refused():
        fit(model, graph, TrainConfig(batch_size=200, epochs=1, estimator="two-way"))


def test_an_estimator_that_is_named_stays() -> None:
    config = TrainConfig(estimator="ns")
    assert choose_estimator(GraphSAGE(6, 8, 3), ring(4000, 40), config) == (config, None)


def test_fit_and_diagnose_use_what_was_chosen_and_say_so() -> None:
    graph, config = ring(4000, 40), TrainConfig(batch_size=200, epochs=1, seed=3)
    assert config.estimator == AUTO
    told: list[str] = []
    weights = []
    for settings in (config, TrainConfig(batch_size=200, epochs=1, seed=3, estimator="two-way")):
        torch.manual_seed(1)
        model = GraphSAGE(6, 8, 3)
        fit(model, graph, settings, on_note=told.append)
        weights.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))
    assert len(told) == 1
    assert told[0].startswith("estimator two-way: it computes")
    assert diagnose(model, graph, config, passes=2).config.estimator == "two-way"


def test_the_choice_does_not_depend_on_how_the_same_is_said() -> None:
    """A relation by name, and a model that was trained before on features scaled otherwise."""
    graph, config = ring(4000, 40), TrainConfig(batch_size=200, epochs=1)

    class Named(GraphSAGE):
        def forward(self, x, propagate):  # type: ignore[no-untyped-def]
            return super().forward(x, _Over(propagate))

    model = Named(6, 8, 3)
    found, _ = choose_estimator(model, graph, config, {"cites": "mean"})
    assert found.estimator == chosen(GraphSAGE(6, 8, 3), graph) == "two-way"

    few, trained = ring(400, 1), GraphSAGE(6, 8, 3, layers=2)
    assert fit(trained, few, config).curve
    scaled, _ = scale_graph(few, "standard")
    notes: list[str] = []
    fit(trained, scaled, config, on_note=notes.append)
    assert any(note.startswith("estimator exact") for note in notes), notes


class _Over:
    """A `propagate` that names its relation."""

    def __init__(self, propagate: Any) -> None:
        self.propagate = propagate

    def __call__(self, h: torch.Tensor) -> torch.Tensor:
        return self.propagate(h, over="cites")  # type: ignore[no-any-return]

    def own(self, h: torch.Tensor) -> torch.Tensor:
        return self.propagate.own(h)  # type: ignore[no-any-return]

    def beside(self, h: torch.Tensor) -> torch.Tensor:
        return self.propagate.beside(h, over="cites")  # type: ignore[no-any-return]


def test_entries_of_sparse_features_count_as_work() -> None:
    exact, other = Cost(1400, 10, {}, steps=1), Cost(1000, 10, {}, steps=1)
    assert exact.hardly_more(other)
    assert not replace(exact, entries=400_000).hardly_more(replace(other, entries=40_000))
