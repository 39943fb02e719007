"""The optimiser that a config asks for."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.messages import refused
from vrgcn import GCN, TrainConfig
from vrgcn.training.optimizer import build_optimizer


@pytest.mark.parametrize(("name", "kind"), [("adam", torch.optim.Adam), ("sgd", torch.optim.SGD)])
def test_it_is_of_the_kind_and_rate_that_were_asked_for(name: str, kind: type) -> None:
    optimizer = build_optimizer(GCN(4, 8, 3), TrainConfig(optimizer=name, learning_rate=0.3))
    assert isinstance(optimizer, kind)
    assert {group["lr"] for group in optimizer.param_groups} == {0.3}


def test_the_first_matrix_alone_decays_unless_all_are_to() -> None:
    model = GCN(4, 8, 3, bias=True)
    groups = build_optimizer(model, TrainConfig(weight_decay=0.1)).param_groups
    decayed = [p for group in groups if group["weight_decay"] for p in group["params"]]
    assert [p.shape for p in decayed] == [(8, 4)]
    everything = [p for group in groups for p in group["params"]]
    assert sorted(map(id, everything)) == sorted(map(id, model.parameters()))
    [group] = build_optimizer(model, TrainConfig(weight_decay=0.1, decay="all")).param_groups
    assert len(group["params"]) == len(list(model.parameters()))


def test_a_vector_before_the_first_matrix_does_not_decay() -> None:
    model = nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 2))
    decayed, free = build_optimizer(model, TrainConfig(weight_decay=0.1)).param_groups
    assert [p.shape for p in decayed["params"]] == [(2, 3)]
    assert (decayed["weight_decay"], free["weight_decay"], len(free["params"])) == (0.1, 0.0, 3)


def test_weights_that_are_held_fixed_are_left_out() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    model[0].requires_grad_(False)
    groups = build_optimizer(model, TrainConfig(weight_decay=0.1)).param_groups
    assert [p.shape for p in groups[0]["params"]] == [(2, 2)]
    model.requires_grad_(False)
    with refused():
        build_optimizer(model, TrainConfig())
