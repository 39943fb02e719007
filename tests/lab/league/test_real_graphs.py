"""The league's graphs are read as they lie in the folder of real data, which may not be there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from lab.league import imported
from lab.league.real_graphs import GRAPHS, _of_tables, data_folder, entry_of, load
from tests.messages import refused
from vrgcn.graph.graph import Graph
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


@needs_data
def test_the_splits_of_cora_are_all_of_the_public_sizes() -> None:
    assert FOLDER is not None
    for split in range(2):
        graph = load("cora", split, FOLDER)
        assert [len(graph.split(name)) for name in ("train", "val", "test")] == [140, 500, 1000]


@needs_data
def test_named_data_sets_are_scaled_as_training_scales_them() -> None:
    """Binary words that are standardised cost Citeseer fifteen points."""
    assert FOLDER is not None
    entry = entry_of("cora", load("cora", 0, FOLDER))
    sums = entry.graph.features.to_dense().sum(1)
    assert torch.allclose(sums[sums > 0], torch.ones(()))


def test_a_graph_or_a_split_that_is_not_in_the_league_is_refused() -> None:
    with refused():
        load("reddit", 0, FOLDER or Path())
    with refused():
        load("tolokers", 10, FOLDER or Path())


def write_tables(folder: Path) -> None:
    """Twenty nodes with lists of columns, and the same as a matrix."""
    folder.mkdir()
    lists = [[i % 5, *([5] if i % 3 else [6, 7])] for i in range(20)]  # of different lengths
    nodes = {"id": range(20), "label": [i % 2 for i in range(20)], "feat_idx": lists}
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    ends = {"src": range(20), "dst": [(i + 1) % 20 for i in range(20)]}
    pq.write_table(pa.table(ends), folder / "edges.parquet")
    np.savez(
        folder / "features_csr.npz",
        indptr=np.cumsum([0, *map(len, lists)]),
        indices=np.concatenate(lists),
        data=np.ones(sum(map(len, lists))),
        shape=(20, 8),
    )


def test_an_imported_graph_is_the_one_that_is_read_directly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GRAPHS, "made up", _of_tables("made up"))
    write_tables(tmp_path / "made up")
    graphs: list[Graph] = [read("made up", 1, tmp_path) for read in (load, imported.load_imported)]
    ours, theirs = graphs
    assert torch.equal(ours.edge_index(), theirs.edge_index())
    assert torch.equal(ours.features.to_dense(), theirs.features.to_dense())
    assert ours.labels is not None
    assert theirs.labels is not None
    assert torch.equal(ours.labels, theirs.labels)
    for part in ("train", "val", "test"):
        assert torch.equal(ours.split(part), theirs.split(part))
