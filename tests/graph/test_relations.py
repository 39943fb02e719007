"""One-way relations: whatever makes a graph of another one, messages never go against the edges."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph
from vrgcn.data.store import load_graph, save_graph
from vrgcn.graph.propagation import of_relation
from vrgcn.graph.relations import relation_name, reverses_of
from vrgcn.graph.visible import Visible
from vrgcn.targets.pair_split import split_pairs
from vrgcn.targets.triple_split import split_triples

LAST, BEFORE, OF = ("fact", "last", "row"), ("fact", "before", "fact"), ("fact", "of", "entity")
GIVEN = [relation_name(triple) for triple in (LAST, BEFORE, OF)]
NAMES = [*GIVEN, "entity-rev_of-fact"]


def history(**changes: object) -> Graph:
    """Twelve facts in their order, each of one of three entities, and six rows that see the last
    fact before them: edges among facts and to rows lead from the past to the future only."""
    facts = torch.arange(12)
    given = {
        "features": {"fact": torch.eye(12)[:, :3], "row": 6, "entity": 3},
        "edges": {
            LAST: torch.stack([2 * facts[:6], facts[:6]]),
            BEFORE: (torch.stack([facts[:-1], facts[1:]]), torch.arange(1.0, 12.0)),
            OF: torch.stack([facts, facts % 3]),
        },
        "labels": {"row": torch.tensor([0, 1, 0, 1, 0, 1])},
        "train": [0, 1, 2],
        "val": [3],
        "test": [4, 5],
        "one_way": [LAST, BEFORE],
        **changes,
    }
    return Graph.from_kinds(**given)  # type: ignore[arg-type]


def check_one_way(graph: Graph, names: list[str] = NAMES) -> None:
    """Check that there are no reverses, and that no matrix has an edge against a one-way one."""
    assert list(graph.relations) == names
    assert [part.one_way for part in graph.given.values()] == [True, True, False]
    union = graph.adjacency.to_torch().to_dense()
    for name in GIVEN[:2]:
        A = graph.edges[name]
        assert A.num_entries
        assert bool((union[A.row_of_entry, A.indices] != 0).all())
        assert not bool(union[A.indices, A.row_of_entry].any())


def test_a_one_way_relation_has_no_reverse() -> None:
    graph = history()
    check_one_way(graph)
    assert reverses_of(graph.given.values()) == "2 one-way, each other with its reverse"
    assert list(history(one_way=()).relations) != NAMES
    assert len(history(one_way=()).relations) == 6


def test_graphs_made_of_a_graph_keep_its_directions() -> None:
    graph = history()
    check_one_way(graph.replace(edges=graph.edges))
    check_one_way(graph.among(torch.arange(graph.num_nodes - 1)))
    check_one_way(graph.in_training())
    entries = {GIVEN[0]: torch.arange(6) < 4}
    hidden = graph.replace(visible=Visible(entries, torch.ones(graph.num_nodes, dtype=torch.bool)))
    check_one_way(hidden.in_training())
    assert hidden.in_training().edges[GIVEN[0]].num_entries == 4


def test_a_saved_graph_keeps_its_directions(tmp_path: Path) -> None:
    save_graph(history(), tmp_path / "graph")
    for memory in ("ram", "disk"):
        found = load_graph(tmp_path / "graph", memory=memory)  # type: ignore[arg-type]
        check_one_way(found)
        A = history().edges[GIVEN[1]]
        assert torch.equal(found.edges[GIVEN[1]].transposed.indices, A.transposed.indices)


def test_pyg_data_keeps_its_directions() -> None:
    check_one_way(Graph.from_pyg(history().to_pyg()), [*GIVEN, NAMES[-1]])


@pytest.mark.parametrize("predict", [GIVEN[0], GIVEN[1], GIVEN[2]])
def test_a_split_of_pairs_keeps_the_directions(predict: str) -> None:
    check_one_way(split_pairs(history(), predict, (0.5, 0.2, 0.3)))


def test_a_split_of_triples_keeps_the_directions() -> None:
    check_one_way(split_triples(history(), (0.8, 0.1, 0.1)))


def test_gradients_go_back_along_one_way_edges() -> None:
    """The transposed matrix is not a relation: it is made for gradients only."""
    graph = history()
    P = of_relation("mean", graph, graph.relations[GIVEN[1]])
    assert torch.equal(P.transposed.to_dense(), P.to_dense().t())
    assert P.transposed.spans == P.spans


def test_directions_that_contradict_each_other_are_refused() -> None:
    with refused():
        history(undirected=[BEFORE])
    with refused():
        history(one_way=[("row", "last", "fact")])
