"""Minibatches that differ from others in the estimator alone."""

from __future__ import annotations

import pytest

from tests.theory.problems import random_graph
from vrgcn import GraphSAGE
from vrgcn.engine.minibatches import MiniBatches


@pytest.mark.parametrize("fanout", [0, (0,), (0, 0)])
def test_no_neighbour_for_histories_alone_leaves_other_samplers_their_usual_number(fanout) -> None:
    graph = random_graph()
    model = GraphSAGE(graph.num_features, 4, 3).double()
    batches = MiniBatches(model, graph, estimator="two-way", fanout=fanout, nodes="all")
    nodes = batches.nodes[:4]
    assert batches.sibling("two-way").batch(nodes).plan.sampled_edges == 0
    assert batches.sibling("cvd").batch(nodes).plan.sampled_edges > 0
    two = MiniBatches(model, graph, estimator="two-way", fanout=2, nodes="all")
    assert two.sibling("cvd").fanout == 2
