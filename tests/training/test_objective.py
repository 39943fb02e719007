"""Objectives: losses and class weights by value and by effect, scores that decide, refusals."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.messages import refused
from vrgcn import MLP, Graph, GraphSAGE, MiniBatches, TrainConfig, fit, predict
from vrgcn.tasks import TASKS
from vrgcn.tasks.metrics import class_scores, mae, r2, rmse
from vrgcn.training.objective import TaskObjective, build_objective
from vrgcn.training.own_loss import Weighted

X = torch.arange(12.0).reshape(6, 2)
ONE = torch.tensor([0, 0, 0, 1, 3, -1])  # class 2 has no node
SEVERAL = torch.tensor([[1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1], [1, 1, 0], [0, 1, 0]])
NUMBERS = torch.tensor([10.0, 20.0, 30.0, 40.0, 55.0, math.nan])
SPLITS = {"train": [0, 1, 2, 3], "val": [4]}


def graph(labels: torch.Tensor, **given) -> Graph:
    return Graph([[0, 1], [1, 2]], X, labels, **{**SPLITS, **given})


def numbers(**given) -> Graph:
    return graph(NUMBERS, task="regression", **given)


def outputs(count: int, width: int) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(0))


def test_a_graph_has_the_objective_of_its_task():
    objectives = [build_objective(g) for g in (graph(ONE), graph(SEVERAL), numbers())]
    assert [o.task.name for o in objectives] == list(TASKS)
    assert [o.outputs for o in objectives] == [4, 3, 1]
    assert [o.metric.title for o in objectives] == ["accuracy", "micro-F1", "RMSE"]
    for objective in objectives:
        assert objective.trained.tolist() == [True] * 4 + [False] * 2
        assert objective.visit == "auto"
    assert build_objective(numbers(), TrainConfig(visit="all")).visit == "all"


def test_checkpoints_know_objectives_by_the_names_that_they_always_had():
    class Mine(TaskObjective):
        pass

    data = [graph(ONE), graph(SEVERAL), numbers()]
    assert [build_objective(g).name for g in data] == ["OneClass", "SeveralClasses", "Number"]
    assert Mine(graph(ONE), TrainConfig()).name.endswith("Mine")


def test_losses_of_chosen_nodes_are_those_of_the_formulas():
    nodes = torch.tensor([3, 0])
    z = outputs(2, 4)
    found = build_objective(graph(ONE)).loss(z, nodes)
    torch.testing.assert_close(found, -z.log_softmax(1)[[0, 1], [1, 0]])
    z = outputs(2, 3)
    y = SEVERAL[nodes].float()
    expected = -(y * z.sigmoid().log() + (1 - y) * (-z).sigmoid().log()).mean(1)
    torch.testing.assert_close(build_objective(graph(SEVERAL)).loss(z, nodes), expected)
    # Training labels 10, 20, 30, 40: deviation √125.
    z = torch.tensor([[50.0], [0.0]])
    found = build_objective(numbers()).loss(z, nodes)
    assert found.tolist() == pytest.approx([100 / 125, 100 / 125])
    found = build_objective(numbers(), TrainConfig(loss="mae")).loss(z, nodes)
    assert found.tolist() == pytest.approx([10 / 125**0.5] * 2)


def test_the_loss_of_numbers_is_absolute_if_the_metric_is_unless_it_is_given():
    z, nodes = torch.tensor([[70.0], [0.0]]), torch.tensor([3, 0])  # 30 and 10 beside the labels
    for given, power in (({}, 1), ({"loss": "mse"}, 2), ({"metric": "rmse"}, 2)):
        config = TrainConfig(**{"metric": "mae"} | given)
        found = build_objective(numbers(), config).loss(z, nodes)
        expected = [(error / 125**0.5) ** power for error in (30, 10)]
        assert found.tolist() == pytest.approx(expected)


def test_balanced_weights_of_one_class_by_hand():
    weighted = build_objective(graph(ONE), TrainConfig(class_weights="balanced"))
    # 4 training nodes, of 2 classes: 3 of class 0, 1 of class 1.
    assert weighted.criterion.weights.tolist() == pytest.approx([4 / 6, 4 / 2, 0, 0])
    nodes = torch.arange(4)
    z = outputs(4, 4)
    plain = build_objective(graph(ONE)).loss(z, nodes)
    ratio = weighted.loss(z, nodes) / plain
    assert ratio.tolist() == pytest.approx([4 / 6] * 3 + [2])
    assert ratio.mean().item() == pytest.approx(1)
    assert weighted.loss(z[:1], torch.tensor([4])).item() == 0


def test_balanced_weights_of_several_classes_by_hand():
    weighted = build_objective(graph(SEVERAL), TrainConfig(class_weights="balanced"))
    # Among 4 training nodes, 1 has class 0, none class 1, all class 2.
    expected = torch.tensor([[4 / 6, 1.0, 1.0], [4 / 2, 1.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(weighted.criterion.weights, expected)
    z = outputs(4, 3)
    y = SEVERAL[:4].float()
    weight = torch.where(y > 0, expected[1].float(), expected[0].float())
    losses = F.binary_cross_entropy_with_logits(z, y, reduction="none") * weight
    torch.testing.assert_close(weighted.loss(z, torch.arange(4)), losses.mean(1))


def unbalanced() -> Graph:
    """Two classes whose features overlap; 1 node in 20 is of the second."""
    generator = torch.Generator().manual_seed(3)
    labels = (torch.arange(600) % 20 == 0).long()
    features = torch.randn(600, 2, generator=generator)
    features[:, 0] += 1.5 * labels
    split = torch.arange(600).chunk(3)
    return Graph([], features, labels, train=split[0], val=split[1], test=split[2])


def test_a_rare_class_is_found_only_with_weights():
    data = unbalanced()
    rare = {}
    for weights in ("none", "balanced"):
        torch.manual_seed(0)
        model = MLP(2, 8, 2, dropout=0.0, bias=True)
        config = TrainConfig(class_weights=weights, epochs=30, metric="macro-f1", select="last")
        fit(model, data, config)
        scores = class_scores(predict(model, data)[data.test], data.labels[data.test])
        rare[weights] = scores.recall[1].item()
    assert rare["none"] < 0.15
    assert rare["balanced"] > 0.6


REFUSED = {
    "loss of classes": (ONE, {}, {"loss": "mae"}),
    "loss of several": (SEVERAL, {}, {"loss": "mse"}),
    "weights of numbers": (
        NUMBERS, {"task": "regression"}, {"class_weights": "balanced"},
    ),
    "metric": (ONE, {}, {"metric": "r2"}),
    "auc of one class": (
        ONE, {"val": [4]}, {"metric": "roc-auc"},
    ),
    "r2 of one number": (
        NUMBERS, {"task": "regression", "val": None, "test": [4]}, {"metric": "r2"},
    ),
    "no labels": (None, {"train": None, "val": None}, {}),
    "no training nodes": (ONE, {"train": None}, {}),
}  # fmt: skip


@pytest.mark.parametrize(("labels", "given", "settings"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_the_labels_is_refused(labels, given, settings):
    with refused():
        build_objective(graph(labels, **given), TrainConfig(**settings))


@pytest.mark.parametrize("name", ["loss", "class_weights"])
def test_unknown_choices_are_refused_by_the_config(name):
    with refused():
        TrainConfig(**{name: "huber"})


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        (graph(ONE), (2, 3)),
        (numbers(), (2, 3)),
        (numbers(), (2,)),
    ],
)
def test_outputs_of_another_width_are_refused(data, shape):
    with refused():
        build_objective(data).check_outputs(torch.zeros(shape))


def far_off(offset: float = 250_000.0, size: float = 40_000.0) -> Graph:
    """Numbers in a far-off unit that depend on the neighbours' features."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(400, 4, generator=generator)
    edges = torch.randint(400, (2, 1600), generator=generator)
    plain = Graph(edges, features, undirected=True)
    neighbours = torch.zeros(400, 400)
    neighbours[plain.adjacency.row_of_entry, plain.adjacency.indices] = 1
    mean = neighbours @ features / neighbours.sum(1, keepdim=True).clamp(min=1)
    y = mean[:, 0] + 0.3 * features[:, 1]
    labels = offset + size * ((y - y.mean()) / y.std()).double()
    labels[390:] = math.nan
    splits = dict(zip(("train", "val", "test"), torch.arange(390).chunk(3), strict=True))
    return Graph(edges, features, labels, undirected=True, task="regression", **splits)


def trained(data: Graph, **given):
    torch.manual_seed(0)
    model = GraphSAGE(4, 32, 1, dropout=0.0, layer_norm=False)
    settings = {"epochs": 40, "batch_size": 32, "estimator": "cv", **given}
    return model, fit(model, data, TrainConfig(**settings))


def test_numbers_are_learnt_and_predicted_in_their_own_unit():
    data = far_off()
    model, result = trained(data)
    y = predict(model, data)
    assert y.shape == (400, 1)
    assert not y.isnan().any()
    test = y[data.test], data.labels[data.test]
    assert result.test == pytest.approx(rmse(*test))
    assert r2(*test) > 0.9
    assert result.test < 12_000  # the standard deviation is 40,000
    assert 240_000 < y.mean() < 260_000
    assert result.curve[0].loss < 2  # in deviations, not in units
    batch = MiniBatches(model, data, estimator="exact").batch(torch.tensor([5, 2]))
    torch.testing.assert_close(batch.run(model).detach(), y[[5, 2]], rtol=1e-5, atol=1.0)


def test_the_unit_does_not_change_the_training():
    near, far = (trained(far_off(*unit), epochs=3)[1] for unit in ((0.0, 1.0), (5e5, 1e4)))
    for a, b in zip(near.curve, far.curve, strict=True):
        assert a.loss == pytest.approx(b.loss, rel=1e-4)
        assert 1e4 * a.val == pytest.approx(b.val, rel=1e-4)


def test_numbers_that_are_large_beside_their_deviation_are_not_lost():
    data = far_off(1.7e9, 1.0)  # single precision tells 128 apart here
    model, result = trained(data)
    assert result.test < 0.5
    assert mae(predict(model, data)[data.test], data.labels[data.test]) < 0.5


def test_the_best_epoch_is_the_one_of_the_smallest_error():
    data = far_off()
    model, result = trained(data, epochs=12, learning_rate=0.05)
    scores = [point.val for point in result.curve]
    assert result.val == min(scores)
    assert result.epoch == 1 + scores.index(min(scores)) > 1
    found = rmse(predict(model, data)[data.val], data.labels[data.val])
    assert found == pytest.approx(result.val)


def test_patience_counts_errors_that_do_not_fall():
    given = {"learning_rate": 1e-12, "epochs": 20, "patience": 2}
    worse = trained(far_off(), metric="mae", **given)[1]
    assert len(worse.curve) < 20
    learning = trained(far_off(), epochs=8, patience=1, learning_rate=1e-4)[1]
    assert len(learning.curve) == 8


def test_the_metric_decides_the_epoch_that_is_kept():
    data = unbalanced()
    kept = {}
    for metric in ("accuracy", "macro-f1"):
        torch.manual_seed(0)
        config = TrainConfig(metric=metric, epochs=40, batch_size=16, class_weights="balanced")
        kept[metric] = fit(MLP(2, 8, 2, dropout=0.0, bias=True), data, config)
    assert kept["accuracy"].epoch != kept["macro-f1"].epoch
    for result in kept.values():
        assert result.val == max(point.val for point in result.curve)


class Own(nn.Module):
    """A model of one's own, which knows of no scale."""

    propagation = "mean"

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 1)

    def forward(self, x, propagate):
        return self.linear(torch.cat([propagate.own(x), propagate(x)], 1))


def test_a_model_without_a_scale_is_trained_on_its_outputs_as_they_are():
    data = far_off(3.0, 2.0)
    torch.manual_seed(0)
    model = Own()
    result = fit(model, data, TrainConfig(epochs=60, estimator="exact", learning_rate=0.05))
    assert r2(predict(model, data)[data.test], data.labels[data.test]) > 0.7
    assert result.curve[-1].loss < 0.5  # squared errors over the labels' variance


@pytest.mark.parametrize("estimator", ["exact", "ns", "is", "cv", "cvd", "history"])
def test_every_estimator_learns_numbers_with_dropout_and_all_nodes_visited(estimator):
    torch.manual_seed(0)
    config = TrainConfig(estimator=estimator, epochs=15, visit="all", diagnostics=5, batch_size=64)
    result = fit(GraphSAGE(4, 32, 1, dropout=0.1), far_off(), config)
    assert result.val < 30_000
    assert result.curve[4].gradient_noise is not None


def test_constant_labels_are_no_division_by_zero():
    data = graph(torch.full((6,), 7.0), task="regression")
    torch.manual_seed(0)
    result = fit(model := MLP(2, 4, 1), data, TrainConfig(epochs=2))
    assert math.isfinite(result.curve[-1].loss)
    assert model.output_scale.mean.item() == 7


def test_the_usual_loss_given_as_a_function_trains_to_the_same_bits():
    def usual(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(z, y, reduction="none")

    weights = []
    for objective in (None, usual, nn.CrossEntropyLoss(reduction="none")):
        torch.manual_seed(0)
        model = GraphSAGE(2, 4, 4)
        fit(model, graph(ONE), TrainConfig(epochs=3), objective=objective)
        weights.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[0], weights[2])


def test_a_loss_of_numbers_gets_outputs_and_labels_of_one_shape_in_the_labels_unit():
    seen = []

    def absolute(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        seen.append((tuple(z.shape), y.tolist()))
        return (z - y).abs()

    torch.manual_seed(0)
    fit(GraphSAGE(2, 4, 1), numbers(), TrainConfig(epochs=1), objective=absolute)
    shape, labels = seen[0]
    assert shape == (4,)
    assert sorted(labels) == [10, 20, 30, 40]


def test_a_loss_of_ones_own_decides_what_is_learned():
    """Nine tenths of the labels lie below the outputs that the pinball loss asks for."""
    generator = torch.Generator().manual_seed(1)
    labels = 1000 + 50 * torch.randn(600, generator=generator)
    g = Graph([], torch.ones(600, 1), labels, train=range(600), task="regression")
    torch.manual_seed(0)
    model = MLP(1, 8, 1, dropout=0.0)
    config = TrainConfig(epochs=60, select="last")
    fit(model, g, config, objective=lambda z, y: torch.maximum(0.9 * (y - z), 0.1 * (z - y)))
    below = (g.labels < predict(model, g)[:, 0]).double().mean()
    assert 0.87 < below < 0.93


def test_a_loss_that_is_no_number_for_each_node_is_refused():
    with refused():
        fit(GraphSAGE(2, 4, 4), graph(ONE), TrainConfig(epochs=1), objective=F.cross_entropy)
    with refused(TypeError):
        fit(GraphSAGE(2, 4, 4), graph(ONE), TrainConfig(epochs=1), objective="hinge")


def test_a_run_with_another_loss_does_not_go_on_from_a_checkpoint(tmp_path):
    def hinge(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.multi_margin_loss(z, y, reduction="none")

    def usual(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(z, y, reduction="none")

    model, config = GraphSAGE(2, 4, 4), TrainConfig(epochs=2, checkpoint_every="1")
    fit(model, graph(ONE), config, objective=hinge, checkpoints=tmp_path)
    with refused():
        fit(model, graph(ONE), config, objective=usual, resume=tmp_path)


def test_weights_of_nodes_multiply_their_losses_and_are_1_on_average():
    base = build_objective(graph(ONE))
    weights = torch.tensor([1.0, 1.0, 2.0, 4.0, 9.0, 9.0])
    weighted = Weighted(graph(ONE), TrainConfig(), weights)
    nodes, z = torch.tensor([3, 0]), outputs(2, 4)
    torch.testing.assert_close(
        weighted.loss(z, nodes), base.loss(z, nodes) * torch.tensor([2, 0.5])
    )
    assert weighted.score(z, nodes) == base.score(z, nodes)


@pytest.mark.parametrize(
    "settings",
    [
        {"class_weights": "balanced"},
        {"label_smoothing": 0.1},
    ],
)
def test_settings_of_the_usual_loss_are_refused_beside_ones_own(settings):
    def own(outputs, labels):
        return F.cross_entropy(outputs, labels, reduction="none")

    with refused():
        fit(MLP(2, 4, 4), graph(ONE), TrainConfig(epochs=1, **settings), objective=own)
