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

from tests.pairs.test_ranking import SCORED
from tests.theory.problems import FEATURES, HIDDEN, error, exact_pass, random_graph
from vrgcn.engine.history import Histories
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.batches import PARTNERS, NodeBatches, PairBatches
from vrgcn.pairs.decoders import DECODERS
from vrgcn.pairs.model import PairModel, head_of
from vrgcn.pairs.split import message_graph, split_pairs
from vrgcn.pairs.terms import LOSSES, Terms, TermSource

EXACT, WRONG = 1e-12, 1e-3
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
    return list(
        torch.autograd.grad(
            loss, list(model.parameters()), allow_unused=True, materialize_grads=True
        )
    )


def largest_error(found: list[Tensor], wanted: list[Tensor]) -> float:
    """Relative to the largest entry of the gradient: that of a bias may be zero."""
    flat = [torch.cat([part.flatten() for part in parts]) for parts in (found, wanted)]
    return error(*flat)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("decoder", "directed"), SCORED)
@pytest.mark.parametrize("encoder", ["gcn", "graphsage"])
def test_one_sided_gradients_of_an_epoch_add_up_to_the_full_gradient(
    encoder: str, decoder: str, loss: Any, directed: bool
) -> None:
    graph = pair_graph(directed=directed)
    assert graph.pairs is not None
    assert graph.pairs.directed == directed
    model = pair_model(graph, encoder, decoder)
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
    wanted = full_loss(model, source, batches.terms, exact_pass(model, graph)[-1])
    assert counted / source.count == pytest.approx(wanted.item(), abs=EXACT)
    assert sums is not None
    assert largest_error(sums, gradients(wanted, model)) < EXACT


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("decoder", DECODERS)
def test_a_node_has_its_gradient_in_every_role(decoder: str, loss: Any) -> None:
    """Nodes 0-9 are sources alone, 10-19 true partners and negatives, 20-39 negatives alone."""
    graph = random_graph(nodes=40, degree=4)
    generator = torch.Generator().manual_seed(3)
    sources = torch.randint(0, 10, (30,), generator=generator)
    targets = torch.randint(10, 20, (30,), generator=generator)
    true = torch.stack([sources, targets], dim=1).unique(dim=0)
    pairs = Pairs("edges", True, range(10), range(10, 40), true, true[:0], true[:0])
    graph = message_graph(graph, pairs, graph.adjacency)
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
    z = exact_pass(model, graph)[-1].detach().requires_grad_()
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
    wanted = full_loss(model, source, batches.terms, exact_pass(model, graph)[-1])
    assert largest_error(sums, gradients(wanted, model)) < EXACT


@pytest.mark.parametrize("estimator", ["cv", "cvd", "two-way", "history"])
@pytest.mark.parametrize("layers", [2, 3])
def test_at_fixed_weights_the_table_becomes_exact_in_the_epoch_of_the_theorem(
    layers: int, estimator: str
) -> None:
    graph = pair_graph()
    assert graph.pairs is not None
    model = pair_model(graph, "gcn", "dot", layers)
    source = TermSource(graph.pairs, "logistic", negatives=1)
    objective = SimpleNamespace(decoder=model.decoder)
    batches = batches_of(NodeBatches, model, graph, source, estimator=estimator, fanout=1)
    seen: list[Tensor] = []
    hook = head_of(model).register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    exact_pass(model, graph)
    hook.remove()
    _spoil(batches.histories, layers, seen[0])
    for number in range(1, layers + 1):
        for batch in batches:
            losses = batch.losses(objective, batch.run(model))
            gradients(batch.mean(losses), model)
            batch.commit()
        wrong = error(batches.histories.tables[layers, PARTNERS].values, seen[0])
        assert wrong < EXACT if number == layers else wrong > WRONG


def _spoil(histories: Histories, level: int, like: Tensor) -> None:
    """Give the table of partners other rows than the exact ones."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(like.shape, generator=generator, dtype=like.dtype)
    histories.table(level, like.shape[1], PARTNERS).write(torch.arange(len(like)), rows, 0)
