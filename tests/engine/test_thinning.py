"""Rows of P with few enough entries."""

from __future__ import annotations

import pytest
import torch

from tests.theory.graphs import seeded
from tests.theory.problems import random_graph
from vrgcn.engine.thinning import history_rows
from vrgcn.graph.propagation import build_propagation

P = build_propagation("mean", random_graph())
EVERYONE = torch.arange(P.num_nodes)
WHOLE = P.rows(EVERYONE)


@pytest.mark.parametrize("most", [1, 3, 6])
def test_a_long_row_has_as_many_entries_as_it_may_and_a_short_one_all(most: int) -> None:
    rows = history_rows(P, EVERYONE, most, seeded(1))
    assert torch.equal(rows.counts, WHOLE.counts.clamp(max=most))
    short = WHOLE.counts <= most
    assert short.any()
    dense, whole = (r.to_torch(P.dtype).to_dense() for r in (rows, WHOLE))
    assert torch.allclose(dense[short], whole[short], atol=1e-15)


def test_each_entry_speaks_for_its_run_of_the_row() -> None:
    """Entry i of a thinned row lies in the i-th run and weighs as much as that is long."""
    rows = history_rows(P, EVERYONE, 3, seeded(2))
    for node in EVERYONE.tolist():
        count, columns = int(WHOLE.counts[node]), P.rows(EVERYONE[node : node + 1]).indices
        weights = P.rows(EVERYONE[node : node + 1]).weights(P.dtype)
        thinned = rows.rows(torch.tensor([node]))
        kept = min(count, 3)
        ends = [run * count // max(kept, 1) for run in range(kept + 1)]
        for run, (column, weight) in enumerate(
            zip(thinned.indices, thinned.weights(P.dtype), strict=True)
        ):
            place = int((columns == column).nonzero()[0])
            assert ends[run] <= place < ends[run + 1]
            assert weight == pytest.approx(float(weights[place]) * (ends[run + 1] - ends[run]))


def test_without_a_cap_rows_are_whole_and_nothing_is_drawn() -> None:
    generator = seeded(3)
    before = generator.get_state()
    rows = history_rows(P, EVERYONE, None, generator)
    assert torch.equal(rows.to_torch(P.dtype).to_dense(), WHOLE.to_torch(P.dtype).to_dense())
    assert torch.equal(generator.get_state(), before)
