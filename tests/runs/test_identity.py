"""The identity of a run: the same for the same run, and different for any other."""

from __future__ import annotations

import json

import torch

from tests.training.test_state import graph, trainer
from vrgcn import Graph
from vrgcn.runs.identity import differences, fingerprint, identity
from vrgcn.targets.opening import find_target
from vrgcn.training.config import free_settings


def test_the_same_run_has_the_same_identity_and_it_survives_json() -> None:
    one, other = identity(trainer(estimator="cv")), identity(trainer(estimator="cv"))
    assert one == other
    assert differences(json.loads(json.dumps(one)), other) == []


def test_settings_that_are_free_are_no_part_of_it() -> None:
    changed = {"epochs": 9, "patience": 3, "threads": 1, "checkpoint_every": "1"}
    assert changed.keys() <= free_settings(None)
    assert identity(trainer(**changed)) == identity(trainer())


def test_every_part_of_a_graph_counts_and_layout_does_too() -> None:
    g = graph()
    prints = fingerprint(g)
    dense, sparse = g, g.with_features(g.features.to_sparse_csr())
    assert fingerprint(dense)["features"] != fingerprint(sparse)["features"]
    weighted = Graph(
        g.edge_index(),
        g.features,
        g.labels,
        edge_weight=torch.ones(g.num_edges),
        train=g.train,
        val=g.val,
        test=g.test,
    )
    differ = {k for k, v in fingerprint(weighted).items() if v != prints[k]}
    assert differ == {"adjacency"}
    # A graph in other memory, or with other strides, is the same graph.
    again = g.with_features(g.features.t().contiguous().t())
    assert fingerprint(again) == prints


def test_a_matrix_of_ones_own_counts() -> None:
    from vrgcn import GraphSAGE, TrainConfig
    from vrgcn.training.trainer import Trainer

    def made(scale: float) -> dict:
        matrix = scale * torch.eye(90)
        config = TrainConfig(estimator="exact")
        return identity(
            Trainer(
                GraphSAGE(5, 8, 3),
                graph(),
                config,
                find_target(graph(), config),
                propagation=matrix,
            )
        )

    assert made(1.0) == made(1.0)
    assert differences(made(1.0), made(2.0)) == ["propagation is not the same"]
