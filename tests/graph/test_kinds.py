"""Several kinds of nodes and several relations in one numbering."""

import pyarrow as pa
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph
from vrgcn.graph.kinds import Kinds

BOUGHT, FOLLOWS = ("user", "bought", "item"), ("user", "follows", "user")


def store(**changes: object) -> Graph:
    """Three users, two items, two shops without features."""
    given = {
        "features": {"user": torch.arange(6.0).view(3, 2), "item": torch.ones(2, 1), "shop": 2},
        "edges": {
            BOUGHT: torch.tensor([[0, 0, 2], [0, 1, 1]]),
            ("item", "sold_by", "shop"): (torch.tensor([[0, 1], [1, 1]]), torch.tensor([2.0, 3.0])),
            FOLLOWS: torch.tensor([[0, 1], [1, 2]]),
        },
        "labels": {"user": torch.tensor([0, 1, -1])},
        "train": [0],
        "val": torch.tensor([False, True, False]),
        **changes,
    }
    return Graph.from_kinds(**given)  # type: ignore[arg-type]


def dense(graph: Graph, name: str) -> torch.Tensor:
    return graph.relations[name].adjacency.to_torch().to_dense()


def test_kinds_are_ranges_of_one_numbering() -> None:
    kinds = store().kinds
    assert kinds.names == ("user", "item", "shop")
    assert [kinds.range(name) for name in kinds.names] == [range(3), range(3, 5), range(5, 7)]
    assert kinds.of(torch.arange(7)).tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert kinds.name_of(4) == "item"
    with refused():
        kinds.range("itme")


def test_relations_join_their_kinds_and_have_reverses() -> None:
    graph = store()
    assert list(graph.relations) == [
        *("user-bought-item", "item-rev_bought-user"),
        *("item-sold_by-shop", "shop-rev_sold_by-item"),
        *("user-follows-user", "user-rev_follows-user"),
    ]
    bought = dense(graph, "user-bought-item")
    assert bought.nonzero().tolist() == [[3, 0], [4, 0], [4, 2]]  # target, source
    for name, relation in graph.relations.items():
        if relation.reverse_of is not None:
            assert torch.equal(dense(graph, name), dense(graph, relation.reverse_of).t())
            given = graph.relations[relation.reverse_of].adjacency
            assert relation.adjacency.transposed is given
    assert dense(graph, "item-sold_by-shop")[6, 4] == 3
    assert graph.num_edges == 7  # reverses are not counted


def test_the_adjacency_is_the_union_of_all_relations() -> None:
    graph = store()
    total = sum(dense(graph, name) for name in graph.relations)
    assert torch.equal(graph.adjacency.to_torch().to_dense(), total)
    plain = store(edges={BOUGHT: [[0, 0], [1, 0]], FOLLOWS: [[0], [1]]}, undirected=[FOLLOWS])
    assert plain.adjacency.values is None
    assert plain.adjacency.to_torch().to_dense()[1, 0] == 1
    assert list(plain.relations) == [
        "user-bought-item",
        "item-rev_bought-user",
        "user-follows-user",
    ]
    assert plain.relations["user-follows-user"].num_edges == 2


def test_labels_and_splits_belong_to_one_kind() -> None:
    graph = store(labels={"item": torch.tensor([1, 0])}, train=[0], val=[1])
    assert graph.target == "item"
    assert graph.labels is not None
    assert graph.labels.tolist() == [-1, -1, -1, 1, 0, -1, -1]
    assert (graph.train.tolist(), graph.val.tolist()) == ([3], [4])
    assert graph.labelled.nonzero()[:, 0].tolist() == [3, 4]
    assert graph.seen.tolist() == [0, 1, 2, 3, 5, 6]
    with refused():
        store(labels={"user": [0, 0, 0], "item": [0, 0]})
    with refused():
        store(val=[2])


def test_features_have_columns_of_their_kind() -> None:
    graph = store(columns={"user": ["age", "income"]})
    assert graph.features.to_dense().tolist() == [
        *([0, 1, 0], [2, 3, 0], [4, 5, 0]),
        *([0, 0, 1], [0, 0, 1]),
        *([0, 0, 0], [0, 0, 0]),
    ]
    assert graph.names.features == ["user.age", "user.income", "item.0"]
    assert graph.kinds.columns("item") == range(2, 3)


def test_the_same_id_in_two_kinds_is_two_nodes() -> None:
    graph = store(ids={"user": [5, 6, 7], "item": ["5", "x"]})
    names = graph.names
    assert names.places([5], "--nodes", 7).tolist() == [0]
    assert names.places(["5"], "--nodes", 7, kind="item").tolist() == [3]
    assert names.places([1], "--nodes", 7, kind="shop").tolist() == [6]
    with refused():
        names.places([9], "--nodes", 7)
    assert names.node_ids(torch.tensor([4, 3]).numpy()).to_pylist() == ["x", "5"]
    mixed = names.node_ids(torch.tensor([0, 3, 6]).numpy())
    assert mixed.to_pylist() == ["user 5", "item 5", "shop 1"]
    assert names.node_ids(torch.tensor([1]).numpy()).type == pa.int64()


@pytest.mark.parametrize(
    "changes",
    [
        {"edges": {("user", "bought", "itme"): [[0], [0]]}},
        {"edges": {BOUGHT: [[0], [2]]}},
        {"edges": {BOUGHT: [[3], [0]]}},
        {"features": {"user": None}},
        {"ids": {"user": ["a"]}},
        {"undirected": [BOUGHT]},
        {"features": {"a\x1fb": 3}},
        {"features": {"user": 3, "item": 2, "shop": 2, "user-bought-item": 3}},
        {"features": {"user": 0}, "edges": {}, "labels": {}},
        {"edges": {BOUGHT: [[0], [0]], ("item", "rev_bought", "user"): [[0], [0]]}},
    ],
)
def test_mistakes_name_kind_and_relation(changes: dict[str, object]) -> None:
    with refused():
        store(**changes)


def test_inductive_training_sees_no_edge_of_a_hidden_node() -> None:
    graph = store()
    part = graph.among(graph.seen)
    assert dense(part, "user-bought-item").nonzero().tolist() == [[3, 0], [4, 0]]
    assert dense(part, "item-rev_bought-user").nonzero().tolist() == [[0, 3], [0, 4]]
    assert part.relations["user-follows-user"].num_edges == 0


def test_a_graph_of_one_table_has_one_kind_without_a_name_and_one_relation() -> None:
    graph = Graph([[0], [1]], torch.ones(2, 3), [0, 1])
    assert graph.kinds == Kinds({"": 2}, "", {"": 3})
    assert not graph.kinds.named
    assert list(graph.relations) == list(graph.edges) == ["edges"]
    assert graph.relations["edges"].adjacency is graph.adjacency
    assert graph.relations["edges"].reverse_of is None
    assert graph.target is None
    assert graph.with_features(torch.ones(2, 1)).kinds.widths == {"": 1}
    assert store().only(store().relations["user-bought-item"]).kinds == Kinds({"": 7}, "", {"": 3})


def test_hetero_data_comes_and_goes() -> None:
    transforms = pytest.importorskip("torch_geometric.transforms")
    graph = store()
    data = graph.to_pyg()
    assert data["user"].x.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert data["user"].train_mask.tolist() == [True, False, False]
    assert data["shop"].num_nodes == 2
    assert data["item", "sold_by", "shop"].edge_weight.tolist() == [2, 3]
    for back in (Graph.from_pyg(data), Graph.from_pyg(transforms.ToUndirected(merge=False)(data))):
        assert list(back.relations) == list(graph.relations)
        for name in graph.relations:
            assert torch.equal(dense(back, name), dense(graph, name))
        assert torch.equal(back.features.to_dense(), graph.features.to_dense())
        assert back.labels is not None
        assert back.labels.tolist() == [0, 1, -1, -1, -1, -1, -1]
        assert (back.train.tolist(), back.val.tolist()) == ([0], [1])
    data["item", "rev_bought", "user"].edge_index = torch.tensor([[0], [0]])
    with refused():
        Graph.from_pyg(data)
