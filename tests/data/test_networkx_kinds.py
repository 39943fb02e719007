"""NetworkX's multigraphs with a `kind` of each node."""

import pytest

networkx = pytest.importorskip("networkx")

from tests.messages import refused  # noqa: E402
from vrgcn import Graph  # noqa: E402


def store(cls: type) -> object:
    G = cls()
    for n in range(3):
        G.add_node(f"u{n}", kind="user", age=20 + n, churned=["no", "yes"][n % 2])
    for n in range(2):
        G.add_node(f"i{n}", kind="item", price=1.5 * n)
    G.add_edge("u0", "i1", "bought", weight=2.0)
    G.add_edge("u0", "i1", "viewed")
    G.add_edge("u1", "u2", relation="follows")
    return G


def test_a_multigraph_of_kinds_becomes_kinds_and_relations() -> None:
    G = store(networkx.MultiDiGraph)
    graph = Graph.from_networkx(G, label="user.churned", ratio=(0.4, 0.3, 0.3))
    assert dict(graph.kinds.sizes) == {"user": 3, "item": 2}
    given = [name for name, part in graph.relations.items() if part.reverse_of is None]
    assert sorted(given) == ["user-bought-item", "user-follows-user", "user-viewed-item"]
    bought = graph.relations["user-bought-item"].adjacency.to_torch().to_dense()
    assert bought.nonzero().tolist() == [[4, 0]]
    assert bought[4, 0] == 2
    assert graph.names.ids_of("item").to_pylist() == ["i0", "i1"]
    assert graph.target == "user"


def test_undirected_edges_lead_from_the_kind_that_comes_first() -> None:
    G = store(networkx.MultiGraph)
    G.add_edge("i0", "u2", "bought")
    graph = Graph.from_networkx(G, label="user.churned", ratio=(0.4, 0.3, 0.3))
    assert graph.relations["user-bought-item"].num_edges == 2


def test_a_node_without_a_kind_is_named() -> None:
    G = store(networkx.MultiDiGraph)
    G.add_node("odd")
    with refused():
        Graph.from_networkx(G, label="user.churned")
