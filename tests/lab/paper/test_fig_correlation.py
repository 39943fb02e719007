"""fig-correlation: correlations over dropout masks."""

from __future__ import annotations

import copy

import pytest
import torch

from lab.paper import fig_correlation
from lab.paper.fig_correlation import Correlation, correlations, floor, neighbour_pairs
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import build_propagation
from vrgcn.models.models import GCN


@pytest.fixture(scope="module")
def outcome(run_quick):
    return run_quick(fig_correlation.EXPERIMENT)


def ring(nodes: int = 60) -> Graph:
    generator = torch.Generator().manual_seed(0)
    here = torch.arange(nodes)
    edges = torch.cat([torch.stack([here, (here + step) % nodes]) for step in (1, 2)], dim=1)
    return Graph(edges, torch.rand(nodes, 12, generator=generator), undirected=True)


def test_each_hidden_layer_has_its_correlations(outcome):
    (record,) = outcome.records
    assert len(record["correlations"]) == record["layers"] - 1
    for layer in record["correlations"]:
        assert abs(layer["neighbours"]) < layer["neighbours_absolute"] < 1
        assert abs(layer["features"]) < layer["features_absolute"] < 1
        assert 0 < layer["neighbours_varied"] <= 1
        assert 0.5 < layer["inflation"] < 5
    # The first hidden layer has masks of its own for each node: what there is, is chance.
    first = record["correlations"][0]
    assert first["neighbours_absolute"] == pytest.approx(floor(record["masks"]), rel=0.1)
    assert first["features_absolute"] > 1.2 * floor(record["masks"])  # the same mask, other weights
    assert fig_correlation.verdicts_of(record)[0].holds
    assert outcome.figures() == {"fig-correlation.png", "fig-correlation.svg"}
    assert f"<td>{first['neighbours_absolute']:.3f}</td>" in outcome.page


def test_nodes_that_share_dropped_features_are_found_correlated():
    torch.manual_seed(0)
    after = GCN(12, 16, 3, dropout=0.5, order="after", layer_norm=False)
    before = GCN(12, 16, 3, dropout=0.5, order="before", layer_norm=False)
    (alone,) = correlations(after, ring(), masks=200, pairs=300, seed=0)
    (shared,) = correlations(before, ring(), masks=200, pairs=300, seed=0)
    assert alone["neighbours_absolute"] == pytest.approx(floor(200), rel=0.1)
    assert alone["inflation"] == pytest.approx(1, abs=0.1)
    # Neighbours average 3 or 4 of 5 dropped features in common; a second dropout, of the hidden
    # layer itself, hides part of it.
    assert shared["neighbours"] > 0.1
    assert shared["inflation"] > 1.2


def test_without_dropout_nothing_varies():
    (layer,) = correlations(
        GCN(12, 16, 3, dropout=0.0, layer_norm=False), ring(), masks=3, pairs=50, seed=0
    )
    assert layer["neighbours"] is None
    assert layer["neighbours_varied"] == 0
    assert layer["inflation"] is None


def test_correlation_is_pearsons():
    generator = torch.Generator().manual_seed(0)
    series = torch.randn(2, 40, generator=generator, dtype=torch.float64)
    series[1] += 0.7 * series[0] + 1e4
    found = Correlation()
    for x, y in series.T:
        found.add(torch.stack([x, x.new_tensor(3.0)]), torch.stack([y, y]))
    expected = float(torch.corrcoef(series)[0, 1])
    assert float(found.result()[0]) == pytest.approx(expected, rel=1e-6)
    assert found.result()[1].isnan()  # one of the two is constant


def test_pairs_are_two_of_a_node_and_its_neighbours():
    # A path 0 - 1 - 2 - 3 and the lonely node 4.
    graph = Graph(torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.rand(5, 2), undirected=True)
    P = build_propagation("gcn", graph)
    v, w = neighbour_pairs(P, 2_000, torch.Generator().manual_seed(0))
    pairs = {tuple(sorted(pair)) for pair in zip(v.tolist(), w.tolist(), strict=True)}
    assert pairs == {(0, 1), (1, 2), (2, 3), (0, 2), (1, 3)}


def test_strong_correlation_is_reported(outcome):
    records = copy.deepcopy(outcome.records)
    records[0]["correlations"][0]["neighbours_absolute"] = 0.3
    records[0]["correlations"][2]["neighbours"] = -0.25
    first, every = fig_correlation.verdicts_of(records[0])
    assert first.holds is False
    assert every.holds is False
    assert "-0.250, in layer 3" in every.text


def test_a_layer_in_which_nothing_varies_leaves_the_claim_of_every_layer_open(outcome):
    records = copy.deepcopy(outcome.records)
    for layer in records[0]["correlations"][1:3]:
        layer["neighbours"] = None
    _, every = fig_correlation.verdicts_of(records[0])
    assert every.holds is None
    assert every.text.endswith("nothing varies in 2 layers.")
