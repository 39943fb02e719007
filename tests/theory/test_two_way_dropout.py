"""With dropout a table holds activations each with its own mask, so that P h̄ has the mean of exact
training and exactly its variance: S = Σ P_uv² Var h_v, and own² Var h_u for the own edge.

First by formula, over every mask; then by Monte Carlo through minibatches of the real code, with
raw tables: D follows the mean of a minibatch's masks, too, which all rows then share.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lab.paper.variances import table_of_variances
from tests.theory.graphs import (
    CASES,
    STANDARD_ERRORS,
    Case,
    TwoLinear,
    dropout_masks,
    normal,
    seeded,
    side_by_side,
    standard_errors_off,
)
from tests.theory.problems import RAW
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.engine.formulas import from_history
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.plan import Hop
from vrgcn.engine.samplers.few import Few

KEEP = 0.75


def exact_variance(case: Case, mean: Tensor) -> Tensor:
    """(nodes, width): the row "exact" of the table of variances."""
    found = []
    for u, n in enumerate(case.degrees):
        others = case.others[u].nonzero()[:, 0]
        own_first = torch.cat([torch.tensor([u]), others])
        rows = table_of_variances(
            float(case.matrix[u, u]), case.others[u, others], max(n, 1), mean[others],
            mean[others], mean[own_first].square() * (1 - KEEP) / KEEP,
        )  # fmt: skip
        found.append(rows["exact"].total)
    return torch.stack(found)


@pytest.mark.parametrize("fanout", [0, 3])
@pytest.mark.parametrize("name", ["directed-gcn", "directed-mean", "undirected-gcn"])
def test_the_formula_has_the_mean_and_variance_of_exact_training_over_every_mask(
    name: str, fanout: int
) -> None:
    """h has a mask of this step, h̄ one of an earlier step, and both are listed, node by node."""
    case = CASES[name]
    mean = normal(8, 1, seed=30)
    masks, probability = dropout_masks(8, KEEP)
    nodes = torch.arange(8)
    sample = Few([fanout]).sample(case.P, nodes, 0, seeded(0))
    hop = Hop(sample.own, sample.edges, sample.scale, case.P.rows(nodes))
    # The masks of h and h̄ are independent: first those of h̄ are listed, then those of h.
    parts = []
    for h, past in ((mean.expand(8, 256), mean * masks), (mean * masks, mean.expand(8, 256))):
        answer = from_history(
            hop, h.contiguous(), hop.pick(past.contiguous()), hop.history @ past.contiguous(),
            ESTIMATORS["two-way"],
        )  # fmt: skip
        expected = answer @ probability
        torch.testing.assert_close(expected, (case.matrix @ mean)[:, 0])
        parts.append((answer - expected[:, None]).square() @ probability)
    torch.testing.assert_close(parts[0] + parts[1], exact_variance(case, mean)[:, 0])
    if fanout == 0:  # the neighbours' part is all from the table, the own edge's all fresh
        own = case.matrix.diag().square() * mean[:, 0].square() * (1 - KEEP) / KEEP
        torch.testing.assert_close(parts[1], own)


@pytest.mark.parametrize("fanout", [0, 3])
@pytest.mark.parametrize("name", ["directed-gcn", "directed-mean"])
def test_minibatches_have_the_mean_and_variance_of_exact_training(name: str, fanout: int) -> None:
    # 10,000 copies: the standard error of a variance is at most 1.6% of it.
    case, model, copies = CASES[name], TwoLinear(dropout=1 - KEEP), 10_000
    nn.init.eye_(model.weight)
    torch.manual_seed(0)
    graph = side_by_side(case.graph, copies)
    batches = MiniBatches(
        model, graph, estimator=RAW, nodes=torch.arange(graph.num_nodes), fanout=fanout,
        trained=torch.ones(graph.num_nodes, dtype=torch.bool), batch_size=30_000,
        propagation=name.split("-")[1], history_dtype="float64",
    )  # fmt: skip
    outputs = torch.empty(graph.num_nodes, 3, dtype=torch.float64)
    with torch.no_grad():
        for _ in range(2):  # the first epoch fills the table
            for batch in batches:
                outputs[batch.nodes] = batch.run(model)
                batch.commit()
    draws = outputs.view(copies, 8, -1)
    mean = case.matrix @ case.graph.features
    assert standard_errors_off(draws, case.matrix @ mean) < STANDARD_ERRORS
    squares = (draws - case.matrix @ mean).square()
    assert standard_errors_off(squares, exact_variance(case, mean)) < STANDARD_ERRORS
