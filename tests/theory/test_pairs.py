"""Proves that minibatches of nodes with partners from a table train on the loss of pairs.

The loss of an epoch is the mean over its terms. At fixed weights and with an exact table, each
node's minibatch has the gradient of that loss with respect to the node's own embedding, whatever
slots the node is in, and the gradients of an epoch add up to the full one: of the network, and of
the decoder, which learns from the minibatch of a term's source. All in float64; measured errors
are below 1e-14.

Theorem 1 holds for the table too: at fixed weights it becomes exact when the histories are, in the
epoch that reads exact tables of everything below.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.targets.test_ranking import SCORED
from tests.theory.problems import FEATURES, HIDDEN, RAW, double_minibatches, error, random_graph
from tests.theory.test_kinds import made_graph
from vrgcn.engine.history import Histories
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.batches import PARTNERS, NodeBatches, PairBatches
from vrgcn.pairs.decoders import DECODERS
from vrgcn.pairs.heads import Watched, head_of
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.terms import LOSSES, Terms, TermSource
from vrgcn.targets.pair_split import split_pairs, visible_graph

EXACT, WRONG = 1e-12, 1e-3
EACH = [name for name in DECODERS if name != "lift"]  # its negatives are shared
WIDTH = 4


def pair_graph(*, directed: bool = True) -> Graph:
    graph = random_graph(nodes=40, degree=4)
    if not directed:
        graph = Graph(graph.edge_index(), graph.features, undirected=True)
    return split_pairs(graph, ratio=(0.8, 0.1, 0.1))


def pair_model(graph: Graph, encoder: str, decoder: str, layers: int = 2) -> PairModel:
    assert graph.pairs is not None
    torch.manual_seed(layers)
    model = PairModel(
        encoder,
        decoder,
        relation="edges",
        directed=graph.pairs.directed,
        in_features=FEATURES,
        hidden=HIDDEN,
        classes=WIDTH,
        layers=layers,
        dropout=0.0,
        layer_norm=False,
    ).double()
    for parameter in model.decoder.parameters():  # weights of 1 hide mistakes
        torch.nn.init.normal_(parameter)
    return model


def kinds_graph() -> Graph:
    """Users buy items; users follow each other; items are sold by shops, which have no features."""
    return split_pairs(made_graph(), "user-bought-item", ratio=(0.8, 0.1, 0.1))


def kinds_model(graph: Graph, encoder: str, decoder: str, layers: int = 2) -> PairModel:
    assert graph.pairs is not None
    torch.manual_seed(layers)
    settings: dict[str, Any] = {"layers": layers, "classes": WIDTH}
    if encoder == "lightgcn":
        settings |= {"in_features": graph.num_features, "nodes": graph.num_nodes}
    else:
        settings |= {
            "kinds": {kind: graph.kinds.widths.get(kind, 0) for kind in graph.kinds.names},
            "relations": [relation.triple for relation in graph.relations.values()],
            "target": ["user", "item"],
            "hidden": HIDDEN,
            "rows": {"shop": graph.kinds.sizes["shop"], "item": graph.kinds.sizes["item"]},
            "dropout": 0.0,
            "layer_norm": False,
            "bias": True,
        }
    pairs = graph.pairs
    relation, directed = pairs.relation, pairs.directed
    model = PairModel(encoder, decoder, relation=relation, directed=directed, **settings).double()
    for parameter in (*model.decoder.parameters(), *tables(model)):
        torch.nn.init.normal_(parameter)
    return model


def rows_model(graph: Graph, encoder: str, decoder: str, layers: int = 2) -> PairModel:
    """A model with a learned row for each node, of a graph of one kind."""
    assert graph.pairs is not None
    torch.manual_seed(layers)
    settings: dict[str, Any] = {"layers": layers, "classes": WIDTH, "nodes": graph.num_nodes}
    settings["in_features"] = FEATURES
    if encoder != "lightgcn":
        settings |= {"hidden": HIDDEN, "dropout": 0.0, "layer_norm": False, "node_embeddings": True}
    directed = graph.pairs.directed
    model = PairModel(encoder, decoder, relation="edges", directed=directed, **settings).double()
    for parameter in (*model.decoder.parameters(), *tables(model)):
        torch.nn.init.normal_(parameter)
    return model


def tables(model: PairModel) -> list[torch.nn.Parameter]:
    """The learned rows of a model."""
    return [p for name, p in model.named_parameters() if name.endswith("rows")]


def embeddings(model: PairModel, graph: Graph) -> Tensor:
    """(nodes, WIDTH), all nodes in one exact minibatch."""
    batches = double_minibatches(model, graph, estimator="exact", nodes="all")
    return batches.batch(torch.arange(graph.num_nodes)).run(model)


def batches_of(
    kind: Any, model: PairModel, graph: Graph, source: TermSource, **settings: Any
) -> Any:
    settings = {"estimator": "exact", "nodes": "all", "batch_size": 7, **settings}
    trained = torch.ones(graph.num_nodes, dtype=torch.bool)
    return kind(model, graph, source=source, trained=trained, history_dtype="float64", **settings)


def full_loss(model: PairModel, source: TermSource, terms: Terms, z: Tensor) -> Tensor:
    """The mean over all terms, every node computed."""
    rows = z[terms.nodes]
    return source.losses(terms, model.decoder(rows[:, :1], rows[:, 1:])).mean()


def gradients(loss: Tensor, model: PairModel) -> list[Tensor]:
    parameters = list(model.parameters())
    found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    return [
        torch.zeros_like(p) if part is None else part.to_dense()
        for p, part in zip(parameters, found, strict=True)
    ]


def largest_error(found: list[Tensor], wanted: list[Tensor]) -> float:
    """Relative to the largest entry of the gradient: that of a bias may be zero."""
    flat = [torch.cat([part.flatten() for part in parts]) for parts in (found, wanted)]
    return error(*flat)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("decoder", "directed"), [each for each in SCORED if each[0] in EACH])
@pytest.mark.parametrize("encoder", ["gcn", "graphsage"])
def test_one_sided_gradients_of_an_epoch_add_up_to_the_full_gradient(
    encoder: str, decoder: str, loss: Any, directed: bool
) -> None:
    graph = pair_graph(directed=directed)
    assert graph.pairs is not None
    assert graph.pairs.directed == directed
    check_epoch(pair_model(graph, encoder, decoder), graph, loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("encoder", "decoder"),
    [
        *(("lightgcn", decoder) for decoder in EACH),
        ("relational-gcn", "dot"),
        ("relational-graphsage", "mlp"),
    ],
)
def test_one_sided_gradients_add_up_over_relations_between_kinds(
    encoder: str, decoder: str, loss: Any
) -> None:
    graph = kinds_graph()
    check_epoch(kinds_model(graph, encoder, decoder), graph, loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("encoder", ["lightgcn", "gcn", "graphsage"])
def test_one_sided_gradients_add_up_for_models_with_learned_rows(encoder: str, loss: Any) -> None:
    graph = pair_graph()
    check_epoch(rows_model(graph, encoder, "mlp"), graph, loss)


def check_epoch(model: PairModel, graph: Graph, loss: Any) -> None:
    """Assert that the gradients of an epoch of node minibatches add up to the full gradient."""
    assert graph.pairs is not None
    source = TermSource(graph.pairs, loss, negatives=2)
    objective = SimpleNamespace(decoder=model.decoder)
    batches = batches_of(NodeBatches, model, graph, source)
    sums: list[Tensor] | None = None
    counted = 0.0
    for batch in batches:
        losses = batch.losses(objective, batch.run(model))
        counted += batch.counted(losses).item()
        share = len(batch.nodes) / graph.num_nodes
        parts = [share * part for part in gradients(batch.mean(losses), model)]
        sums = parts if sums is None else [a + b for a, b in zip(sums, parts, strict=True)]
        batch.commit()
    wanted = full_loss(model, source, batches.terms, embeddings(model, graph))
    assert counted / source.count == pytest.approx(wanted.item(), abs=EXACT)
    assert sums is not None
    assert largest_error(sums, gradients(wanted, model)) < EXACT


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("decoder", EACH)
def test_a_node_has_its_gradient_in_every_role(decoder: str, loss: Any) -> None:
    """Nodes 0-9 are sources alone, 10-19 true partners and negatives, 20-39 negatives alone."""
    graph = random_graph(nodes=40, degree=4)
    generator = torch.Generator().manual_seed(3)
    sources = torch.randint(0, 10, (30,), generator=generator)
    targets = torch.randint(10, 20, (30,), generator=generator)
    true = torch.stack([sources, targets], dim=1).unique(dim=0)
    pairs = Pairs("edges", True, range(10), range(10, 40), true, true[:0], true[:0])
    everything = torch.ones(graph.adjacency.num_entries, dtype=torch.bool)
    graph = visible_graph(graph, pairs, {"edges": everything})
    model = pair_model(graph, "gcn", decoder)
    source = TermSource(pairs, loss, negatives=3)
    objective = SimpleNamespace(decoder=model.decoder)
    batches = batches_of(NodeBatches, model, graph, source, batch_size=1)
    found = torch.zeros(graph.num_nodes, WIDTH, dtype=torch.float64)
    for batch in batches:
        outputs = batch.run(model).detach().requires_grad_()
        batch.mean(batch.losses(objective, outputs)).backward()
        assert outputs.grad is not None
        found[batch.nodes] = outputs.grad / graph.num_nodes  # a minibatch of one of them
        batch.commit()
    z = embeddings(model, graph).detach().requires_grad_()
    full_loss(model, source, batches.terms, z).backward()
    assert z.grad is not None
    for role in (slice(0, 10), slice(10, 20), slice(20, 40)):
        assert z.grad[role].abs().max() > WRONG
        assert error(found[role], z.grad[role]) < EXACT


@pytest.mark.parametrize("loss", LOSSES)
def test_minibatches_of_pairs_have_the_full_gradient_on_average(loss: Any) -> None:
    graph = pair_graph()
    assert graph.pairs is not None
    model = pair_model(graph, "gcn", "mlp")
    source = TermSource(graph.pairs, loss, negatives=2)
    objective = SimpleNamespace(decoder=model.decoder)
    batches = batches_of(PairBatches, model, graph, source, batch_size=11)
    sums = [torch.zeros_like(weight) for weight in model.parameters()]
    for batch in batches:
        value = batch.mean(batch.losses(objective, batch.run(model)))
        share = len(batch.terms) / source.count
        parts = gradients(value, model)
        sums = [total + share * part for total, part in zip(sums, parts, strict=True)]
        batch.commit()
    wanted = full_loss(model, source, batches.terms, embeddings(model, graph))
    assert largest_error(sums, gradients(wanted, model)) < EXACT


@pytest.mark.parametrize("estimator", ["cv", "cvd", RAW, "history"])
@pytest.mark.parametrize("layers", [2, 3])
def test_at_fixed_weights_the_table_becomes_exact_in_the_epoch_of_the_theorem(
    layers: int, estimator: str
) -> None:
    graph = pair_graph()
    check_theorem(pair_model(graph, "gcn", "dot", layers), graph, estimator, layers)


@pytest.mark.parametrize("estimator", ["cvd", RAW])
@pytest.mark.parametrize("encoder", ["lightgcn", "relational-gcn", "relational-graphsage"])
def test_the_table_of_nodes_of_several_kinds_becomes_exact_too(
    encoder: str, estimator: str
) -> None:
    graph = kinds_graph()
    check_theorem(kinds_model(graph, encoder, "dot", 3), graph, estimator, 3)


@pytest.mark.parametrize("estimator", ["cvd", RAW])
@pytest.mark.parametrize("encoder", ["lightgcn", "graphsage"])
def test_the_table_of_models_with_learned_rows_becomes_exact_too(
    encoder: str, estimator: str
) -> None:
    graph = pair_graph()
    check_theorem(rows_model(graph, encoder, "dot", 3), graph, estimator, 3)


def check_theorem(model: PairModel, graph: Graph, estimator: str, layers: int) -> None:
    """Assert that the table of partners is exact after `layers` epochs and not before."""
    assert graph.pairs is not None
    source = TermSource(graph.pairs, "logistic", negatives=1)
    objective = SimpleNamespace(decoder=model.decoder)
    batches = batches_of(NodeBatches, model, graph, source, estimator=estimator, fanout=1)
    with Watched(head_of(model, graph)) as seen:
        embeddings(model, graph)
    _spoil(batches.histories, layers, seen.value)
    for number in range(1, layers + 1):
        for batch in batches:
            losses = batch.losses(objective, batch.run(model))
            gradients(batch.mean(losses), model)
            batch.commit()
        wrong = error(batches.histories.tables[layers, PARTNERS].values, seen.value)
        assert wrong < EXACT if number == layers else wrong > WRONG


def _spoil(histories: Histories, level: int, like: Tensor) -> None:
    """Give the table of partners other rows than the exact ones."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(like.shape, generator=generator, dtype=like.dtype)
    histories.table(level, like.shape[1], PARTNERS).write(torch.arange(len(like)), rows, 0)
