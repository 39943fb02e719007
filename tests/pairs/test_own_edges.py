"""A training pair's own edge carries no message while the pair is scored, if the rule holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.messages import refused
from tests.theory.test_pairs import (
    batches_of,
    kinds_graph,
    kinds_model,
    pair_graph,
    pair_model,
    rows_model,
)
from vrgcn import TrainConfig, fit
from vrgcn.engine.batch import Position
from vrgcn.graph.graph import Graph
from vrgcn.pairs.batches import NodeBatches, PairBatches
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.terms import TermSource
from vrgcn.targets.links import Links
from vrgcn.targets.scored import ScoredLinks

CASES = ["directed", "undirected", "relational-gcn", "lightgcn"]


def problem(case: str) -> tuple[Graph, PairModel]:
    if case in ("directed", "undirected"):
        graph = pair_graph(directed=case == "directed")
        return graph, pair_model(graph, "gcn", "dot")
    graph = kinds_graph()
    return graph, kinds_model(graph, case, "dot")


def message_keys(batches: Any) -> set[tuple[int, int]]:
    """(source, target) of every edge between the ends of pairs that carries a message."""
    pairs = batches.source.pairs
    wanted = (pairs.relation, None)
    reverse = [n for n in batches.setup.P if n and n.split("-")[1] == "rev_bought"]
    found = set()
    for over, P in batches.setup.P.items():
        A = P.adjacency
        ends = set(zip(A.indices.tolist(), A.row_of_entry.tolist(), strict=True))
        if over in wanted:
            found |= ends
        elif over in reverse:
            found |= {(b, a) for a, b in ends}
    return found


def both_ways(pairs: Tensor) -> set[tuple[int, int]]:
    one = set(map(tuple, pairs.tolist()))
    return one | {(b, a) for a, b in one}


def made(case: str, kind: Any, own_edges: str, **settings: Any) -> tuple[Any, PairModel]:
    graph, model = problem(case)
    assert graph.pairs is not None
    share = 0.3 if own_edges == "redraw" else 1.0
    source = TermSource(graph.pairs, "softmax", 2, share=share)
    return batches_of(kind, model, graph, source, own_edges=own_edges, **settings), model


def scored(nodes: Tensor) -> set[tuple[int, int]]:
    return both_ways(nodes[:, :2])


@pytest.mark.parametrize("kind", [NodeBatches, PairBatches])
@pytest.mark.parametrize("case", CASES)
def test_pairs_of_an_epoch_carry_no_messages_if_they_are_redrawn(case: str, kind: Any) -> None:
    batches, model = made(case, kind, "redraw")
    every = scored(batches.source.pairs.train)
    before = message_keys(batches)
    assert every & before
    epochs = []
    for _ in range(3):
        for batch in batches:
            keys, now = message_keys(batches), scored(batches.terms.nodes)
            assert not keys & now  # the rule
            assert keys == before - now  # and every other pair carries its message
            batch.run(model)
            batch.commit()
        assert len(batches.terms) == batches.source.count == round(0.3 * len(batches.source.train))
        epochs.append(frozenset(now))
    assert len(set(epochs)) == 3  # another share in each epoch


@pytest.mark.parametrize("case", CASES)
def test_pairs_of_a_minibatch_carry_no_messages_if_they_are_excluded(case: str) -> None:
    batches, model = made(case, PairBatches, "exclude", batch_size=9)
    before = message_keys(batches)
    for batch in batches:
        keys, now = message_keys(batches), scored(batch.terms.nodes)
        assert not keys & now
        assert keys == before - now
        batch.run(model)
        batch.commit()


def test_kept_edges_carry_messages() -> None:
    batches, _ = made("undirected", PairBatches, "keep")
    before = message_keys(batches)
    for _ in batches:
        assert message_keys(batches) == before


@pytest.mark.parametrize("kind", [NodeBatches, PairBatches])
def test_an_epoch_that_is_resumed_has_the_same_pairs_and_messages(kind: Any) -> None:
    first, _ = made("lightgcn", kind, "redraw")
    for _ in range(2):
        for _ in first:
            pass
    again, model = made("lightgcn", kind, "redraw")
    again.position = Position(2, 1, 0)
    for batch in again.rest_of_epoch():
        batch.run(model)
    assert torch.equal(first.terms.nodes, again.terms.nodes)
    assert message_keys(first) == message_keys(again)


def test_node_minibatches_cannot_exclude_their_pairs() -> None:
    with refused():
        made("directed", NodeBatches, "exclude")


def test_features_are_averaged_over_the_edges_that_carry_messages() -> None:
    batches, _ = made("undirected", PairBatches, "redraw", preprocess=True)
    for batch in batches:
        nodes = batch.plan.levels[0].nodes
        inputs = batches.setup.inputs(nodes)
        wanted = batches.setup.P[None].product(batches.graph.features, nodes)
        torch.testing.assert_close(inputs.averaged[None], wanted)


def test_a_resumed_run_with_shared_negatives_and_redrawn_pairs_ends_in_the_same_bits(
    tmp_path: Path,
) -> None:
    graph, _ = problem("lightgcn")
    settings: dict[str, Any] = {
        "estimator": "two-way",
        "pair_batches": "nodes",
        "negative_sampling": "shared",
        "negatives": 9,
        "loss": "softmax",
        "own_edges": "redraw",
        "batch_size": 16,
        "diagnostics": 0,
    }
    whole, parted = (kinds_model(graph, "lightgcn", "cosine").float() for _ in range(2))
    graph = graph.with_features(graph.features.float())
    fit(whole, graph, TrainConfig(epochs=4, **settings))
    first = TrainConfig(epochs=2, checkpoint_every="1", **settings)
    fit(parted, graph, first, checkpoints=tmp_path / "run")
    fit(parted, graph, TrainConfig(epochs=4, **settings), resume=tmp_path / "run")
    for one, other in zip(whole.parameters(), parted.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("case", "way", "wanted"),
    [
        ("rows", "nodes", "redraw"),
        ("rows", "pairs", "exclude"),
        ("undirected", "nodes", "keep"),
        ("lightgcn", "nodes", "keep"),
    ],
)
def test_auto_leaves_own_edges_out_where_nodes_of_one_kind_have_learned_rows(
    case: str, way: Any, wanted: str
) -> None:
    if case == "rows":
        graph = pair_graph()
        model = rows_model(graph, "lightgcn", "dot")
    else:
        graph, model = problem(case)
    assert graph.pairs is not None
    target = Links(ScoredLinks(graph.pairs), graph, TrainConfig(pair_batches=way, loss="softmax"))
    batches: Any = target.minibatches(model, graph, estimator="exact", nodes="all")
    assert batches.own_edges == wanted
    assert target.source.scored < len(target.source.train) or wanted != "redraw"
    no = "no message" in target.rules(model, graph)[0]
    assert no == (wanted != "keep")
