"""Splits of pairs by a column, by time and by leaving out the last pair."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.messages import refused
from vrgcn import Graph, split_pairs
from vrgcn.graph.pairs import Pairs

RATED = ("user", "rated", "item")
NAME = "user-rated-item"
FOLLOWS = ("user", "follows", "user")


def as_set(pairs: Tensor) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in pairs.tolist()}


def pairs_of(graph: Graph) -> Pairs:
    assert graph.pairs is not None
    return graph.pairs


def months(*numbers: int) -> np.ndarray:
    return np.array([f"2026-{n:02d}-10" if n else "NaT" for n in numbers], "datetime64[D]")


def store(**columns: object) -> Graph:
    """Four users (0 to 3) and items (4 to 9) with a rating each; follows have times too."""
    sources = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]
    targets = [0, 1, 2, 3, 0, 4, 5, 1, 2, 0]
    return Graph.from_kinds(
        {"user": 4, "item": torch.arange(12.0).view(6, 2)},
        {
            RATED: torch.tensor([sources, targets]),
            FOLLOWS: torch.tensor([[0, 1, 2], [1, 2, 3]]),
        },
        edge_columns={
            RATED: columns or {"time": months(1, 5, 6, 9, 2, 7, 8, 3, 12, 0)},
            FOLLOWS: {"since": months(1, 6, 7)},
        },
    )


def test_a_column_says_which_pairs_train() -> None:
    words = ["train", "train", "val", "test", "train", "test", "", "train", "train", "train"]
    pairs = pairs_of(split_pairs(store(part=words), NAME, split_column="part"))
    assert as_set(pairs.val) == {(0, 6)}
    assert as_set(pairs.test) == {(0, 7), (1, 8)}
    assert len(pairs.train) == 6
    assert pairs.aside is not None
    assert as_set(pairs.aside) == {(1, 9)}


def test_a_pair_that_is_in_no_split_carries_no_message_and_is_no_negative() -> None:
    words = ["train"] * 6 + [""] + ["test"] * 3
    graph = split_pairs(store(part=words), NAME, split_column="part")
    A = graph.relations[NAME].adjacency
    assert (1, 9) not in as_set(torch.stack([A.indices, A.row_of_entry], 1))
    assert bool(pairs_of(graph).known.has(torch.tensor([1]), torch.tensor([9])))


def test_without_validation_pairs_a_share_of_the_training_pairs_is_drawn_and_told() -> None:
    words = ["train"] * 8 + ["test"] * 2
    graph = split_pairs(store(part=words), NAME, (0.5, 0.25, 0.25), split_column="part")
    pairs = pairs_of(graph)
    assert (len(pairs.train), len(pairs.val), len(pairs.test)) == (6, 2, 2)
    assert "2 training pairs (25%) drawn" in " ".join(pairs.said)
    assert len(graph.relations[NAME].adjacency.indices) == 6
    none = pairs_of(split_pairs(store(part=words), NAME, (1, 0, 0), split_column="part"))
    assert not len(none.val)


def test_time_splits_pairs_at_the_ends_of_named_months() -> None:
    graph = split_pairs(store(), NAME, train_until="2026-06", val_until="2026-08")
    pairs = pairs_of(graph)
    assert as_set(pairs.train) == {(0, 4), (0, 5), (0, 6), (1, 4), (2, 5)}
    assert as_set(pairs.val) == {(1, 8), (1, 9)}
    assert as_set(pairs.test) == {(0, 7), (2, 6)}
    assert as_set(pairs.aside) == {(3, 4)}  # without a time
    assert "1 pair without a time" in pairs.said[0]


def test_without_an_end_of_validation_all_that_is_later_is_for_the_test() -> None:
    pairs = pairs_of(split_pairs(store(), NAME, (0.6, 0.2, 0.2), train_until="2026-06"))
    assert as_set(pairs.test) == {(0, 7), (1, 8), (1, 9), (2, 6)}
    assert (len(pairs.train), len(pairs.val)) == (4, 1)


def test_later_edges_of_other_relations_carry_no_messages() -> None:
    whole = store()
    graph = split_pairs(whole, NAME, train_until="2026-06")
    for name in ("user-follows-user", "user-rev_follows-user"):
        assert whole.relations[name].num_edges == 3
        assert graph.relations[name].num_edges == 2
    A = graph.relations["user-follows-user"].adjacency
    assert as_set(torch.stack([A.indices, A.row_of_entry], 1)) == {(0, 1), (1, 2)}
    assert "no edge later than 2026-06 carries a message" in " ".join(pairs_of(graph).rules)


def test_edges_of_nodes_that_come_later_carry_no_messages() -> None:
    whole = store()
    joined = np.array(["2026-01", "2026-01", "2026-12", "NaT"], "datetime64[M]")
    graph = Graph.from_kinds(
        {"user": 4, "item": 6},
        {RATED: torch.tensor([[0, 1], [0, 1]]), FOLLOWS: torch.tensor([[0, 1, 2], [1, 2, 3]])},
        edge_columns={RATED: {"time": months(1, 9)}},
        node_columns={"user": {"joined": joined}},
    )
    kept = split_pairs(graph, NAME, train_until="2026-06").relations["user-follows-user"]
    assert as_set(torch.stack([kept.adjacency.indices, kept.adjacency.row_of_entry], 1)) == {(0, 1)}
    assert whole.relations["user-follows-user"].num_edges == 3


def test_the_scaling_learns_from_nodes_that_an_edge_until_then_names() -> None:
    graph = split_pairs(store(), NAME, train_until="2026-06", val_until="2026-08")
    assert graph.train.tolist() == [0, 1, 2, 4, 5, 6]
    assert split_pairs(store(), NAME).train.tolist() == list(range(10))


def test_leaving_one_out_takes_the_last_pairs_where_there_are_times() -> None:
    pairs = pairs_of(split_pairs(store(), NAME, leave_one_out=True))
    assert as_set(pairs.test) == {(0, 7), (1, 9)}
    assert as_set(pairs.val) == {(0, 6), (1, 8)}
    assert "the last pair of each source" in pairs.said[0]


def test_both_directions_of_an_edge_are_in_the_split_of_the_earlier() -> None:
    edges = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 3, 0]])
    columns = {"time": months(9, 2, 3, 4, 9)}
    graph = split_pairs(
        Graph(edges, torch.eye(4), edge_columns=columns), train_until="2026-06", ratio=(1, 0, 0)
    )
    assert as_set(pairs_of(graph).train) == {(0, 1), (1, 0), (1, 2), (2, 3)}
    assert as_set(pairs_of(graph).test) == {(3, 0)}


@pytest.mark.parametrize(
    "way",
    [
        {"split_column": "part"},
        {"split_column": "time"},
        {"train_until": "2025"},
        {"train_until": "2026-06", "val_until": "2026-06"},
        {"val_until": "2026-06"},
        {"train_until": "2026", "leave_one_out": True},
        {"train_until": "2026", "time_column": "day"},
    ],
)
def test_ways_that_cannot_be_are_refused(way: dict[str, object]) -> None:
    with refused():
        split_pairs(store(), NAME, **way)


def test_a_column_that_never_says_train_is_refused() -> None:
    with refused():
        split_pairs(store(part=["test"] * 10), NAME, split_column="part")
