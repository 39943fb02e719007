"""`Graph.replace`: what a new part makes wrong is dropped, and everything else stays."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.relations import kept_entries
from vrgcn.graph.scaling import Scaling
from vrgcn.graph.triples import Triples
from vrgcn.graph.visible import Visible

BOUGHT, SAW = "user-bought-item", "user-saw-item"
NONE = torch.empty(0, 2, dtype=torch.int64)
PAIRS = Pairs("edges", True, range(4), range(4), NONE, NONE, NONE)
TRIPLES = Triples(("edges",), ("",), torch.tensor([[0, 4]]), 4, *[torch.empty(0, 3).long()] * 3)
VISIBLE = Visible({}, torch.ones(4, dtype=torch.bool))


class Tables:
    """Derived tables that only have an identity."""


def graph() -> Graph:
    """A graph in which every part is there."""
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    made = Graph(
        edges,
        torch.eye(4)[:, :2],
        [0, 1, 0, 1],
        train=[0, 1],
        val=[2],
        test=[3],
        names=Names(classes=["no", "yes"], features=["age", "size"]),
        edge_columns={"rating": [1.0, 2.0, 3.0]},
        node_columns={"since": [1.0, 2.0, 3.0, 4.0]},
    )
    sums = torch.ones(4), torch.ones(4)
    parts: dict[str, Any] = {"scaling": Scaling("row"), "derived": Tables(), "sums": sums}
    return made.replace(**parts, visible=VISIBLE, pairs=PAIRS)


def shop() -> Graph:
    bought, saw = torch.tensor([[0, 1, 1], [0, 0, 2]]), torch.tensor([[0, 0], [1, 2]])
    return Graph.from_kinds(
        {"user": torch.eye(2), "item": torch.eye(3)},
        {("user", "bought", "item"): bought, ("user", "saw", "item"): saw},
        edge_columns={
            ("user", "bought", "item"): {"rating": [1.0, 2.0, 3.0]},
            ("user", "saw", "item"): {"rating": [1.0, 2.0]},
        },
    )


def dropped(one: Graph, two: Graph) -> set[str]:
    """The parts of the first graph that the second does not share."""
    return {name for name, part in vars(one).items() if vars(two).get(name) is not part}


def test_an_attribute_cannot_be_set_or_deleted() -> None:
    made = graph()
    with refused(AttributeError):
        made.train = torch.tensor([3])
    with refused(AttributeError):
        del made.train
    assert made.train.tolist() == [0, 1]


def test_a_part_that_does_not_exist_is_refused() -> None:
    with refused(TypeError):
        graph().replace(lables=torch.zeros(4))


def test_nothing_replaced_shares_everything() -> None:
    made = graph()
    assert dropped(made, made.replace()) == set()


def test_new_features_drop_scaling_and_derived_tables() -> None:
    made = graph()
    other = made.replace(features=torch.ones(4, 2))
    assert dropped(made, other) == {"features", "scaling", "derived"}
    assert other.scaling is other.derived is None


def test_more_or_fewer_features_drop_their_names() -> None:
    other = graph().replace(features=torch.ones(4, 3))
    assert other.names == Names(classes=["no", "yes"])
    named = graph().replace(features=torch.ones(4, 1), names=Names(features=["age"]))
    assert named.names.features == ["age"]


@pytest.mark.parametrize(
    ("made", "features"),
    [
        (graph, torch.ones(3, 2)),
        (shop, torch.ones(5, 2)),
    ],
)
def test_features_of_other_nodes_or_kinds_are_refused(made: Any, features: torch.Tensor) -> None:
    with refused():
        made().replace(features=features)


def test_new_edges_drop_their_columns_and_what_was_computed_or_hidden_by_them() -> None:
    made = graph()
    A = kept_entries(made.adjacency, torch.tensor([True, False, True]))
    other = made.replace(edges={"edges": A})
    assert dropped(made, other) == {"adjacency", "relations", "kept", "visible", "derived", "sums"}
    assert other.edge_index().tolist() == [[0, 2], [1, 3]]
    assert other.kept == {"nodes": made.kept["nodes"]}
    assert other.visible is other.derived is other.sums is None


def test_new_edges_of_one_relation_leave_the_others_and_turn_its_reverse() -> None:
    made = shop()
    union = made.adjacency  # made of all relations, and kept
    A = kept_entries(made.edges[BOUGHT], torch.tensor([True, False, False]))
    other = made.replace(edges={BOUGHT: A})
    assert other.relations["item-rev_bought-user"].num_edges == 1
    assert other.edges[SAW] is made.edges[SAW]
    assert other.kept == {SAW: made.kept[SAW]}
    assert other.adjacency.num_entries < union.num_entries
    assert other.num_edges == 3


def test_edges_of_another_relation_or_size_are_refused() -> None:
    with refused():
        shop().replace(edges={"edges": shop().adjacency})
    with refused():
        graph().replace(edges={"edges": shop().adjacency})


def test_new_labels_are_checked_and_bring_classes_and_task() -> None:
    made = graph()
    same = made.replace(labels=[1, 1, 0, 1])
    assert dropped(made, same) == {"labels"}
    numbers = made.replace(labels=[1.5, 2, 3, 4], task="regression")
    assert (numbers.num_classes, numbers.task, numbers.names.classes) == (0, "regression", None)
    none = made.replace(labels=None)
    assert (none.labels, none.num_classes, none.names.classes) == (None, 0, None)
    assert made.replace(labels=None, num_classes=2).names.classes == ["no", "yes"]
    with refused():
        made.replace(labels=[0, 1])


def test_pairs_and_triples_exclude_each_other() -> None:
    made = graph()
    other = made.replace(triples=TRIPLES)
    assert dropped(made, other) == {"pairs", "triples"}
    assert other.triples is TRIPLES
    assert other.pairs is None
    assert other.replace(pairs=PAIRS).triples is None


def test_other_splits_drop_nothing() -> None:
    made = graph()
    assert dropped(made, made.with_splits({"train": made.train})) == {"val", "test"}
    assert made.with_splits({}).visible is VISIBLE


def test_new_splits_are_checked_as_those_of_a_new_graph() -> None:
    made = graph()
    mask = torch.tensor([False, True, False, False])
    assert made.replace(train=mask, test=[3, 0]).test.tolist() == [0, 3]
    assert made.replace(train=mask).train.tolist() == [1]
    with refused():
        made.replace(val=[1])
    with refused():
        made.replace(labels=[0, -1, 0, 1])


def test_names_that_do_not_fit_are_refused() -> None:
    with refused():
        graph().replace(names=Names(classes=["no"]))


def test_edges_among_nodes_keep_scaling_and_what_is_predicted() -> None:
    made = graph()
    inside = made.among(torch.tensor([0, 1]))
    assert inside.scaling is made.scaling
    assert inside.pairs is made.pairs
    assert inside.edge_index().tolist() == [[0], [1]]
