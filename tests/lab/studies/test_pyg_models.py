"""The study of PyG's models trained by PyG and by ours, on a small graph."""

from __future__ import annotations

import torch

from lab.league.real_graphs import Entry
from lab.studies.pyg_models import compare, seconds_to
from lab.studies.pyg_race import Budget
from vrgcn.graph.graph import Graph


def test_the_first_evaluation_that_is_good_enough_counts() -> None:
    curve = [(1.0, 0.2), (2.5, 0.7), (3.0, 0.6), (4.0, 0.9)]
    assert seconds_to(curve, 0.6) == 2.5
    assert seconds_to(curve, 0.9) == 4.0
    assert seconds_to(curve, 0.95) == float("inf")


def test_both_sides_train_the_same_model_to_a_score_that_both_reach() -> None:
    ring = torch.arange(60)
    ends = torch.stack([ring, ring.roll(2)])
    features = torch.nn.functional.one_hot(ring % 2, 4).float()
    graph = Graph(ends, features, ring % 2, train=ring[:30], val=ring[30:], undirected=True)
    budget = Budget(20.0, 4, 4)
    lines, ratio = compare("GraphSAGE", Entry("ring", graph), [0.01], budget, "two-way", 2)
    assert len(lines) == 3
    assert "4 evaluations, two-way" in lines[1]
    assert 0 < ratio < float("inf")
    difference = float(lines[-1].rpartition(" ")[2])
    assert difference < 1e-4
