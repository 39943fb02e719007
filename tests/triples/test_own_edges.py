"""Triples that are scored carry no messages, where own edges are redrawn."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tests.messages import refused
from tests.targets.test_triple_split import as_set, knowledge, triples_of
from tests.triples.test_models import network
from vrgcn.graph.graph import Graph
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.own_edges import MessageEdges
from vrgcn.targets.relations import Relations
from vrgcn.targets.scored import ScoredRelations
from vrgcn.targets.triple_split import split_triples
from vrgcn.training.config import TrainConfig
from vrgcn.triples.batches import QueryBatches
from vrgcn.triples.queries import QuerySource


def made(share: float | None) -> tuple[Graph, PairModel, QueryBatches]:
    graph = split_triples(knowledge(), (0.8, 0.1, 0.1))
    model = PairModel.around(network(graph, layers=1), "distmult", triples_of(graph), 0)
    source = QuerySource(triples_of(graph), "softmax", 30)
    batches = QueryBatches(
        model, graph, source=source, held_share=share, estimator="exact", nodes="all",
        batch_size=9, trained=torch.ones(30, dtype=torch.bool),
    )  # fmt: skip
    return graph, model, batches


def messages(batches: QueryBatches) -> set[tuple[int, ...]]:
    """Source, direction and target of each entry of the matrices that messages use."""
    triples = batches.source.triples
    found: set[tuple[int, ...]] = set()
    for number, name in enumerate(triples.directions):
        rows = batches.setup.P[name].whole_rows(torch.arange(triples.num_nodes))
        middle = torch.full_like(rows.indices, number)
        entries = torch.stack([rows.indices, middle, rows.row_of_entry], dim=1)
        found |= as_set(entries[rows.weights(torch.float32) > 0])  # the diagonal may be zero
    return found


@pytest.mark.parametrize("share", [0.2, None])
def test_scored_triples_and_their_reverses_carry_no_messages_if_they_are_redrawn(
    share: float | None,
) -> None:
    graph, _, batches = made(share)
    triples = triples_of(graph)
    seen: list[set[tuple[int, ...]]] = []
    for _ in range(2):
        scored: set[tuple[int, ...]] = set()
        for batch in batches:
            asked = batch.asked  # type: ignore[attr-defined]
            parts = [asked.sources[asked.rows], asked.directions[asked.rows], asked.targets]
            scored |= as_set(torch.stack(parts, dim=1))
        turned = {(t, (d + 3) % 6, s) for s, d, t in scored}
        carried = messages(batches)
        if share is None:
            assert carried == as_set(triples.both_ways(triples.train))
            assert scored == carried
        else:
            assert carried
            assert not carried & (scored | turned)
        seen.append(scored)
    assert (seen[0] == seen[1]) == (share is None)


def test_the_loss_of_an_epoch_is_the_mean_over_the_terms_that_it_scores() -> None:
    _, model, batches = made(0.3)
    objective = SimpleNamespace(decoder=model.decoder)
    counted, losses = 0.0, []
    for batch in batches:
        found = batch.losses(objective, batch.run(model)).detach()
        counted += batch.counted(found).item()
        losses.append(found)
        batch.commit()
    assert counted / batches.counted == pytest.approx(torch.cat(losses).mean().item(), rel=1e-5)


def test_excluding_a_minibatchs_own_edges_is_refused() -> None:
    graph, _, _ = made(None)
    with refused():
        Relations(ScoredRelations(triples_of(graph)), graph, TrainConfig(own_edges="exclude"))


def test_a_triple_that_is_held_takes_its_own_edge_in_the_other_direction_with_it() -> None:
    """(0, r, 1) is held: neither (1, r, 0) nor its reverse is a message; the same two nodes in
    another relation stay linked."""
    follows, blocks = ("user", "follows", "user"), ("user", "blocks", "user")
    graph = split_triples(
        Graph.from_kinds(
            {"user": torch.rand(4, 2)},
            {follows: torch.tensor([[0, 1, 2], [1, 0, 3]]), blocks: torch.tensor([[1], [0]])},
        ),
        (1.0, 0.0, 0.0),
    )
    triples = triples_of(graph)
    model = PairModel.around(network(graph, layers=1), "distmult", triples, 0)
    source = QuerySource(triples, "softmax", 2)
    batches = QueryBatches(
        model, graph, source=source, held_share=None, estimator="exact", nodes="all",
        batch_size=4, trained=torch.ones(4, dtype=torch.bool),
    )  # fmt: skip
    follow, block = (
        triples.directions.index(f"user-{name}-user") for name in ("follows", "blocks")
    )
    turned = triples.directions.index("user-rev_follows-user")
    batches.use_edges(MessageEdges(batches.setup, triples).without(torch.tensor([[0, follow, 1]])))
    left = messages(batches)
    assert {(s, t) for s, d, t in left if d == follow} == {(2, 3)}
    assert {(s, t) for s, d, t in left if d == turned} == {(3, 2)}
    assert {(s, t) for s, d, t in left if d == block} == {(1, 0)}
