"""Proves that minibatches of queries train on the loss of all triples.

The loss of an epoch is the mean over its terms, the training triples and their reverses. With all
nodes as candidates, the gradients of an epoch's minibatches, weighed by their numbers of queries,
add up to the full gradient of network and decoder; with softmax, a penalty of cubes is added. All
in float64.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.messages import refused
from tests.targets.test_triple_split import store, triples_of
from tests.theory.test_pairs import EXACT, gradients, largest_error
from vrgcn.graph.graph import Graph
from vrgcn.graph.triples import Triples
from vrgcn.inference.predict import exact_sweeps
from vrgcn.models.config import ModelConfig
from vrgcn.models.relational import build_relational
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.terms import LOSSES
from vrgcn.targets.triple_split import split_triples
from vrgcn.triples.batches import QueryBatches
from vrgcn.triples.queries import QuerySource

WIDTH = 4


def problem(layers: int, decoder: str) -> tuple[Graph, PairModel]:
    whole = store()
    whole = whole.with_features(whole.features.to_dense().double())
    graph = split_triples(whole, (0.7, 0.1, 0.2))
    config = ModelConfig(
        model="graphsage", hidden=5, layers=layers, dropout=0.0, layer_norm=False, bases=2
    )
    triples = triples_of(graph)
    network = build_relational(
        config, graph.kinds, graph.relations.values(), WIDTH, 0, triples.kinds
    )
    model = PairModel.around(network, decoder, triples, 0).double()
    for parameter in model.parameters():  # small rows hide mistakes
        torch.nn.init.normal_(parameter, std=0.4)
    return graph, model


def cubes(decoder: str, z: Tensor) -> Tensor:
    """The sum of cubes of a row; of a row of complex numbers, of their lengths."""
    if decoder != "complex":
        return z.abs().pow(3).sum()
    return torch.complex(*z.chunk(2)).abs().pow(3).sum()


def full_loss(
    model: PairModel, loss: str, triples: Triples, z: Tensor, penalty: float = 0.0
) -> Tensor:
    """The mean over all terms, written with loops."""
    terms = triples.both_ways(triples.train)
    true = {tuple(row) for row in terms.tolist()}
    losses = []
    for one, direction, target in terms.tolist():
        query = model.decoder.query(z[[one]], torch.tensor([direction]))
        start, stop = triples.spans[direction].tolist()
        free = [n for n in range(start, stop) if (one, direction, n) not in true]
        plus = model.decoder(query, z[[target]])
        minus = model.decoder(query, z[free])
        if loss == "softmax":
            losses.append(torch.cat([plus, minus]).logsumexp(0) - plus[0])
        elif loss == "logistic":
            losses.append(F.softplus(-plus[0]) + F.softplus(minus).mean())
        else:
            losses.append(F.softplus(minus - plus).mean())
        weight = model.decoder.weight
        assert isinstance(weight, Tensor)
        for row in (z[one], z[target], weight[direction]):
            losses[-1] = losses[-1] + penalty * cubes(model.arguments["decoder"], row)
    return torch.stack(losses).mean()


@pytest.mark.parametrize("decoder", ["distmult", "complex", "mlp"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("layers", [0, 2])
def test_gradients_of_an_epoch_add_up_to_the_full_gradient(
    layers: int, loss: Any, decoder: str
) -> None:
    graph, model = problem(layers, decoder)
    triples = triples_of(graph)
    penalty = 0.3 if loss == "softmax" else 0.0
    source = QuerySource(triples, loss, negatives=10**6, cube_penalty=penalty)
    batches = QueryBatches(
        model, graph, source=source, estimator="exact", nodes="all", batch_size=11,
        trained=torch.ones(graph.num_nodes, dtype=torch.bool), history_dtype="float64",
    )  # fmt: skip
    objective = SimpleNamespace(decoder=model.decoder)
    sums = [torch.zeros_like(weight) for weight in model.parameters()]
    counted = 0.0
    for batch in batches:
        losses = batch.losses(objective, batch.run(model))
        counted += batch.counted(losses).item()
        share = len(batch.asked) / source.queries
        parts = [part.to_dense() for part in gradients(batch.mean(losses), model)]
        sums = [total + share * part for total, part in zip(sums, parts, strict=True)]
        batch.commit()
    z = exact_sweeps(model, graph).outputs(None).detach().requires_grad_()
    wanted = full_loss(model, loss, triples, z, penalty)
    assert counted / source.terms == pytest.approx(wanted.item(), abs=EXACT)
    (of_outputs,) = torch.autograd.grad(wanted, z, retain_graph=True)
    of_decoder = dict(zip(
        (name for name, _ in model.decoder.named_parameters()),
        torch.autograd.grad(wanted, list(model.decoder.parameters())), strict=True,
    ))  # fmt: skip
    everything = batches.planner.plan(torch.arange(graph.num_nodes), torch.Generator())
    outputs = batches.make(everything).run(model)
    network = gradients((outputs * of_outputs).sum(), model)
    full = [
        of_decoder.get(name.removeprefix("decoder."), part.to_dense())
        if name.startswith("decoder.")
        else part.to_dense()
        for (name, _), part in zip(model.named_parameters(), network, strict=True)
    ]
    assert largest_error(sums, full) < EXACT


def test_estimators_with_histories_of_gradients_are_refused() -> None:
    graph, model = problem(2, "distmult")
    source = QuerySource(triples_of(graph), "softmax", negatives=5)
    with refused():
        QueryBatches(
            model, graph, source=source, estimator="two-way", nodes="all",
            trained=torch.ones(graph.num_nodes, dtype=torch.bool),
        )  # fmt: skip
