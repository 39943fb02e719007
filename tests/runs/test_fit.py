"""Training: reproducible, inductive where it says so, keeps the weights it should."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from tests.messages import refused
from vrgcn import (
    ESTIMATORS,
    GCN,
    Graph,
    GraphSAGE,
    MiniBatches,
    TrainConfig,
    TrainResult,
    fit,
    predict,
)
from vrgcn.engine.history import NEVER
from vrgcn.graph.propagation import build_propagation, with_neighbours
from vrgcn.targets.opening import find_target
from vrgcn.training.objective import TaskObjective, loss_per_node, score, score_name
from vrgcn.training.trainer import Trainer

NODES, IN, CLASSES = 60, 6, 3
PLAIN = {"dropout": 0.5, "layer_norm": False}
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def parts(seed: int = 0) -> dict:
    """Features that tell the class, edges within classes, node 59 isolated, 10 nodes unlabelled."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(NODES) % CLASSES
    centres = 2 * torch.randn(CLASSES, IN, generator=generator)
    features = centres[labels] + torch.randn(NODES, IN, generator=generator)
    labels[50:] = -1
    source = torch.randint(NODES - 1, (150,), generator=generator)
    step = CLASSES * torch.randint(1, 9, (150,), generator=generator)
    edges = torch.stack([source, (source + step) % NODES])
    return {
        "edge_index": edges[:, (edges != NODES - 1).all(0)],
        "features": features,
        "labels": labels,
        "train": torch.arange(20),
        "val": torch.arange(20, 35),
        "test": torch.arange(35, 50),
        "undirected": True,
    }


def graph(**changed) -> Graph:
    return Graph(**{**parts(), **changed})


def model(kind=GCN, seed: int = 0, **given):
    torch.manual_seed(seed)
    return kind(IN, 8, CLASSES, **{**PLAIN, **given})


def run(network, data: Graph, **given) -> TrainResult:
    settings = {"epochs": 3, "batch_size": 7, "select": "last", "evaluate_every": 3, **given}
    return fit(network, data, TrainConfig(**settings))


def same(a: TrainResult, b: TrainResult) -> bool:
    return all(torch.equal(value, b.weights[name]) for name, value in a.weights.items())


@every_estimator
def test_same_seed_gives_the_same_weights_bit_for_bit(estimator):
    def once(seed):
        return run(model(order="before"), graph(), estimator=estimator, seed=seed)

    first, second, other = once(5), once(5), once(6)
    assert same(first, second)
    assert [p.loss for p in first.curve] == [p.loss for p in second.curve]
    assert not same(first, other)


def test_callers_random_numbers_neither_matter_nor_change():
    network = model()
    torch.manual_seed(123)
    before = torch.get_rng_state()
    first = run(network, graph())
    assert torch.equal(torch.get_rng_state(), before)
    network = model()
    torch.manual_seed(456)
    assert same(first, run(network, graph()))


def elsewhere() -> Graph:
    """The same graph among the training nodes; other features and edges of the rest."""
    given = parts()
    inside = (given["edge_index"] < 20).all(0)
    other = torch.randint(20, NODES, (2, 90), generator=torch.Generator().manual_seed(9))
    touching = torch.stack([torch.arange(20), torch.arange(20, 40)])
    features = given["features"].clone()
    features[20:] *= -1
    return graph(
        edge_index=torch.cat([given["edge_index"][:, inside], other, touching], dim=1),
        features=features,
    )


@every_estimator
@pytest.mark.parametrize("kind", [GCN, GraphSAGE])
def test_inductive_training_sees_nothing_of_other_nodes_but_evaluation_does(estimator, kind):
    given = {"estimator": estimator, "inductive": True, "epochs": 5}
    here = run(network := model(kind), data := graph(), **given)
    assert here.val == score(predict(network, data)[data.val], data.labels[data.val])  # all edges
    there = run(model(kind), elsewhere(), **given)
    assert same(here, there)
    assert here.val > there.val + 0.2
    assert here.test > there.test + 0.2
    transductive = run(model(kind), elsewhere(), **{**given, "inductive": False})
    assert not same(there, transductive)


def test_inductive_minibatches_of_ones_own_nodes_keep_their_own_edge():
    data, network = graph(), model(dropout=0.0)
    P = build_propagation("gcn", data.among(data.train)).to_dense()
    a, b = network.parameters()
    expected = (P @ torch.relu(P @ data.features @ a.T) @ b.T)[[40, 3]]
    batches = MiniBatches(network, data, estimator="exact", nodes=[40, 3], inductive=True)
    torch.testing.assert_close(batches.batch(torch.tensor([40, 3])).run(network), expected)


def test_visiting_all_writes_every_history_but_trains_on_training_labels_alone():
    data, network = graph(), model()
    batches = MiniBatches(network, data, estimator="cv", nodes="all", batch_size=13)
    seen = []
    for batch in batches:
        batch.run(network)
        batch.commit()
        seen.append(batch.nodes)
        assert torch.equal(batch.in_loss, batch.nodes < 20)
    assert sorted(torch.cat(seen).tolist()) == list(range(NODES))
    assert batches.step == len(batches) == 5
    for table in batches.histories.tables.values():
        assert len(table.age(batches.step)) == NODES
        assert 1 <= table.age(batches.step).min() <= table.age(batches.step).max() <= 5
    shuffled = parts()["labels"].clone()
    shuffled[20:50] = shuffled[20:50].roll(1)
    given = {"visit": "all", "estimator": "cvd"}
    assert same(run(model(), data, **given), run(model(), graph(labels=shuffled), **given))


def test_one_batch_of_all_nodes_is_the_step_of_one_batch_of_training_nodes():
    given = {"estimator": "exact", "batch_size": 100, "epochs": 1, "optimizer": "sgd"}
    alone = run(model(dropout=0.0), graph(), visit="train", **given)
    among = run(model(dropout=0.0), graph(), visit="all", **given)
    assert alone.curve[0].loss == pytest.approx(among.curve[0].loss, rel=1e-6)
    for name, value in alone.weights.items():
        torch.testing.assert_close(among.weights[name], value)


def test_best_epoch_is_kept_unless_the_last_is_asked_for():
    given = {"learning_rate": 0.3, "epochs": 12, "evaluate_every": 1}
    best = run(network := model(), graph(), select="best", **given)
    scores = [point.val for point in best.curve]
    assert best.epoch == 1 + scores.index(max(scores)) < 12
    assert best.val == max(scores)
    data = graph()
    outputs = predict(network, data)
    assert score(outputs[data.val], data.labels[data.val]) == best.val
    assert score(outputs[data.test], data.labels[data.test]) == best.test
    last = run(model(), graph(), select="last", **given)
    assert (last.epoch, last.val) == (12, scores[-1])
    assert not same(best, last)
    assert not network.training


def test_training_stops_after_patience_evaluations_without_a_better_score():
    given = {"learning_rate": 1e-12, "epochs": 30, "patience": 2, "select": "best"}
    result = run(model(), graph(), evaluate_every=1, **given)
    assert (len(result.curve), result.epoch) == (3, 1)
    result = run(model(), graph(), evaluate_every=3, **given)
    assert (len(result.curve), result.epoch) == (9, 3)


def test_evaluation_comes_every_so_many_epochs_and_at_the_end():
    curve = run(model(), graph(), evaluate_every=3, epochs=7).curve
    assert [point.epoch for point in curve if point.val is not None] == [3, 6, 7]
    assert [point.epoch for point in curve] == list(range(1, 8))


def test_without_validation_nodes_the_last_weights_are_kept():
    result = run(model(), graph(val=None), select="best", patience=1)
    assert (result.epoch, result.val) == (3, None)
    assert same(result, run(model(), graph(), select="last"))


@every_estimator
def test_multilabel_problem_is_learnt(estimator):
    features = parts()["features"]
    labels = (features[:, :4] > 0).long()
    labels[59] = -1
    torch.manual_seed(0)
    network = GraphSAGE(IN, 32, 4, dropout=0.0, layer_norm=False)
    data = graph(labels=labels)
    result = run(network, data, estimator=estimator, epochs=40, learning_rate=0.02, sample_size=64)
    assert result.val > 0.85
    outputs = predict(network, data)[data.train]
    assert score(outputs, data.labels[data.train]) > 0.95


def one_sgd_step(**given) -> tuple[dict, dict]:
    network = model(GraphSAGE, dropout=0.0, layer_norm=True, bias=True)
    before = {name: value.clone() for name, value in network.named_parameters()}
    settings = {"estimator": "exact", "epochs": 1, "batch_size": 100, "optimizer": "sgd"}
    return before, run(network, graph(), **settings, learning_rate=0.5, **given).weights


@pytest.mark.parametrize("decay", ["first", "all"])
def test_weight_decay_is_an_l2_penalty_on_the_first_matrix_or_on_all(decay):
    before, plain = one_sgd_step()
    _, decayed = one_sgd_step(weight_decay=0.1, decay=decay)
    for name, value in before.items():
        shrinks = decay == "all" or name == "layers.0.linears.0.weight"
        expected = -0.5 * 0.1 * value if shrinks else torch.zeros_like(value)
        torch.testing.assert_close(
            decayed[name] - plain[name], expected.detach(), atol=1e-6, rtol=0
        )


def test_sgd_step_is_the_learning_rate_times_the_dense_gradient():
    data, network = graph(), model(dropout=0.0)
    P = build_propagation("gcn", data).to_dense()
    a, b = (p.detach().clone().requires_grad_() for p in network.parameters())
    outputs = P @ torch.relu(P @ data.features @ a.T) @ b.T
    F.cross_entropy(outputs[data.train], data.labels[data.train]).backward()
    given = {"estimator": "exact", "epochs": 1, "batch_size": 100, "learning_rate": 0.5}
    result = run(network, data, optimizer="sgd", **given)
    for value, start in zip(result.weights.values(), (a, b), strict=True):
        torch.testing.assert_close(value, (start - 0.5 * start.grad).detach())


@pytest.fixture
def used(monkeypatch) -> list[MiniBatches]:
    """The minibatches that `fit` makes."""
    made: list[MiniBatches] = []

    def make(*args, **given):
        made.append(MiniBatches(*args, **given))
        return made[-1]

    monkeypatch.setattr("vrgcn.targets.labels.MiniBatches", make)
    return made


def unwritten_reads(batches: MiniBatches) -> list[int]:
    """For each table, how many rows that training depends on were never written."""
    missing, reached = [], batches.nodes
    for call in reversed(range(batches.setup.training.first_table, batches.setup.training.depth)):
        reached = with_neighbours(reached, *batches.setup.P.values())
        table = batches.histories.tables.get((call, "h"))
        missing.append(len(reached) if table is None else int((table.written[reached] < 0).sum()))
    return missing


NO_SAMPLES = {
    "history": ({"estimator": "history"}, {}),
    "history, 3 layers": ({"estimator": "history"}, {"layers": 3}),
    "history, dropout before": ({"estimator": "history"}, {"order": "before"}),
    "cv, nothing sampled": ({"estimator": "cv", "fanout": 0}, {}),
    "cv, nothing sampled at the top": ({"estimator": "cv", "fanout": (2, 0)}, {}),
}


@pytest.mark.parametrize(("given", "network"), NO_SAMPLES.values(), ids=NO_SAMPLES)
def test_refresh_leaves_no_row_unwritten_that_training_reads(given, network, used):
    run(model(**network), graph(), epochs=1, **given)
    run(model(**network), graph(), epochs=1, refresh="never", **given)
    assert set(unwritten_reads(used[0])) == {0}
    assert min(unwritten_reads(used[1])) > 0


def test_refresh_is_not_needed_and_not_done_where_neighbours_are_sampled():
    auto = run(model(), graph(), estimator="cv")
    assert same(auto, run(model(), graph(), estimator="cv", refresh="never"))
    assert not same(auto, run(model(), graph(), estimator="cv", refresh="always"))


@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("estimator", ["cv", "cvd", "history"])
def test_warm_start_makes_the_first_step_exact(order, estimator, used):
    # Dropout that (all but) never drops: M0 then has a table for the features, as with any other.
    given = {"epochs": 1, "batch_size": 100, "refresh": "never"}
    p = 1e-9 if order == "before" else 0.0
    exact = run(model(order=order, dropout=p), graph(), estimator="exact", **given)
    warm = run(
        model(order=order, dropout=p), graph(), estimator=estimator, warm_start=True, **given
    )
    cold = run(model(order=order, dropout=p), graph(), estimator=estimator, **given)
    assert warm.curve[0].loss == pytest.approx(exact.curve[0].loss, rel=1e-5)
    assert cold.curve[0].loss != pytest.approx(exact.curve[0].loss, rel=1e-3)
    assert all((table.written >= 0).all() for table in used[1].histories.tables.values())


UNUSUAL = [
    *[(e, g) for e in ESTIMATORS for g in ({"batch_size": 999}, {"visit": "all"})],
    *[(e, {"batch_size": 1}) for e in ("cvd", "two-way")],
    *[(e, {"fanout": (3, 2), "preprocess": False}) for e in ("ns", "cv", "cvd")],
    *[(e, {"history_dtype": d}) for e in ("cv", "history") for d in ("float16", "bfloat16")],
    *[(e, {"history_cap": 1}) for e in ("cv", "cvd", "history")],
]


@pytest.mark.parametrize(("estimator", "given"), UNUSUAL, ids=str)
def test_unusual_settings_train(estimator, given):
    result = run(model(dropout=0.1), graph(), estimator=estimator, epochs=9, **given)
    assert result.curve[-1].loss < 0.9 * result.curve[0].loss


@every_estimator
@pytest.mark.parametrize("kind", [GCN, GraphSAGE])
def test_graphs_without_edges_and_of_one_node_train(estimator, kind):
    empty = run(model(kind), graph(edge_index=[]), estimator=estimator, epochs=12)
    assert empty.curve[-1].loss < empty.curve[0].loss
    single = Graph([], torch.ones(1, IN), [2], train=[0])
    assert math.isfinite(run(model(kind), single, estimator=estimator).curve[-1].loss)


def test_curve_counts_neighbours_sampled_and_read():
    data = graph()
    degree = build_propagation("gcn", data).degrees(data.train).double()
    points = {
        name: run(model(), data, estimator=name, fanout=2, history_cap=3).curve[0]
        for name in ("exact", "ns", "cv", "history")
    }
    assert points["exact"].sampled == pytest.approx(degree.mean().item())
    assert points["ns"].sampled == pytest.approx(degree.clamp(max=2).mean().item())
    assert points["exact"].history_reads == points["ns"].history_reads == 0
    assert points["cv"].history_reads == pytest.approx(degree.clamp(max=3).mean().item())
    assert points["history"].sampled == 0
    assert points["exact"].age is None
    assert points["cv"].age > 0


def test_callbacks_follow_the_run():
    points, steps = [], []
    result = fit(
        model(), graph(), TrainConfig(epochs=2, batch_size=7),
        on_epoch=points.append, on_step=lambda *step: steps.append(step),
    )  # fmt: skip
    assert points == result.curve
    assert steps == [(1, 3), (2, 3), (3, 3)] * 2
    assert [point.as_dict()["epoch"] for point in points] == [1, 2]


def test_threads_are_those_asked_for():
    run(model(), graph(), threads=2)
    assert torch.get_num_threads() == 2


def test_accuracy_loss_and_micro_f1_by_hand():
    outputs = torch.tensor([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0]])
    assert score(outputs, torch.tensor([0, 1, 1])) == pytest.approx(2 / 3)
    expected = [math.log(1 + math.exp(-1)), math.log(1 + math.exp(-3)), math.log(1 + math.e)]
    assert loss_per_node(outputs, torch.tensor([0, 1, 1])).tolist() == pytest.approx(expected)
    several = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    # Predicted 1 where above 0: 4 times, 2 of them right, of 3 that are 1.
    assert score(outputs, several) == pytest.approx(2 * 2 / (4 + 3))
    bce = [math.log(1 + math.exp(-2)), math.log(1 + math.e)]
    assert loss_per_node(outputs, several)[0].item() == pytest.approx(sum(bce) / 2)
    assert score(-torch.ones(2, 2), torch.zeros(2, 2)) == 0.0
    assert (score_name(torch.tensor([0])), score_name(several)) == ("accuracy", "micro-F1")


def test_visiting_all_nodes_keeps_the_mean_of_the_gradient():
    """At a step size of nothing, the steps of an epoch add up to the gradient of the whole loss,
    however the training nodes fall into its batches."""
    data, rate = graph(), 1e-4
    network = model(dropout=0.0).double()
    data = data.with_features(data.features.double())
    before = [p.detach().clone() for p in network.parameters()]
    loss = loss_per_node(predict_with_gradient(network, data)[data.train], data.labels[data.train])
    expected = torch.autograd.grad(loss.mean(), list(network.parameters()))
    run(
        network, data, estimator="exact", visit="all", batch_size=12, optimizer="sgd",
        learning_rate=rate, epochs=1, select="last", average_weights=False,
    )  # fmt: skip
    steps = NODES / 12
    for old, new, gradient in zip(before, network.parameters(), expected, strict=True):
        assert torch.allclose((old - new) / (rate * steps), gradient, rtol=1e-2, atol=1e-4)


def predict_with_gradient(network, data: Graph) -> torch.Tensor:
    batches = MiniBatches(network, data, estimator="exact", nodes=torch.arange(NODES))
    return batches.batch(torch.arange(NODES)).run(network)


def test_a_refresh_is_without_dropout():
    data, network = graph(), model(dropout=0.5)
    network.train()
    batches = MiniBatches(network, data, estimator="history")
    batches.refresh(network, torch.arange(NODES))
    once = batches.histories.tables[1, "h"].values.clone()
    batches.refresh(network, torch.arange(NODES))
    assert torch.equal(batches.histories.tables[1, "h"].values, once)
    exact = MiniBatches(network, data, estimator="history")
    exact.warm_start(network)
    assert torch.allclose(exact.histories.tables[1, "h"].values, once, atol=1e-6)


def test_a_matrix_of_ones_own_can_be_given_as_it_is():
    data = graph()
    P = build_propagation("gcn", data).to_dense()
    named, own = model(), model()
    run(named, data, epochs=2)
    fit(own, data, TrainConfig(epochs=2, batch_size=7, select="last"), propagation=P)
    for one, other in zip(named.parameters(), own.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_unlabelled_nodes_of_ones_own_choice_are_not_trained_on():
    batch = MiniBatches(model(), graph(), nodes=torch.arange(45, 55)).batch(torch.arange(45, 55))
    assert batch.in_loss.tolist() == [True] * 5 + [False] * 5


def test_an_mlp_takes_any_fanout():
    from vrgcn import MLP

    assert run(model(MLP), graph(), fanout=(5, 10), epochs=1).test is not None


@pytest.mark.parametrize("estimator", ["two-way", "few/corrected/sampled", "few/corrected/none"])
def test_neighbours_that_few_never_computes_are_refreshed(estimator: str) -> None:
    """Only training nodes are visited, and all of them have many neighbours."""
    ids = torch.arange(200)
    edges = torch.cat([torch.stack([ids, (ids + k) % 200]) for k in range(1, 8)], dim=1)
    graph = Graph(edges, torch.randn(200, 4), ids % 3, train=ids[::10], undirected=True)
    config = TrainConfig(estimator=estimator, visit="train", epochs=1, batch_size=5)
    trainer = Trainer(GraphSAGE(4, 8, 3, layers=3), graph, config, find_target(graph, config))
    trainer.run()
    batches = trainer.minibatches
    for (_, kind), table in batches.histories.tables.items():
        if kind == "h":
            assert (table.written[batches.unvisited()] != NEVER).all()


def test_a_single_node_at_the_end_of_an_epoch_does_not_stop_a_batch_norm() -> None:
    class Normalised(torch.nn.Module):
        propagation = "mean"

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
            self.norm = torch.nn.BatchNorm1d(8)

        def forward(self, x, propagate):  # type: ignore[no-untyped-def]
            return self.last(propagate(self.norm(self.first(propagate(x)))))

    ids = torch.arange(101)
    edges = torch.stack([ids, (ids + 1) % 101])
    graph = Graph(edges, torch.randn(101, 4), ids % 3, train=ids, undirected=True)
    for estimator in ("two-way", "history", "cvd"):
        result = fit(Normalised(), graph, TrainConfig(estimator=estimator, epochs=2, batch_size=20))
        assert len(result.curve) == 2


def test_an_objective_of_ones_own_trains_on_nodes_without_labels() -> None:
    class Zero(TaskObjective):
        """Outputs of some nodes, with and without labels, are to be zero."""

        def __init__(self, graph: Graph) -> None:
            super().__init__(graph, TrainConfig(visit="all"))
            self.trained = torch.arange(graph.num_nodes) < 20

        def loss(self, outputs, nodes):  # type: ignore[no-untyped-def]
            return outputs.square().sum(1)

    ids = torch.arange(60)
    labels = torch.where(ids < 5, ids % 3, -1)
    edges = torch.stack([ids, (ids + 1) % 60])
    graph = Graph(edges, torch.ones(60, 4), labels, train=ids[:5], undirected=True)
    torch.manual_seed(0)
    model = GraphSAGE(4, 8, 3, dropout=0.0)
    with torch.no_grad():
        before = predict(model, graph)[:20].square().sum(1).mean()
    result = fit(
        model, graph, TrainConfig(estimator="exact", epochs=1, batch_size=60), objective=Zero(graph)
    )
    assert result.curve[0].loss == pytest.approx(float(before), rel=1e-5)


def test_an_objective_that_trains_on_no_node_is_refused() -> None:
    class Nobody(TaskObjective):
        def __init__(self, graph: Graph, config: TrainConfig) -> None:
            super().__init__(graph, config)
            self.trained[:] = False

    for estimator in ("exact", "cvd", "two-way", "auto"):
        config = TrainConfig(epochs=1, estimator=estimator)
        with refused():
            fit(model(), graph(), config, objective=Nobody(graph(), config))


def test_patience_without_validation_nodes_is_told() -> None:
    notes: list[str] = []
    config = TrainConfig(epochs=2, patience=1, estimator="exact")
    result = fit(model(), graph(val=None), config, on_note=notes.append)
    assert (len(result.curve), result.stopped) == (2, "epochs")
    assert "patience 1 (patience=) waits for validation scores, and the graph has no" in notes[0]
    fit(model(), graph(), config, on_note=notes.append)
    assert len(notes) == 1


@pytest.mark.parametrize("config", [{}, {"epochs": 3}, "cvd", TrainConfig])
def test_a_config_that_is_none_is_refused(config: object) -> None:
    with refused(TypeError):
        fit(GCN(IN, 4, CLASSES), Graph(**parts()), config)


@pytest.mark.parametrize("estimator", ["cvd", None, 3])
def test_an_estimator_of_ones_own_is_not_a_name(estimator: object) -> None:
    graph, model = Graph(**parts()), GCN(IN, 4, CLASSES)
    if estimator is None:
        assert fit(model, graph, TrainConfig(epochs=1), estimator=None).epoch == 1
        return
    with refused(TypeError):
        fit(model, graph, estimator=estimator)
