"""The league's graphs are read as they lie in the folder of real data, which may not be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.league.real_graphs import data_folder, load
from vrgcn.graph.sparse import is_sparse

FOLDER = data_folder()
needs_data = pytest.mark.skipif(FOLDER is None, reason="the real graphs are not here (VRGCN_DATA)")


@needs_data
def test_tolokers_has_its_official_splits() -> None:
    assert FOLDER is not None
    first, second = load("tolokers", 0, FOLDER), load("tolokers", 1, FOLDER)
    assert (first.num_nodes, first.num_features, first.num_classes) == (11_758, 10, 2)
    assert [len(first.split(name)) for name in ("train", "val", "test")] == [5879, 2939, 2940]
    assert first.train.tolist() != second.train.tolist()


@needs_data
def test_lists_of_columns_are_sparse_features() -> None:
    assert FOLDER is not None
    graph = load("blogcatalog_attributed", 0, FOLDER)
    assert is_sparse(graph.features)
    assert graph.features.shape == (5_196, 8_189)


def test_a_graph_that_is_not_in_the_league_is_refused() -> None:
    with pytest.raises(ValueError, match="'reddit' is none of tolokers, "):
        load("reddit", 0, FOLDER or Path())
