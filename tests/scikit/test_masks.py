"""Which rows are trained on and validated: by masks, by a graph's splits, or drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph
from vrgcn.scikit.masks import as_mask, row_weights, set_aside, split_of

X = np.ones((6, 2), np.float32)
KNOWN = np.array([True, True, True, True, False, False])


def mask(*rows: int) -> np.ndarray:
    return np.isin(np.arange(6), rows)


def test_without_masks_all_known_rows_are_trained_on() -> None:
    train, val = split_of(X, None, None, KNOWN)
    assert train.tolist() == KNOWN.tolist()
    assert val is None
    train[0] = False
    assert KNOWN[0]  # nobody's labels become unknown by it


def test_validation_rows_are_not_trained_on_and_unknown_ones_are_neither() -> None:
    train, val = split_of(X, None, mask(3, 4), KNOWN)
    assert np.flatnonzero(train).tolist() == [0, 1, 2]
    assert np.flatnonzero(val).tolist() == [3]
    train, _ = split_of(X, mask(1, 5), mask(3), KNOWN)
    assert np.flatnonzero(train).tolist() == [1]
    with refused():
        split_of(X, mask(1, 3), mask(3), KNOWN)


def test_splits_of_a_graph_stand_where_no_mask_is_given() -> None:
    graph = Graph([[0], [1]], X, [0, 1, 0, 1, 0, 1], train=[0, 2], val=[1])
    everything = np.ones(6, bool)
    train, val = split_of(graph, None, None, everything)
    assert (np.flatnonzero(train).tolist(), np.flatnonzero(val).tolist()) == ([0, 2], [1])
    train, val = split_of(graph, mask(4, 5), mask(3), everything)
    assert (np.flatnonzero(train).tolist(), np.flatnonzero(val).tolist()) == ([4, 5], [3])


def test_test_nodes_of_a_graph_are_not_trained_on_where_it_names_no_others() -> None:
    graph = Graph([[0], [1]], X, [0, 1, 0, 1, 0, 1], test=[0, 2], val=[1])
    train, val = split_of(graph, None, None, np.ones(6, bool))
    assert np.flatnonzero(train).tolist() == [3, 4, 5]
    assert val is not None
    assert np.flatnonzero(val).tolist() == [1]
    train, _ = split_of(graph, mask(0, 4), None, np.ones(6, bool))  # unless they are asked for
    assert np.flatnonzero(train).tolist() == [0, 4]


def test_a_share_is_set_aside_by_its_seed_and_not_trained_on() -> None:
    given = np.arange(50) < 40
    train, val = set_aside(given, 0.25, seed=3)
    assert val.sum() == 10
    assert not (train & val).any()
    assert (train | val).tolist() == given.tolist()
    assert (set_aside(given, 0.25, seed=3)[1] == val).all()
    assert (set_aside(given, 0.25, seed=4)[1] != val).any()
    assert not set_aside(given, 0.0, seed=3)[1].any()


def test_one_row_at_least_is_left_to_train_on() -> None:
    train, val = set_aside(mask(2, 3), 0.9, seed=0)
    assert (train.sum(), val.sum()) == (1, 1)
    with refused():
        set_aside(mask(2, 3), 1, seed=0)


def test_masks_are_of_true_and_false_for_each_row() -> None:
    assert as_mask(torch.tensor([1, 4]), 6).tolist() == mask(1, 4).tolist()
    for wrong in ([True, False], [0, 1, 0, 1, 0, 1]):
        with refused():
            as_mask(wrong, 6, "val_mask")


@pytest.mark.parametrize(
    "given",
    [[1.0, 2.0], [1, -1, 1], [0, 0, 0]],
)
def test_weights_that_make_no_sense_are_refused(given: list[float]) -> None:
    with refused():
        row_weights(given, 3)
    assert row_weights(None, 3).tolist() == [1, 1, 1]
