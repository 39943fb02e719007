"""Negatives that a minibatch shares: losses and gradients against the formula, pair by pair.

In minibatches of nodes a true pair (u, v) is seen twice in an epoch: with u, when u and the
negatives get their gradients, and with v, when v gets its own; the negatives are then those that u
was last visited with. The sum over an epoch is compared with the losses written out for each pair,
the same slots free. All in float64.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.messages import refused
from tests.theory.test_pairs import (
    EXACT,
    batches_of,
    embeddings,
    gradients,
    kinds_graph,
    kinds_model,
    largest_error,
    pair_graph,
    pair_model,
)
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.predicted_edges import KnownEdges
from vrgcn.pairs.batches import NodeBatches, PairBatches
from vrgcn.pairs.decoders import DECODERS
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.shared import SharedNegatives
from vrgcn.pairs.terms import TermSource

TEMPERATURE = 0.5
LOSSES = ("softmax", "logistic")
CASES = [
    (case, decoder)
    for case in ("directed", "undirected", "kinds")
    for decoder in DECODERS
    if (case != "undirected" or decoder != "complex") and (case == "kinds" or decoder != "lift")
]


def pair_loss(
    model: Any, source: TermSource, pair: Tensor, zs: Tensor, zp: Tensor, z: Tensor, shared: Tensor
) -> Tensor:
    """The loss of one true pair. zs, zp: (width,) of source and partner; z: of all nodes, where
    the negatives are read."""
    u = pair[0]
    allowed = [
        n for n in shared if n != u and not source.sampler.known.has(u[None], n[None]).item()
    ]
    decoder, weights = model.decoder.compared, source.weights
    s = decoder(zs, zp) / TEMPERATURE
    others = [decoder(zs, z[n]) / TEMPERATURE for n in allowed]
    if weights is not None:
        others = [other + weights[n] for other, n in zip(others, allowed, strict=True)]
    if source.loss == "softmax":
        return torch.stack([s, *others]).logsumexp(0) - s
    mean = torch.stack([F.softplus(o) for o in others]).mean() if others else s.new_zeros(())
    return (F.softplus(-s) + mean) / 2


def problem(case: str, decoder: str) -> tuple[Graph, PairModel]:
    if case == "kinds":
        graph = kinds_graph()
        return graph, kinds_model(graph, "lightgcn", decoder)
    graph = pair_graph(directed=case == "directed")
    return graph, pair_model(graph, "gcn", decoder)


def made_source(graph: Graph, loss: Any, negatives: int) -> TermSource:
    assert graph.pairs is not None
    return TermSource(graph.pairs, loss, negatives, "shared", TEMPERATURE)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("case", "decoder"), CASES)
def test_an_epoch_of_node_minibatches_has_the_gradient_of_every_role(
    case: str, decoder: str, loss: Any
) -> None:
    graph, model = problem(case, decoder)
    assert graph.pairs is not None
    source = made_source(graph, loss, negatives=6)
    if decoder == "lift" and loss == "softmax":
        source.weights = torch.randn(graph.num_nodes, dtype=torch.float64)
    objective = SimpleNamespace(decoder=model.decoder)
    batches = batches_of(NodeBatches, model, graph, source, batch_size=15)
    parts, found, counted = [], None, 0.0
    for batch in batches:
        parts.append(batch.nodes)
        losses = batch.losses(objective, batch.run(model))
        counted += batch.counted(losses).item()
        share = len(batch.nodes) / graph.num_nodes
        grads = [share * part for part in gradients(batch.mean(losses), model)]
        found = grads if found is None else [a + b for a, b in zip(found, grads, strict=True)]
        batch.commit()
    z = embeddings(model, graph)
    fixed = z.detach()
    targets = graph.pairs.targets
    first, second = [], []
    drawn = source.sampler.shared(6, batches._generator(0, 4))
    last = {node: list(drawn) for node in range(graph.num_nodes)}  # negatives of each source
    for nodes in parts:
        inside = {int(node) for node in nodes}
        shared = [n for n in nodes if int(n) in targets][:6]
        last |= dict.fromkeys(inside, shared)
        for pair in batches.terms.nodes:
            u, v = pair
            if int(u) in inside:
                first.append(pair_loss(model, source, pair, z[u], fixed[v], z, shared))
            if int(v) in inside:
                second.append(pair_loss(model, source, pair, fixed[u], z[v], fixed, last[int(u)]))
    assert len(first) == len(second) == source.count
    value = torch.stack(first).mean()
    assert counted / source.count == pytest.approx(value.item(), abs=EXACT)
    wanted = gradients(value, model)
    places = [name for name, _ in model.named_parameters()]
    # The decoder's own weights learn from the first alone.
    rest = gradients(torch.stack(second).mean(), model)
    wanted = [
        a if name.startswith("decoder") else a + b
        for name, a, b in zip(places, wanted, rest, strict=True)
    ]
    assert found is not None
    assert largest_error(found, wanted) < EXACT


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", ["undirected", "kinds"])
def test_minibatches_of_pairs_have_the_losses_of_the_formula(case: str, loss: Any) -> None:
    graph, model = problem(case, "mlp")
    source = made_source(graph, loss, negatives=8)
    objective = SimpleNamespace(decoder=model.decoder)
    batches = batches_of(PairBatches, model, graph, source, batch_size=20)
    batch = next(iter(batches))
    assert len(batch.shared.nodes) == 8
    losses = batch.losses(objective, batch.run(model))
    z = embeddings(model, graph)
    wanted = torch.stack(
        [
            pair_loss(model, source, pair, z[pair[0]], z[pair[1]], z, batch.shared.nodes)
            for pair in batch.terms.nodes
        ]
    )
    assert (losses - wanted).abs().max() < EXACT
    found, right = (gradients(value.mean(), model) for value in (losses, wanted))
    assert largest_error(found, right) < EXACT


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("drawn", ["none", "known"])
def test_a_source_without_a_negative_has_no_pressure(loss: Any, drawn: str) -> None:
    """The loss of a source is zero if it has known pairs only, or if its minibatch has no targets.
    The pressure is finite, because a table keeps it."""
    graph = kinds_graph()
    assert graph.pairs is not None
    source = made_source(graph, loss, negatives=4)
    u = int(graph.pairs.train[0, 0])
    known = source.sampler.known.partners(torch.tensor([u]))[1]
    negatives = known if drawn == "known" else known[:0]
    shared = source.sharing(negatives)
    decoder = DECODERS["dot"](2, True)
    z = torch.randn(1, 2, requires_grad=True)
    pressure = shared.pressure(decoder, torch.tensor([u]), z, torch.randn(len(negatives), 2))
    assert pressure.isfinite().all()
    losses = shared.losses(torch.tensor([100.0]), pressure)
    losses.sum().backward()
    assert losses.tolist() == [0.0]
    assert z.grad is not None
    assert z.grad.abs().max() == 0


def test_negatives_that_count_as_often_as_they_occur_teach_how_far_pairs_are_from_chance() -> None:
    """At s(v) = log p(v | u) / p(v) the gradient of the weighted softmax is zero; it is not at
    log p(v | u), which is the optimum without weights. Exact for many negatives: weights are
    multiplied by a million, so that the true pair itself is a small part of the sum."""
    torch.manual_seed(0)
    of_user, chance = (torch.rand(7, dtype=torch.float64).softmax(0) for _ in range(2))
    known = KnownEdges.of(
        torch.zeros(0, 2, dtype=torch.int64),
        Pairs("r", True, range(1), range(1, 8), *[torch.zeros(0, 2, dtype=torch.int64)] * 3),
    )
    weights = torch.cat([chance.new_zeros(1), (1e6 * chance).log()])

    def gradient(scores: Tensor, weights: Tensor) -> float:
        z = scores[:, None].clone().requires_grad_()
        shared = SharedNegatives(torch.arange(1, 8), known, "softmax", 1.0, weights)
        one = torch.ones(1, 1, dtype=torch.float64)
        pressure = shared.pressure(DECODERS["dot"](1, True), torch.zeros(1).long(), one, z)
        (shared.losses(z[:, 0], pressure.expand(7)) * of_user).sum().backward()
        assert z.grad is not None
        return z.grad.abs().max().item()

    assert gradient((of_user / chance).log(), weights) < 1e-5
    assert gradient(of_user.log(), weights) > 0.01
    assert gradient(of_user.log(), torch.full((8,), 1e6, dtype=torch.float64).log()) < 1e-5


def test_bpr_refuses_shared_negatives() -> None:
    with refused():
        made_source(kinds_graph(), "bpr", negatives=4)
