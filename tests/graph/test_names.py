"""The user's own names of nodes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.messages import refused
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names

NAMES = {
    "text": Names(pa.array(["p-3", "p-1", "p-2"])),
    "numbers": Names(pa.array([30, 10, 20])),
    "none": Names(),
}


@pytest.mark.parametrize(
    ("kind", "ids", "places"),
    [
        ("text", ["p-2", "p-3"], [2, 0]),
        ("numbers", [10, "20"], [1, 2]),
        ("none", ["2", 0], [2, 0]),
    ],
)
def test_places_are_found_by_id_as_text_or_number_and_give_the_ids_back(
    kind: str, ids: list[object], places: list[int]
) -> None:
    names = NAMES[kind]
    found = names.places(ids, "--nodes", 3)
    assert found.tolist() == places
    assert [str(i) for i in names.node_ids(found).to_pylist()] == [str(i) for i in ids]


@pytest.mark.parametrize(("kind", "first"), [("text", "p-9"), ("numbers", "9"), ("none", "3")])
def test_unknown_ids_are_counted_and_the_first_is_named(kind: str, first: str) -> None:
    known = NAMES[kind].node_ids(np.array([1])).to_pylist()
    with refused():
        NAMES[kind].places([*known, first, "x"], "ids.csv", 3)


@pytest.mark.parametrize(
    "names",
    [
        Names(features=["a", "b", "a"]),
        Names(classes=["u", "u"]),
        Names(features=["a"]),
        Names(classes=["u", "\ud800"]),
        Names(classes=["u", 3]),  # type: ignore[list-item]
    ],
)
def test_a_graph_has_no_two_classes_or_features_of_one_name(names):
    with refused():
        Graph([[0], [1]], torch.ones(3, 3), [0, 1, 0], names=names)
