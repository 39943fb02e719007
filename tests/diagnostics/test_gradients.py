"""Gradients over minibatches: an estimator that is right in the mean is seen to be so."""

from __future__ import annotations

import pytest
import torch

from tests.theory.problems import RAW, double_minibatches, gcn, random_graph
from vrgcn import Graph
from vrgcn.diagnostics.gradients import Gradients, layer_of, measure_gradients, reached_nodes
from vrgcn.diagnostics.staleness import measure_staleness
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.targets.opening import find_target
from vrgcn.training.gradients import gradient, trainable

GRAPH = random_graph()
FEW_TRAINED = Graph(
    GRAPH.edge_index(), GRAPH.features, GRAPH.labels,
    edge_weight=GRAPH.adjacency.values, train=torch.arange(20),
)  # fmt: skip


def siblings(model, names, graph=GRAPH, batch_size=12, **settings) -> dict[str, MiniBatches]:
    first = double_minibatches(model, graph, nodes="all", batch_size=batch_size, **settings)
    return {name: first.sibling(name) for name in names}


def fill(model, batches: MiniBatches) -> None:
    """All tables exact: one minibatch of all nodes, which needs no history."""
    batches.warm_start(model)
    batch = batches.batch(batches.visits.backward)
    gradient(find_target(batches.graph), batch, batch.run(model), trainable(model))
    batch.commit()


def measured(model, batches, passes=60) -> dict[str, Gradients]:
    target = find_target(batches["exact"].graph)
    return measure_gradients(
        model, batches, "exact", target, passes=passes, seed=3, count=lambda done: None
    )


@pytest.mark.parametrize("graph", [GRAPH, FEW_TRAINED], ids=["all trained", "few trained"])
def test_two_way_has_the_exact_gradient_in_the_mean_over_minibatches(graph):
    model = gcn(3)
    batches = siblings(model, ["exact", "two-way", "history"], graph)
    fill(model, batches["two-way"])
    batches["history"].warm_start(model)
    found = measured(model, batches)
    assert not found["two-way"].whole.biased
    assert found["two-way"].whole.floor < 0.6
    assert found["history"].whole.biased
    assert found["exact"].whole.std > 0.5  # the choice of minibatches
    assert found["two-way"].whole.std != found["exact"].whole.std
    assert (found["exact"].whole.bias, found["exact"].whole.floor) == (0, 0)
    # The last layer's weights are above all estimates: the two are the same on each minibatch.
    last = found["two-way"].layers["layers.2"]
    assert last.bias < 1e-12
    assert last.std == pytest.approx(found["exact"].layers["layers.2"].std)


def test_wrong_gradients_in_the_tables_are_a_bias():
    model = gcn(3)
    batches = siblings(model, ["exact", RAW], fanout=0)
    fill(model, batches[RAW])
    for (_, kind), table in batches[RAW].histories.tables.items():
        if kind == "g":
            table.values.mul_(-3)
    assert measured(model, batches)[RAW].layers["layers.0"].biased


def test_a_minibatch_of_all_nodes_has_the_exact_gradient_whatever_the_tables_hold():
    model = gcn(3)
    first = double_minibatches(model, GRAPH, nodes="all", batch_size=60)
    batches = {name: first.sibling(name) for name in ("exact", "two-way")}
    for one in measured(model, batches, passes=3)["two-way"].layers.values():
        assert one.error < 1e-12


def test_measuring_leaves_tables_and_weights_as_they_were():
    model = gcn(3, dropout=0.5)
    batches = siblings(model, ["exact", "two-way", "two-way-cv"])
    fill(model, batches["two-way"])
    tables = batches["two-way"].histories.state_dict()
    before = {name: value.clone() for name, value in tables.items()}
    measured(model, batches, passes=2)
    assert all(torch.equal(value, before[name]) for name, value in tables.items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_minibatches_are_of_nodes_that_every_estimator_visits():
    # A path of ten nodes, the first of them trained on: gradients reach as far as two hops.
    path = torch.stack([torch.arange(9), torch.arange(1, 10)])
    graph = Graph(
        path, torch.ones(10, 5, dtype=torch.float64), torch.zeros(10, dtype=torch.int64),
        train=[0], undirected=True,
    )  # fmt: skip
    batches = siblings(gcn(3), ["exact", "two-way"], graph, batch_size=2)
    assert reached_nodes({"exact": batches["exact"]}).tolist() == list(range(10))
    assert reached_nodes(batches).tolist() == [0, 1, 2]


def test_layers_are_modules_with_a_number():
    assert layer_of("layers.1.linears.0.weight") == "layers.1"
    assert layer_of("embed.weight") == "embed"
    assert layer_of("scale") == "scale"


def test_staleness_of_gradients_is_what_a_backward_pass_would_write():
    model = gcn(3)
    batches = siblings(model, ["exact", RAW])
    fill(model, batches[RAW])
    nodes, target = torch.arange(3, 15), find_target(GRAPH)

    def tables():
        two_way, exact = batches[RAW], batches["exact"]
        found = measure_staleness(model, exact, two_way, nodes, target)
        return {(one.level, one.kind): one for one in found}

    fresh = tables()
    assert set(fresh) == {(1, "h"), (2, "h"), (1, "g"), (2, "g")}
    assert all(one.relative < 1e-12 for one in fresh.values())
    assert len(fresh[1, "g"].age) == len(nodes)
    assert (fresh[1, "g"].age == 1).all()
    kept = batches[RAW].histories.tables
    kept[2, "g"].values.mul_(2)
    stale = tables()
    assert stale[2, "g"].relative == pytest.approx(1)
    assert stale[1, "g"].relative > 0.05  # includes the error of the tables above
    assert stale[2, "h"].relative < 1e-12
    # Nothing of it stays.
    assert tables()[2, "g"].relative == pytest.approx(1)


def test_minibatches_without_a_training_node_are_counted_and_tell_nothing():
    graph = Graph(GRAPH.edge_index(), GRAPH.features, GRAPH.labels, train=[0])
    model = gcn(3)
    first = double_minibatches(model, graph, nodes="all", batch_size=1)
    batches = {name: first.sibling(ESTIMATORS[name]) for name in ("exact", "two-way")}
    fill(model, batches["two-way"])
    none = measured(model, batches, passes=2)
    assert [found.trained for found in none.values()] == [0, 0]
    assert not any(found.known for found in none.values())
    some = measured(model, batches, passes=100)["two-way"]
    assert some.known
    assert 0 < some.trained < 20
