"""The sampler `few`: all neighbours or none, and nothing is random."""

from __future__ import annotations

import pytest
import torch

from tests.theory.graphs import CASES, Case, seeded
from vrgcn.engine.samplers import usual_fanout
from vrgcn.engine.samplers.few import Few


@pytest.mark.parametrize("fanout", range(8))
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_rows_are_those_of_p_where_neighbours_are_few_and_empty_elsewhere(
    case: Case, fanout: int
) -> None:
    nodes = torch.tensor([7, 0, 4, 2, 5, 1, 6, 3])
    sample = Few([9, fanout]).sample(case.P, nodes, 1, seeded(0))
    few = torch.tensor(case.degrees)[nodes] <= fanout
    found = sample.edges.to_torch(torch.float64).to_dense()
    torch.testing.assert_close(found, case.others[nodes] * few[:, None])
    assert (sample.scale == 1).all()
    assert Few([9, fanout]).computes_neighbours(1) == (fanout > 0)


def test_it_is_usually_given_three() -> None:
    assert usual_fanout("few") == 3
    assert usual_fanout("uniform") == 1
