"""The models' widths, orders and formulas are the paper's."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.messages import refused
from vrgcn import (
    ESTIMATORS,
    GCN,
    MLP,
    Graph,
    GraphSAGE,
    InputLinear,
    MiniBatches,
    TrainConfig,
    fit,
    predict,
)
from vrgcn.graph.propagation import build_propagation
from vrgcn.graph.sparse import CSR
from vrgcn.models.dense import ACTIVATIONS
from vrgcn.models.models import MODELS

with warnings.catch_warnings():  # importing PyG uses torch.jit, which recent PyTorch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import GCNConv, SAGEConv

KIPF = {"dropout": 0.5, "layer_norm": False}
SAGE = {"dense": 2, "dropout": 0.2, "layer_norm": True}

torch.manual_seed(0)
# Section 5 of the paper: weights as (output, input), first to last.
PAPER = {
    "citeseer": (GCN(3703, 32, 6, **KIPF), [(32, 3703), (6, 32)]),
    "cora": (GCN(1433, 32, 7, **KIPF), [(32, 1433), (7, 32)]),
    "pubmed": (GCN(500, 32, 3, **KIPF), [(32, 500), (3, 32)]),
    "nell": (GCN(61278, 64, 210, dropout=0.1, layer_norm=False), [(64, 61278), (210, 64)]),
    "ppi": (GraphSAGE(50, 512, 121, **SAGE), [(512, 100), (512, 512), (512, 1024), (121, 512)]),
    "reddit": (GraphSAGE(602, 128, 41, **SAGE), [(128, 1204), (128, 128), (128, 256), (41, 128)]),
    "reddit, 3 layers": (
        GraphSAGE(602, 128, 41, layers=3, **SAGE),
        [(128, 1204), (128, 128), (128, 256), (128, 128), (128, 256), (41, 128)],
    ),
    "mlp": (MLP(602, 128, 41, **SAGE), [(128, 602), (128, 128), (128, 128), (41, 128)]),
}
papers = pytest.mark.parametrize(("model", "shapes"), PAPER.values(), ids=PAPER)


def matrices(model: nn.Module) -> list[torch.Tensor]:
    return [p for p in model.parameters() if p.dim() == 2]


def small(*, sparse: bool = False, undirected: bool = False, nodes: int = 60) -> Graph:
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(nodes, 12, generator=generator)
    features = features * (features < 0.4)
    edges = torch.randint(nodes - 1, (2, 3 * nodes), generator=generator)  # the last is isolated
    return Graph(
        edges[:, edges[0] != edges[1]],
        features.to_sparse_csr() if sparse else features,
        torch.randint(3, (nodes,), generator=generator),
        train=range(30),
        val=range(30, 45),
        test=range(45, 60),
        undirected=undirected,
    )


@papers
def test_widths_are_the_papers(model, shapes):
    assert [tuple(w.shape) for w in matrices(model)] == shapes


@papers
def test_there_are_no_biases_but_those_of_layer_norm(model, shapes):
    norms = [m for m in model.modules() if isinstance(m, nn.LayerNorm)]
    assert len(list(model.parameters())) == len(shapes) + 2 * len(norms)
    assert all(m.bias is None for m in model.modules() if isinstance(m, nn.Linear))


@papers
def test_layer_norm_follows_every_linear_layer_but_the_last(model, shapes):
    norms = [m.normalized_shape for m in model.modules() if isinstance(m, nn.LayerNorm)]
    expected = [(width,) for width, _ in shapes[:-1]] if model.arguments["layer_norm"] else []
    assert norms == expected


@papers
def test_weights_are_glorot_uniform(model, shapes):
    for weight, (out, into) in zip(matrices(model), shapes, strict=True):
        bound = math.sqrt(6 / (out + into))
        count = weight.numel()
        assert weight.abs().max() <= bound
        assert weight.abs().max() > bound * (1 - 20 / count)  # fails by chance at exp(-20)
        assert abs(weight.mean()) < 5 * bound / math.sqrt(3 * count)
        assert weight.var().item() == pytest.approx(bound**2 / 3, rel=5 / math.sqrt(count))


def test_biases_start_at_zero_where_asked_for():
    model = GCN(5, 4, 3, bias=True, **KIPF)
    biases = [p for p in model.parameters() if p.dim() == 1]
    assert [b.tolist() for b in biases] == [[0.0] * 4, [0.0] * 3]


@papers
def test_arguments_make_the_same_model_again(model, shapes):
    again = type(model)(**model.arguments)
    assert [tuple(w.shape) for w in matrices(again)] == shapes
    assert repr(again) == repr(model)
    assert MODELS[type(model).__name__.lower()] is type(model)


def test_gcn_is_kipf_and_wellings_formula():
    graph, model = small(), GCN(12, 8, 3, **KIPF)
    P = build_propagation("gcn", graph).to_dense()
    first, second = matrices(model)
    expected = P @ torch.relu(P @ graph.features @ first.T) @ second.T
    torch.testing.assert_close(predict(model, graph), expected.detach())


def test_graphsage_with_layer_norm_is_the_papers_reddit_network():
    graph, model = small(), GraphSAGE(12, 8, 3, **SAGE)
    P = build_propagation("mean", graph).to_dense()
    a, b, c, d = matrices(model)
    for norm in model.modules():
        if isinstance(norm, nn.LayerNorm):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
    norms = [m for m in model.modules() if isinstance(m, nn.LayerNorm)]
    x = graph.features
    h = torch.relu(norms[0](torch.cat([x, P @ x], 1) @ a.T))
    h = torch.relu(norms[1](h @ b.T))
    h = torch.relu(norms[2](torch.cat([h, P @ h], 1) @ c.T))
    torch.testing.assert_close(predict(model, graph), (h @ d.T).detach())


def test_mlp_is_the_same_dense_layers():
    graph, model = small(), MLP(12, 8, 3, layers=3, **KIPF)
    a, b, c = matrices(model)
    expected = torch.relu(torch.relu(graph.features @ a.T) @ b.T) @ c.T
    torch.testing.assert_close(predict(model, graph), expected.detach())


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_is_the_one_named(name):
    formula = {
        "relu": F.relu, "elu": F.elu, "gelu": F.gelu, "tanh": torch.tanh, "softplus": F.softplus,
    }[name]  # fmt: skip
    graph, model = small(), GCN(12, 8, 3, activation=name, **KIPF)
    P = build_propagation("gcn", graph).to_dense()
    first, second = matrices(model)
    expected = P @ formula(P @ graph.features @ first.T) @ second.T
    torch.testing.assert_close(predict(model, graph), expected.detach())


def zeros_seen(order: str) -> tuple[list[float], list[float]]:
    """Share of zeros in what is propagated and in what linear layers take, in training.

    Softplus has no zeros of its own, and neither have the features."""
    torch.manual_seed(0)
    model = GraphSAGE(
        40, 40, 40, dense=2, dropout=0.25, order=order, layer_norm=False, activation="softplus"
    )
    propagated: list[float] = []
    linear: list[float] = []

    def share(x: torch.Tensor) -> float:
        return float((x == 0).double().mean())

    def propagate(h):
        propagated.append(share(h))
        return h.clone()

    propagate.beside = lambda h: torch.cat([h, propagate(h)], dim=-1)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(lambda _, given: linear.append(share(given[0])))
    model(torch.rand(2000, 40) + 1, propagate)
    return propagated, linear


def test_order_after_drops_what_was_averaged_the_papers_m1():
    propagated, linear = zeros_seen("after")
    assert propagated == [0, 0]
    assert linear == pytest.approx([0.25] * 4, abs=0.01)


def test_order_before_drops_what_will_be_averaged_once_the_papers_m0():
    propagated, linear = zeros_seen("before")
    assert propagated == pytest.approx([0.25, 0.25], abs=0.01)
    assert linear == pytest.approx([0.25] * 4, abs=0.01)


@pytest.mark.parametrize(("order", "preprocess"), [("after", True), ("before", False)])
def test_preprocessing_is_used_exactly_where_the_features_are_propagated(order, preprocess):
    assert MiniBatches(GCN(12, 8, 3, order=order, **KIPF), small()).setup.preprocess is preprocess


@pytest.mark.parametrize(("kind", "rule"), [(MLP, None), (GCN, "identity")])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_mlp_and_identity_never_read_the_graph(kind, rule, estimator):
    weights, outputs = [], []
    for graph in (small(), small().among(torch.tensor([0]))):  # with and without edges
        torch.manual_seed(0)
        model = kind(12, 8, 3, **KIPF)
        config = TrainConfig(
            estimator=estimator, propagation=rule, epochs=2, batch_size=10, select="last"
        )
        result = fit(model, graph, config)
        if estimator != "is":  # `is` samples own edges too
            assert {(p.sampled, p.history_reads) for p in result.curve} == {(0, 0)}
        weights.append(result.weights)
        outputs.append(predict(model, graph, propagation=rule))
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())
    assert torch.equal(*outputs)


@pytest.mark.parametrize("kind", [GCN, GraphSAGE])
@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("preprocess", [None, False])
def test_sparse_features_train_like_dense_ones(kind, order, estimator, preprocess):
    weights, losses = [], []
    for sparse in (False, True):
        torch.manual_seed(0)
        model = kind(12, 8, 3, order=order, dropout=0.0, layer_norm=False)
        config = TrainConfig(
            estimator=estimator, epochs=2, batch_size=10, preprocess=preprocess,
            optimizer="sgd", learning_rate=0.1, select="last", evaluate_every=2,
        )  # fmt: skip
        result = fit(model, small(sparse=sparse), config)
        weights.append(result.weights)
        losses.append([point.loss for point in result.curve])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_sparse_features_under_dropout_train_or_say_why_not(order, estimator):
    model, graph = GraphSAGE(12, 8, 3, order=order, **KIPF), small(sparse=True)
    config = TrainConfig(estimator=estimator, epochs=1)
    if order == "before" and estimator in ("cv", "history", "two-way"):
        with refused():
            fit(model, graph, config)
    else:
        assert math.isfinite(fit(model, graph, config).curve[0].loss)


class PyG(nn.Module):
    """The same network by PyG's layers, with the weights of ours."""

    def __init__(self, ours: GCN | GraphSAGE) -> None:
        super().__init__()
        self.convs = nn.ModuleList()
        for layer in ours.layers:
            weight, bias = layer.linears[0].weight, layer.linears[0].bias
            width = weight.shape[1] if isinstance(ours, GCN) else weight.shape[1] // 2
            kind = GCNConv if isinstance(ours, GCN) else SAGEConv
            conv = kind(width, weight.shape[0], bias=bias is not None)
            with torch.no_grad():
                if isinstance(ours, GCN):
                    conv.lin.weight.copy_(weight)
                    conv.bias.copy_(bias)
                else:  # [own, average] side by side
                    conv.lin_r.weight.copy_(weight[:, :width])
                    conv.lin_l.weight.copy_(weight[:, width:])
                    conv.lin_l.bias.copy_(bias)
            self.convs.append(conv)

    def forward(self, x, *edges):
        for conv in self.convs[:-1]:
            x = torch.relu(conv(x, *edges))
        return self.convs[-1](x, *edges)

    def first_gradient(self) -> torch.Tensor:
        conv = self.convs[0]
        if isinstance(conv, GCNConv):
            return conv.lin.weight.grad
        return torch.cat([conv.lin_r.weight.grad, conv.lin_l.weight.grad], dim=1)


@pytest.mark.parametrize(
    ("kind", "undirected", "weighted"),
    [(GCN, True, False), (GCN, True, True), (GraphSAGE, True, False), (GraphSAGE, False, False)],
)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_agrees_with_pyg_forward_and_backward(kind, undirected, weighted, layers):
    graph = small(undirected=undirected)
    edges = (graph.edge_index(),)
    if weighted:
        weight = torch.rand(graph.num_nodes, generator=torch.Generator().manual_seed(2))
        edges = (edges[0], weight[edges[0][0]] * weight[edges[0][1]])  # both ways the same
        graph = Graph(edges[0], graph.features, graph.labels, edge_weight=edges[1], train=[0])
    torch.manual_seed(3)
    ours = kind(12, 8, 3, layers=layers, dropout=0.0, layer_norm=False, bias=True)
    theirs = PyG(ours)
    expected = theirs(graph.features, *edges)
    F.cross_entropy(expected, graph.labels).backward()
    torch.testing.assert_close(predict(ours, graph), expected.detach(), rtol=1e-5, atol=1e-5)
    for batch in MiniBatches(ours, graph, estimator="exact", nodes="all", batch_size=32):
        outputs = batch.run(ours)
        torch.testing.assert_close(outputs, expected[batch.nodes], rtol=1e-5, atol=1e-5)
        loss = F.cross_entropy(outputs, batch.labels, reduction="sum") / graph.num_nodes
        loss.backward()
    got = ours.layers[0].linears[0].weight.grad
    torch.testing.assert_close(got, theirs.first_gradient(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)
def test_the_other_order_has_the_same_weights_in_the_same_state_dict(kind):
    states = []
    for transform_first in (False, True):
        torch.manual_seed(3)
        states.append(kind(12, 8, 3, transform_first=transform_first, bias=True).state_dict())
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


@pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)
def test_the_other_order_takes_a_state_dict_in_place_or_as_it_is(kind):
    usual, graph = kind(12, 8, 3), small(sparse=True)
    wanted = predict(usual, graph)
    for assign in (False, True):
        other = kind(12, 8, 3, transform_first=True)
        other.load_state_dict(usual.state_dict(), assign=assign)
        assert other.layers[0].linears[0].weight.is_contiguous()
        torch.testing.assert_close(predict(other, graph), wanted)


def test_the_gradient_of_a_wide_sparse_input_makes_no_dense_copy_of_it():
    """200,000 columns: a dense x of the minibatch would take 400 MB, its gradient half of that."""
    columns, rows = 200_000, 500
    places = torch.arange(rows) * 401 % columns
    x = CSR(torch.arange(rows + 1), places, torch.ones(rows), columns).to_torch()
    model = GCN(columns, 4, 3, layers=1, dropout=0.0, transform_first=True)
    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            made = result if isinstance(result, tuple | list) else [result]
            sizes = [t.numel() for t in made if isinstance(t, torch.Tensor) and not t.is_sparse_csr]
            largest = max(largest, *sizes, 0)
            return result

    with Watch():
        model(x, lambda h: h.clone()).sum().backward()
    assert largest <= 4 * columns  # the weights and their gradient
    assert model.layers[0].linears[0].weight.grad.count_nonzero() == 3 * rows


class Own(nn.Module):
    """A model of one's own that multiplies sparse features before it propagates them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = InputLinear(12, 8)
        self.last = nn.Linear(8, 3)

    def forward(self, x, propagate):
        return self.last(torch.relu(propagate(self.first(x))))


@pytest.mark.parametrize("estimator", ["exact", "cvd", "two-way"])
def test_a_model_of_ones_own_takes_sparse_features_by_the_same_layer(estimator):
    torch.manual_seed(0)
    graph, model = small(sparse=True), Own()
    before = model.first.weight.detach().clone()
    fit(model, graph, TrainConfig(estimator=estimator, epochs=2, batch_size=20))
    assert not torch.equal(model.first.weight, before)
    P, x = build_propagation("gcn", graph).to_dense(), graph.features.to_dense()
    hidden = torch.relu(P @ (x @ model.first.weight + model.first.bias))
    wanted = hidden @ model.last.weight.T + model.last.bias
    torch.testing.assert_close(predict(model, graph), wanted.detach())


@pytest.mark.parametrize("transform_first", [True, False])
@pytest.mark.parametrize("jumping", ["none", "cat", "max"])
@pytest.mark.parametrize("skip", [True, False])
def test_skips_and_jumps_are_their_formulas(skip, jumping, transform_first):
    torch.manual_seed(0)
    graph = small(sparse=True)
    settings = {"skip": skip, "jumping": jumping, "transform_first": transform_first}
    model = GCN(12, 8, 3, layers=3, layer_norm=False, **settings)
    weights = [value for name, value in model.state_dict().items() if name.endswith("weight")]
    P, x = build_propagation("gcn", graph).to_dense(), graph.features.to_dense()
    first = torch.relu(P @ x @ weights[0].T)
    second = torch.relu(P @ first @ weights[1].T) + (first if skip else 0)
    third = P @ second @ weights[2].T
    expected = third
    if jumping != "none":
        seen = [first, second, torch.relu(third) + (second if skip else 0)]
        jumped = torch.cat(seen, 1) if jumping == "cat" else torch.stack(seen).amax(0)
        expected = jumped @ weights[3].T
    torch.testing.assert_close(predict(model, graph), expected)


@pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("estimator", ["exact", "ns", "cvd", "history", "two-way", "two-way-cv"])
def test_batch_norm_trains_by_every_estimator_in_minibatches_of_one_node(kind, estimator):
    torch.manual_seed(0)
    graph = small()
    graph = graph.with_splits({"train": torch.arange(7), "val": graph.val})
    settings = {"dense": 2, "norm": "batch", "skip": True, "jumping": "cat"}
    model = kind(12, 8, 3, layers=3, **settings)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    config = TrainConfig(estimator=estimator, batch_size=1, epochs=1)
    sizes = set()
    fit(model, graph, config, on_batch=lambda batch: sizes.add(len(batch.nodes)))
    assert sizes == {1}
    assert predict(model, graph).isfinite().all()
    pairs = zip(model.parameters(), before, strict=True)
    assert any(not torch.equal(now, then) for now, then in pairs)


def test_a_minibatch_of_one_node_is_normalised_by_what_was_seen_and_adds_nothing_to_it():
    torch.manual_seed(0)
    graph, model = small(), GCN(12, 8, 3, dropout=0.0, norm="batch")
    batches = MiniBatches(model, graph, estimator="exact", preprocess=True)
    norm = model.layers[0].norms[0]
    batches.batch(torch.arange(20)).run(model)
    seen = norm.running_mean.clone()
    alone = batches.batch(torch.tensor([3])).run(model)
    assert torch.equal(norm.running_mean, seen)
    assert norm.training
    torch.testing.assert_close(alone, predict(model, graph, [3]))


def test_a_deep_model_that_jumps_trains():
    graph = small()
    model = GraphSAGE(12, 16, 3, layers=16, skip=True, jumping="max", norm="batch")
    result = fit(model, graph, TrainConfig(estimator="two-way", epochs=1, batch_size=20))
    assert math.isfinite(result.curve[0].loss)


@pytest.mark.parametrize("settings", [{"norm": "group"}, {"jumping": "lstm"}])
def test_a_norm_or_a_jump_that_there_is_not_is_refused(settings):
    with refused():
        GCN(12, 8, 3, **settings)
