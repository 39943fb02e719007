"""Several kinds and relations: every estimator against the dense formula, in float64.

The graph has two kinds with features of other widths, one without, a weighted relation, one with
edges of a node to itself, and nodes that a relation does not reach. The formula is

    h'_u = activation( h_u W_kind(u) + sum over relations r into u of (P_r h)_u W_r ),

h = X W + E with E the learned rows, written here with dense matrices made from lists of edges.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.theory.problems import RAW, RAW_CV, double_minibatches, epoch, error
from vrgcn import Graph, MiniBatches, predict
from vrgcn.models.relational import RelationalGCN, RelationalModel, RelationalSAGE

USERS, ITEMS, SHOPS, CLASSES = 24, 15, 6, 3
EXACT = 1e-12


def made_graph() -> Graph:
    generator = torch.Generator().manual_seed(0)

    def edges(sources: int, targets: int, count: int) -> Tensor:
        ends = [torch.randint(n, (count,), generator=generator) for n in (sources, targets)]
        return torch.stack(ends)

    follows = edges(USERS, USERS - 3, 60)
    follows[:, 0] = 5  # user 5 follows themselves
    weight = torch.randint(1, 9, (20,), generator=generator) / 4
    return Graph.from_kinds(
        {
            "user": torch.randn(USERS, 4, generator=generator, dtype=torch.float64),
            "item": torch.randn(ITEMS, 3, generator=generator, dtype=torch.float64),
            "shop": SHOPS,
        },
        {
            ("user", "bought", "item"): edges(USERS - 2, ITEMS, 70),
            ("item", "sold_by", "shop"): (edges(ITEMS, SHOPS, 20), weight),
            ("user", "follows", "user"): follows,
        },
        {"user": torch.randint(CLASSES, (USERS,), generator=generator)},
        train=torch.arange(USERS),
    )


GRAPH = made_graph()
ROWS = {"user": USERS, "item": ITEMS, "shop": SHOPS}
SOME = torch.tensor([4, 19, 0, 8, 23])


def made_model(cls: type[RelationalModel] = RelationalSAGE, **changes: Any) -> RelationalModel:
    torch.manual_seed(7)
    given = {
        "rows": {"shop": SHOPS, "item": ITEMS},
        "dropout": 0.0,
        "layer_norm": False,
        "bias": True,
        "activation": "tanh",
        **changes,
    }
    triples = [relation.triple for relation in GRAPH.relations.values()]
    model = cls(GRAPH.kinds.widths, triples, "user", 6, CLASSES, **given)
    for parameter in model.parameters():
        if parameter.dim() == 2 and parameter.shape[0] == 3:
            nn.init.normal_(parameter, std=0.3)  # biases of kinds
    return model.double()


def dense_matrix(name: str, rule: str) -> Tensor:
    relation = GRAPH.relations[name]
    A = torch.zeros(GRAPH.num_nodes, GRAPH.num_nodes, dtype=torch.float64)
    matrix = relation.adjacency
    A[matrix.row_of_entry, matrix.indices] = matrix.weights(torch.float64)
    rows, columns = A.sum(1, keepdim=True), A.sum(0, keepdim=True)
    size = rows if rule == "mean" else (rows * columns).sqrt()
    return torch.where(A > 0, A / size, 0)


def dense_outputs(model: RelationalModel) -> Tensor:
    kinds = GRAPH.kinds
    assert model.encoder is not None
    h = GRAPH.features.to_dense() @ model.encoder.weight
    parts = {table.kind: table.rows for table in model.rows}
    rows = [parts.get(kind, h.new_zeros(size, 6)) for kind, size in kinds.sizes.items()]
    h = h + torch.cat(rows)
    kind = kinds.of(torch.arange(GRAPH.num_nodes))
    for used, layer in zip(model.used, model.layers, strict=True):
        linear = layer.linears[0]
        y = torch.einsum("ni,nio->no", h, linear.own[kind]) + linear.bias[kind]
        weight = linear.weight
        if linear.shares is not None:
            weight = (linear.shares[:, :, None, None] * weight).sum(1)
        for name, matrix in zip(used, weight, strict=True):
            y = y + dense_matrix(name, model.propagation) @ h @ matrix
        h = layer.after_first(y)
    return h


def dense_gradients(model: RelationalModel, nodes: Tensor) -> list[Tensor]:
    assert GRAPH.labels is not None
    loss = F.cross_entropy(dense_outputs(model)[nodes], GRAPH.labels[nodes])
    return list(torch.autograd.grad(loss, list(model.parameters())))


def gradients(loss: Tensor, model: nn.Module) -> list[Tensor]:
    found = torch.autograd.grad(loss, list(model.parameters()))
    return [part.to_dense() if part.is_sparse else part for part in found]


def batches_of(model: nn.Module, estimator: str, **given: Any) -> MiniBatches:
    return double_minibatches(model, GRAPH, estimator=estimator, **{"nodes": "all", **given})


def assert_same(found: list[Tensor], wanted: list[Tensor], tolerance: float = EXACT) -> None:
    for one, two in zip(found, wanted, strict=True):
        if two.abs().max() > 0:
            assert error(one, two) < tolerance
        else:
            assert one.abs().max() < tolerance


@pytest.mark.parametrize("cls", [RelationalSAGE, RelationalGCN])
@pytest.mark.parametrize("changes", [{}, {"layers": 3, "dense": 2}, {"bases": 2}, {"layers": 1}])
def test_predictions_equal_the_dense_formula(cls: Any, changes: dict[str, Any]) -> None:
    model = made_model(cls, **changes).eval()
    users = dense_outputs(model).detach()[:USERS]
    assert error(predict(model, GRAPH, nodes=range(USERS)), users) < EXACT
    assert error(predict(model, GRAPH, nodes=SOME), users[SOME]) < EXACT


@pytest.mark.parametrize("cls", [RelationalSAGE, RelationalGCN])
@pytest.mark.parametrize("changes", [{}, {"transform_first": True}, {"bases": 2}, {"rows": ROWS}])
def test_exact_gradients_equal_those_of_autograd(cls: Any, changes: dict[str, Any]) -> None:
    model = made_model(cls, **changes)
    batch = batches_of(model, "exact").batch(SOME)
    outputs = batch.run(model)
    assert error(outputs, dense_outputs(model)[SOME]) < EXACT
    assert GRAPH.labels is not None
    loss = F.cross_entropy(outputs, GRAPH.labels[SOME])
    assert_same(gradients(loss, model), dense_gradients(model, SOME))


@pytest.mark.parametrize("estimator", ["ns", "cv", "cvd", "two-way-cv", "two-way"])
def test_with_all_neighbours_estimators_are_exact(estimator: str) -> None:
    model = made_model()
    batches = batches_of(model, estimator, fanout=100)
    assert error(batches.batch(SOME).run(model), dense_outputs(model)[SOME]) < EXACT


@pytest.mark.parametrize("estimator", ["cv", "cvd", "history", RAW, RAW_CV])
@pytest.mark.parametrize("changes", [{"layers": 3}, {"transform_first": True}])
def test_theorem_1_after_an_epoch_per_level_activations_are_exact(
    estimator: str, changes: dict[str, Any]
) -> None:
    model = made_model(**changes)
    batches = batches_of(model, estimator, fanout=1, batch_size=7)
    wanted = dense_outputs(model).detach()[:USERS]
    first = epoch(batches, model)
    for _ in range(2):
        outputs = epoch(batches, model)
    assert error(outputs[:USERS], wanted) < EXACT
    assert error(first[:USERS], wanted) > 1e-4


@pytest.mark.parametrize("estimator", [RAW, RAW_CV])
@pytest.mark.parametrize("layers", [2, 3])
def test_theorem_1_backwards_gradients_of_an_epoch_are_exact(estimator: str, layers: int) -> None:
    model = made_model(layers=layers)
    batches = batches_of(model, estimator, fanout=1 if estimator == RAW_CV else 0,
                         batch_size=9)  # fmt: skip
    wanted = dense_gradients(model, torch.arange(USERS))
    assert GRAPH.labels is not None
    for number in range(6):
        total = [torch.zeros_like(part) for part in wanted]
        visited = 0
        for batch in batches:
            outputs, mine = batch.run(model), batch.in_loss
            losses = F.cross_entropy(outputs[mine], GRAPH.labels[batch.nodes[mine]],
                                     reduction="none")  # fmt: skip
            for part, found in zip(total, gradients(batch.mean(losses), model), strict=True):
                part.add_(found, alpha=len(batch.nodes))
            visited += len(batch.nodes)
            batch.commit()
        mean = [part / visited for part in total]
        if number == 0:
            assert max(error(a, b) for a, b in zip(mean, wanted, strict=True)) > 1e-3
    assert_same(mean, wanted, 1e-10)


@pytest.mark.parametrize("layers", [2, 3])
def test_if_all_rows_of_a_kind_moved_by_one_vector_answers_are_exact(layers: int) -> None:
    model = made_model(layers=layers)
    some = torch.tensor([3, 8, 20, 26, 30, 38, 40, 44])  # users, items and shops
    users = slice(0, 3)
    found = {}
    for estimator in ("two-way", RAW):
        batches = batches_of(model, estimator, fanout=0)
        batches.warm_start(model)
        kinds = GRAPH.kinds.of(torch.arange(GRAPH.num_nodes))
        for level, table in enumerate(batches.histories.tables.values()):
            generator = torch.Generator().manual_seed(level)
            moves = torch.randn(3, 6, generator=generator, dtype=torch.float64)
            table.values -= moves[kinds]
        outputs = batches.batch(some).run(model)
        found[estimator] = error(outputs[users], dense_outputs(model)[some[users]])
    assert found["two-way"] < EXACT
    assert found[RAW] > 1e-2


@pytest.mark.parametrize("estimator", ["ns", "cv", "is"])
def test_estimates_of_one_level_have_the_mean_of_the_exact_one(estimator: str) -> None:
    # One layer after the entrance is propagated: outputs are linear in the estimates. 800 plans:
    # five standard errors of each output.
    model = made_model(layers=1, transform_first=True)
    batches = batches_of(model, estimator, fanout=1, sample_size=8)
    torch.manual_seed(0)
    if estimator == "cv":  # the mean does not depend on the history
        batches.histories.table(0, 6).values.normal_()
    generator, found = torch.Generator().manual_seed(3), []
    with torch.no_grad():
        for _ in range(800):
            batch = batches.batch(SOME, generator)
            found.append(batch.run(model))
            batch.discard()
    draws = torch.stack(found)
    off = draws.mean(0) - dense_outputs(model)[SOME]
    assert (off.abs() < 5 * draws.std(0) / len(draws) ** 0.5 + 1e-12).all()
    assert draws.std(0).max() > 1e-2


@pytest.mark.parametrize("estimator", ["two-way", "history", "cv"])
def test_learned_rows_are_read_themselves_and_not_a_copy(estimator: str) -> None:
    # A change of a shop's row shows at once in the answers of its items, whatever tables hold.
    model = made_model(layers=1)
    batches = batches_of(model, estimator)
    epoch(batches, model)
    shops = next(table for table in model.rows if table.kind == "shop")
    with torch.no_grad():
        shops.rows += 1.0
        outputs = batches.batch(SOME).run(model)
    assert error(outputs, dense_outputs(model)[SOME]) < EXACT
    assert not batches.histories.tables


def test_relations_that_do_not_end_in_a_level_cost_no_rows() -> None:
    model = made_model()
    plan = batches_of(model, "exact").batch(SOME).plan
    last = plan.levels[-2]
    assert set(last.hops) == {"item-rev_bought-user", "user-follows-user", "user-rev_follows-user"}
    bought = last.hops["item-rev_bought-user"]
    assert bought.rows is not None
    assert bought.rows.tolist() == [0, 1, 2, 3]  # user 23 bought nothing
    kinds = GRAPH.kinds
    assert not bool((kinds.of(last.nodes) == 2).any())  # no shop is one hop from a user


def test_two_way_counts_the_neighbours_of_all_relations_together() -> None:
    model = made_model()
    plan = batches_of(model, "two-way", fanout=3).batch(torch.arange(USERS)).plan
    degrees = sum(GRAPH.relations[name].adjacency.counts[:USERS] for name in model.used[1])
    for name, hop in plan.levels[-2].hops.items():
        assert hop.rows is not None
        computed = hop.rows[hop.edges.counts > 0]
        assert (degrees[computed] <= 4).all(), name  # a node's own edge is not counted
        assert hop.edges.num_entries < GRAPH.relations[name].num_edges
