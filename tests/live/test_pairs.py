"""Models of pairs: recommendations after purchases are those of the changed graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, PairModel, predict, split_pairs
from vrgcn.graph.pairs import EDGES
from vrgcn.inference.saved import SavedModel
from vrgcn.live.live import Live
from vrgcn.models.node_table import node_tables
from vrgcn.models.relational import RelationalSAGE
from vrgcn.targets.best import best_partners
from vrgcn.targets.ranking import EmbeddedEdges


def recommended(saved: SavedModel, graph: Graph, source: int, top: int) -> list[tuple[int, float]]:
    """Partners as `vrgcn recommend` finds them: their numbers within their kind, and scores."""
    pairs = graph.pairs
    assert pairs is not None
    model: Any = saved.model
    embeddings = predict(saved, graph, kind="all")
    scorer = EmbeddedEdges(model.decoder, embeddings, pairs)
    first = torch.tensor([pairs.sources.start + source])
    [best] = best_partners(scorer, pairs, first, top)
    return [
        (int(target) - pairs.targets.start, float(score))
        for (_, target), score in zip(best.pairs, best.scores, strict=True)
    ]


def answers(live: Live, source: Any, top: int) -> list[tuple[Any, float]]:
    return [(row["id"], row["score"]) for row in live.recommend(source, top)]


def same(found: list[tuple[Any, float]], wanted: list[tuple[Any, float]]) -> None:
    assert [node for node, _ in found] == [node for node, _ in wanted]
    torch.testing.assert_close(
        torch.tensor([s for _, s in found]), torch.tensor([s for _, s in wanted])
    )


@pytest.fixture
def links() -> tuple[Graph, SavedModel]:
    torch.manual_seed(0)
    graph = split_pairs(
        Graph(torch.randint(0, 30, (2, 80)), torch.randn(30, 4).double(), undirected=True)
    )
    assert graph.pairs is not None
    model = PairModel(
        "gcn", "mlp", relation=EDGES, directed=False, in_features=4, hidden=6, classes=5
    )
    return graph, SavedModel(model.double(), "gcn")


def test_new_links_carry_messages_and_are_no_longer_recommended(
    links: tuple[Graph, SavedModel], tmp_path: Path
) -> None:
    graph, saved = links
    live = Live(saved, graph)
    same(answers(live, 3, 40), recommended(saved, graph, 3, 40))
    [(best, _), *_] = answers(live, 3, 40)
    live.add_nodes({"features": [1.0, 0, 0, 2]})
    live.add_edges([(3, best), (30, 4)])
    assert best not in [node for node, _ in answers(live, 3, 40)]
    assert 30 in [node for node, _ in answers(live, 3, 40)]
    for node in (3, 4, 30):
        same(answers(live, node, 40), recommended(saved, live.graph(), node, 40))
    live.save(tmp_path / "state")
    opened = Live.open(tmp_path / "state", saved)
    assert answers(opened, 3, 40) == answers(live, 3, 40)


def test_a_known_pair_without_messages_can_be_forgotten(links: tuple[Graph, SavedModel]) -> None:
    graph, saved = links
    assert graph.pairs is not None
    source, target = graph.pairs.test[0].tolist()
    live = Live(saved, graph)
    assert target not in [node for node, _ in answers(live, source, 40)]
    before = live._world.state.outputs.clone()
    live.remove_edges((source, target))
    assert target in [node for node, _ in answers(live, source, 40)]
    assert torch.equal(before, live._world.state.outputs)
    with refused():
        live.remove_edges((source, target))


def test_a_node_whose_partners_are_all_known_has_no_recommendation(
    links: tuple[Graph, SavedModel],
) -> None:
    graph, saved = links
    live = Live(saved, graph)
    live.add_edges([(3, other) for other, _ in answers(live, 3, 40)])
    assert live.recommend(3) == []


def test_a_purchase_changes_the_recommendations_of_a_user() -> None:
    torch.manual_seed(1)
    bought = torch.stack([torch.randint(0, 12, (40,)), torch.randint(0, 9, (40,))])
    triple = ("user", "bought", "item")
    whole = Graph.from_kinds({"user": torch.randn(12, 3).double(), "item": 9}, {triple: bought})
    graph = split_pairs(whole, "user-bought-item")
    model = PairModel(
        "relational-graphsage",
        "dot",
        relation="user-bought-item",
        directed=True,
        kinds={"user": 3, "item": 0},
        relations=[part.triple for part in graph.relations.values()],
        target=["user", "item"],
        hidden=6,
        classes=4,
        rows={"item": 9},
    )
    assert isinstance(model.encoder, RelationalSAGE)
    saved = SavedModel(model.double(), "mean", nodes=graph.names.unique())
    live = Live(saved, graph)
    live.add_nodes({"features": [1.0, -1, 2]}, kind="user")
    live.add_nodes({"id": 9}, kind="item")
    live.add_edges([(12, 9), (12, 2), (0, 9)], relation="bought")
    live.remove_nodes(4, kind="user")
    changed = live.graph()
    for user in (0, 5, 12):
        number = changed.names.ids_of("user").to_pylist().index(user)
        same(answers(live, user, 20), recommended(saved, changed, number, 20))
    with refused():
        live.predict(0, kind="user")


@pytest.mark.parametrize("decoder", ["dot", "lift"])
def test_lightgcn_averages_over_all_relations_at_once(decoder: str) -> None:
    torch.manual_seed(1)
    bought = torch.stack([torch.randint(0, 12, (40,)), torch.randint(0, 9, (40,))])
    sold = torch.stack([torch.randint(0, 9, (12,)), torch.randint(0, 3, (12,))])
    edges = {("user", "bought", "item"): bought, ("item", "sold_by", "shop"): sold}
    whole = Graph.from_kinds({"user": 12, "item": 9, "shop": 3}, edges)
    graph = split_pairs(whole, "user-bought-item")
    model = PairModel(
        "lightgcn",
        decoder,
        relation="user-bought-item",
        directed=True,
        in_features=0,
        nodes=graph.num_nodes,
        classes=4,
        layers=3,
    )
    for table in node_tables(model).values():
        table.set(torch.randn_like(table.rows))  # a prior is zero before training
    saved = SavedModel(model, model.propagation, nodes=graph.names.unique())
    live = Live(saved, graph)
    live.add_nodes({"id": 12}, kind="user")
    live.add_edges([(12, 3), (0, 4)], "bought")
    live.add_edges((3, 1), "sold_by")
    live.remove_nodes(2, kind="item")
    changed = live.graph()
    for user in (0, 5, 12):
        wanted = recommended(saved, changed, user, 20)
        items = changed.names.ids_of("item").to_pylist()
        same(answers(live, user, 20), [(items[place], score) for place, score in wanted])
    follows = {**edges, ("user", "follows", "user"): torch.tensor([[0], [1]])}
    other = Graph.from_kinds({"user": 12, "item": 9, "shop": 3}, follows)
    with refused():
        Live(saved, split_pairs(other, "user-bought-item"))
