"""Models of one's own compute the textbook's P @ h, and train and predict like the others."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.messages import refused
from vrgcn import ESTIMATORS, Estimator, Graph, MiniBatches, TrainConfig, fit, predict
from vrgcn.engine.trace import trace
from vrgcn.graph.propagation import build_propagation

IN, HIDDEN, CLASSES = 6, 8, 3


def communities(nodes: int = 90, *, undirected: bool = True, noise: float = 1.0) -> Graph:
    """Three communities, edges mostly inside them, features of the community plus noise."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(nodes) % CLASSES
    source = torch.randint(nodes - 1, (4 * nodes,), generator=generator)
    inside = torch.rand(4 * nodes, generator=generator) < 0.8
    step = torch.randint(1, nodes // 4, (4 * nodes,), generator=generator) * (1 + 2 * inside)
    edges = torch.stack([source, (source + step) % nodes])
    edges = edges[:, (edges != nodes - 1).all(0) & (edges[0] != edges[1])]  # the last is isolated
    centres = torch.randn(CLASSES, IN, generator=generator)
    features = centres[labels] + noise * torch.randn(nodes, IN, generator=generator)
    order = torch.randperm(nodes, generator=generator)
    return Graph(
        edges, features, labels, undirected=undirected,
        train=order[:45], val=order[45:60], test=order[60:],
    )  # fmt: skip


class Own(nn.Module):
    """Base of the models below: `forward` as a user writes it, `textbook` with a dense P."""

    def __init__(self, layers: int = 3, dropout: float = 0.2) -> None:
        super().__init__()
        self.encoder = nn.Linear(IN, HIDDEN)
        self.first = nn.Linear(IN, HIDDEN)
        self.linears = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(layers))
        self.others = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(HIDDEN) for _ in range(layers))
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(HIDDEN, CLASSES)


class JumpingKnowledge(Own):
    """All levels end in the output; own() is asked after the last propagate."""

    def __init__(self, layers: int = 3) -> None:
        super().__init__(layers)
        self.out = nn.Linear(HIDDEN * (layers + 1), CLASSES)

    def forward(self, x, propagate):
        kept = [torch.relu(self.first(propagate(x)))]
        for linear in self.linears:
            kept.append(torch.relu(linear(self.drop(propagate(kept[-1])))))
        return self.out(torch.cat([propagate.own(h) for h in kept], dim=1))

    def textbook(self, x, P):
        kept = [torch.relu(self.first(P @ x))]
        for linear in self.linears:
            kept.append(torch.relu(linear(P @ kept[-1])))
        return self.out(torch.cat(kept, dim=1))


class Residual(Own):
    """An encoder comes first; h[:len(y)] are the same nodes' own rows."""

    def forward(self, x, propagate):
        h = torch.relu(self.encoder(x))
        for linear in self.linears:
            y = propagate(h)
            h = h[: len(y)] + torch.relu(linear(self.drop(y)))
        return self.out(h)

    def textbook(self, x, P):
        h = torch.relu(self.encoder(x))
        for linear in self.linears:
            h = h + torch.relu(linear(P @ h))
        return self.out(h)


class InitialResidual(Own):
    """GCNII: the encoded features come back at every layer."""

    def forward(self, x, propagate):
        h = start = self.encoder(F.dropout(x, 0.2, self.training))
        for linear in self.linears:
            y = propagate(h)
            start = start[: len(y)]
            h = torch.relu(linear(0.9 * y + 0.1 * start))
        return self.out(h)

    def textbook(self, x, P):
        h = start = self.encoder(x)
        for linear in self.linears:
            h = torch.relu(linear(0.9 * P @ h + 0.1 * start))
        return self.out(h)


class OwnBefore(Own):
    """own(h) before propagate(h)."""

    def forward(self, x, propagate):
        h = self.encoder(propagate.own(x)) + self.first(propagate(x))
        for a, b in zip(self.linears, self.others, strict=True):
            h = torch.relu(a(propagate.own(h)) + b(propagate(F.dropout(h, 0.2, self.training))))
        return self.out(h)

    def textbook(self, x, P):
        h = self.encoder(x) + self.first(P @ x)
        for a, b in zip(self.linears, self.others, strict=True):
            h = torch.relu(a(h) + b(P @ h))
        return self.out(h)


class OwnAfter(OwnBefore):
    """own(h) after propagate(h)."""

    def forward(self, x, propagate):
        y = propagate(x)
        h = self.encoder(propagate.own(x)) + self.first(y)
        for a, b in zip(self.linears, self.others, strict=True):
            h = self.drop(h)
            y = propagate(h)
            h = torch.relu(a(propagate.own(h)) + b(y))
        return self.out(h)


class Simplified(Own):
    """SGC: nothing between the propagations."""

    def forward(self, x, propagate):
        return self.out(self.first(propagate(propagate(propagate(x)))))

    def textbook(self, x, P):
        return self.out(self.first(P @ (P @ (P @ x))))


class Normalised(Own):
    """BatchNorm and dropout before every propagate, the first one too."""

    def forward(self, x, propagate):
        h = torch.relu(self.first(propagate(self.drop(x))))
        for linear, norm in zip(self.linears, self.norms, strict=True):
            h = torch.relu(norm(linear(propagate(self.drop(h)))))
        return self.out(h)

    def textbook(self, x, P):
        h = torch.relu(self.first(P @ x))
        for linear, norm in zip(self.linears, self.norms, strict=True):
            scale = norm.weight / (norm.running_var + norm.eps).sqrt()
            h = torch.relu((linear(P @ h) - norm.running_mean) * scale + norm.bias)
        return self.out(h)


MODELS = {
    "jumping knowledge, 3": lambda: JumpingKnowledge(2),
    "jumping knowledge, 4": lambda: JumpingKnowledge(3),
    "residual, 3": lambda: Residual(3),
    "residual, 4": lambda: Residual(4),
    "initial residual, 3": lambda: InitialResidual(3),
    "own before, 3": lambda: OwnBefore(2),
    "own after, 4": lambda: OwnAfter(3),
    "simplified, 3": Simplified,
    "batch norm, 3": lambda: Normalised(2),
}


every_model = pytest.mark.parametrize("name", MODELS)


def make(name: str) -> Own:
    torch.manual_seed(1)
    model = MODELS[name]()
    for norm in model.norms:  # statistics that a mistake would show in
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.5, 2.0)
    return model


def gradients(model: nn.Module) -> list[torch.Tensor | None]:
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


@every_model
@pytest.mark.parametrize("preprocess", [None, False])
def test_exact_minibatches_are_the_dense_formula_forward_and_backward(name, preprocess):
    graph, model = communities(undirected=False), make(name).eval()
    P = build_propagation("gcn", graph).to_dense()
    expected = model.textbook(graph.features, P)
    F.cross_entropy(expected, graph.labels, reduction="sum").backward()
    wanted = gradients(model)
    model.zero_grad()
    batches = MiniBatches(
        model, graph, estimator="exact", nodes="all", batch_size=25, preprocess=preprocess
    )
    for batch in batches:
        outputs = batch.run(model)
        torch.testing.assert_close(outputs, expected[batch.nodes], rtol=1e-4, atol=1e-5)
        F.cross_entropy(outputs, batch.labels, reduction="sum").backward()
        batch.commit()
    for got, want in zip(gradients(model), wanted, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)


@every_model
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_own_model_learns_and_predicts_exactly(name, estimator):
    graph, model = communities(), make(name)
    config = TrainConfig(
        estimator=estimator, epochs=8, batch_size=15, fanout=2, sample_size=200, evaluate_every=8
    )
    curve = fit(model, graph, config).curve
    assert curve[-1].loss < 0.9 * curve[0].loss  # a NaN is not less
    P = build_propagation("gcn", graph).to_dense()
    with torch.no_grad():
        expected = model.textbook(graph.features, P)
    torch.testing.assert_close(predict(model, graph), expected, rtol=1e-4, atol=1e-5)
    some = [7, 0, 7, 89]
    torch.testing.assert_close(predict(model, graph, some), expected[some], rtol=1e-4, atol=1e-5)


@every_model
def test_looking_at_a_model_and_predicting_leave_nothing_behind(name):
    graph, model = communities(), make(name).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    random = torch.get_rng_state()
    seen = trace(model, graph.features, training=True)
    predict(model, graph)
    assert seen.depth == int(name.split()[-1])
    assert seen.features_first == name.startswith(("jumping", "own", "simplified"))
    assert all(module.training for module in model.modules())
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", ["jumping knowledge, 3", "own before, 3", "own after, 4"])
def test_cvd_keeps_the_history_of_activations_without_dropout(name):
    graph, model = communities(), make(name).train()
    batches = MiniBatches(model, graph, estimator="cvd", nodes="all", batch_size=1000)
    (batch,) = batches
    batch.run(model)
    batch.commit()
    received = []

    def dense(h):
        received.append(h)
        return P @ h

    P, dense.own = build_propagation("gcn", graph).to_dense(), lambda h: h
    with torch.no_grad():
        model.eval()(graph.features, dense)
    assert sorted(batches.histories.tables) == [(k, "h") for k in range(1, len(received))]
    torch.testing.assert_close(batches.histories.tables[1, "h"].values, received[1])


class OwnOfAnother(Own):
    """own() of a tensor made from x after propagate(x): it could be taken for the next level."""

    def forward(self, x, propagate):
        h = torch.relu(self.first(propagate(x)) + propagate.own(self.encoder(x)))
        return self.out(propagate(h))


@pytest.mark.parametrize("preprocess", [None, False])
@pytest.mark.parametrize("size", [1, 20])
def test_own_of_another_tensor_than_was_propagated_is_refused(size, preprocess):
    model = OwnOfAnother()

    def use():
        batches = MiniBatches(model, communities(), estimator="exact", preprocess=preprocess)
        batches.batch(torch.arange(size)).run(model)

    with refused(RuntimeError):
        use()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_own_loop_takes_the_steps_of_fit(estimator):
    graph, model = communities(), make("own after, 4")
    config = TrainConfig(estimator=estimator, refresh="never", epochs=2, batch_size=20, seed=4)
    fitted = fit(make("own after, 4"), graph, config)
    nodes = "all" if ESTIMATORS[estimator].gradient_history else "train"
    batches = MiniBatches(model, graph, estimator=estimator, nodes=nodes, batch_size=20, seed=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(4)
    for point in fitted.curve:
        total = 0.0
        for batch in batches:
            outputs, labels = batch.run(model)[batch.in_loss], batch.labels[batch.in_loss]
            losses = F.cross_entropy(outputs, labels, reduction="none")
            optimizer.zero_grad()
            batch.mean(losses).backward()
            optimizer.step()
            batch.commit()
            total += losses.sum().item()
        assert total / len(graph.train) == pytest.approx(point.loss, rel=1e-4)


def test_own_composition_and_own_rule_train():
    own = Estimator("uniform", "history", "sampled", dropout_residual=True)
    curve = fit(
        make("residual, 3"), communities(), TrainConfig(epochs=10, inductive=True),
        estimator=own, propagation=lambda graph: build_propagation("mean", graph),
    ).curve  # fmt: skip
    assert curve[-1].loss < 0.9 * curve[0].loss


class InPlace(nn.Module):
    """Changes its input of the second call after that call."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x, propagate):
        h = self.layer(propagate(x))
        y = propagate(h)
        own = h[: len(y)]
        own += 100
        return y + own


@pytest.mark.parametrize("estimator", ["cv", "cvd"])
def test_a_model_that_changes_what_it_propagated_is_refused(estimator):
    graph = Graph([[0, 1], [1, 0]], torch.randn(4, 5), [0, 1, 2, 0], train=[0, 1, 2, 3])
    model = InPlace()
    batch = MiniBatches(model, graph, estimator=estimator).batch(torch.arange(4))
    with refused(RuntimeError):
        batch.run(model)


class ChangesAnswers(nn.Module):
    """Changes what propagate answered, in place or not; nothing else reads it."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.in_place = in_place
        self.first, self.second = nn.Linear(IN, HIDDEN), nn.Linear(HIDDEN, CLASSES)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, propagate):
        h = self.first(self.double_of(propagate(x)))
        return self.second(self.double_of(propagate(self.drop(h))))

    def double_of(self, y):
        return y.mul_(2) if self.in_place else y * 2


@pytest.mark.parametrize("preprocess", [True, False])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_answers_may_be_changed_in_place_unless_a_second_pass_needs_them(estimator, preprocess):
    graph, outputs = communities(), []
    for in_place in (False, True):
        model = ChangesAnswers(in_place)
        batches = MiniBatches(model, graph, estimator=estimator, preprocess=preprocess)
        torch.manual_seed(1)
        batch = batches.batch(graph.train[:20])
        if in_place and ESTIMATORS[estimator].dropout_residual:
            with refused(RuntimeError):
                batch.run(model)
            return
        outputs.append(batch.run(model))
        outputs[-1].sum().backward()
    torch.testing.assert_close(*outputs)


class ChangesInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(IN, CLASSES)

    def forward(self, x, propagate):
        return self.layer(propagate(F.relu(x, inplace=True)))


def test_a_model_that_changes_its_input_in_place_is_refused():
    graph = communities()
    for start in (MiniBatches, predict):
        with refused(RuntimeError):
            start(ChangesInput(), graph)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_batch_of_no_nodes_has_no_outputs(estimator):
    graph, model = communities(), ChangesAnswers(in_place=False)
    batch = MiniBatches(model, graph, estimator=estimator).batch(graph.train[:0])
    assert batch.run(model).shape == (0, CLASSES)


class OwnMatrix(nn.Module):
    """Says by a method which matrix it is meant for."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def propagation(self, graph):
        return build_propagation("mean", graph)

    def forward(self, x, propagate):
        return self.layer(propagate(x))


def test_a_model_may_make_its_own_matrix():
    graph = Graph([[0, 1, 2], [1, 0, 1]], torch.randn(4, 5), [0, 1, 2, 0], train=[0, 1, 2, 3])
    model = OwnMatrix()
    expected = model.layer(build_propagation("mean", graph).to_dense() @ graph.features)
    assert torch.allclose(predict(model, graph), expected, atol=1e-6)
    fit(model, graph, TrainConfig(epochs=1, inductive=True))
