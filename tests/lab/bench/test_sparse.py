"""Wide sparse features beside few dense ones."""

from __future__ import annotations

import torch

from lab.bench import sparse
from lab.bench.sparse import AFTER, COLUMNS, DENSE, ENTRIES, FIRST, REFERENCE, graphs
from vrgcn.graph.sparse import CSR, is_sparse


def test_both_graphs_are_the_same_but_for_their_features():
    dense, wide = graphs(500, 10)
    assert torch.equal(dense.adjacency.indices, wide.adjacency.indices)
    assert dense.features.shape == (500, DENSE)
    assert wide.features.shape == (500, COLUMNS)
    tags = CSR.from_torch(wide.features)
    assert is_sparse(wide.features)
    assert ENTRIES - 2 < float(tags.counts.double().mean()) <= ENTRIES
    assert (tags.indices.diff()[tags.row_of_entry.diff() == 0] > 0).all()


def test_the_section_reports_steps_and_evaluations_as_ratios_to_dense_columns(bench):
    section = sparse.run(bench)
    rows = section.results["rows"]
    assert list(rows) == [REFERENCE, FIRST, AFTER]
    assert rows[REFERENCE]["ratio"]["median"] == rows[REFERENCE]["evaluation_ratio"]["median"] == 1
    assert all(row["step_ms"]["median"] > 0 for row in rows.values())
    assert section.results["auto"] in (FIRST, AFTER)
