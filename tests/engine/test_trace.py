"""Tracing a model records its calls and leaves no trace in it."""

from __future__ import annotations

from contextlib import suppress

import pytest
import torch
from torch import nn

from tests.messages import refused
from tests.theory.problems import FEATURES, Embedded, gcn, random_graph
from vrgcn import MLP
from vrgcn.engine.trace import set_mode, trace, version

X = random_graph().features


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_levels_are_counted(layers: int) -> None:
    seen = trace(gcn(layers), X, training=True)
    assert seen.levels == ((None,),) * layers
    assert seen.depth == layers


def test_more_levels_than_can_be_are_refused() -> None:
    class Deep(nn.Module):
        def forward(self, x: torch.Tensor, propagate) -> torch.Tensor:
            while True:
                x = propagate(x)

    with refused():
        trace(Deep(), X, training=False)


def test_a_model_that_propagates_the_features_needs_no_table_of_them() -> None:
    assert trace(gcn(), X, training=True).first_table == 1
    assert trace(Embedded(2), X, training=True).first_table == 0


def test_dropout_is_seen_in_training_alone_and_so_is_what_it_drops() -> None:
    model = gcn(dropout=0.5, order="before")
    training, evaluation = (trace(model, X, training=mode) for mode in (True, False))
    assert (training.random, training.features_first) == (True, False)
    assert (evaluation.random, evaluation.features_first) == (False, True)


def test_an_mlp_has_no_level() -> None:
    seen = trace(MLP(FEATURES, 8, 3).double(), X, training=True)
    assert (seen.depth, seen.features_first) == (0, False)


def test_random_numbers_modes_and_statistics_are_as_before() -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(FEATURES, dtype=torch.float64)
            self.drop = nn.Dropout(0.5)

        def forward(self, x, propagate):  # type: ignore[no-untyped-def]
            return self.drop(self.norm(propagate(x)))

    model = Normed()
    model.drop.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    assert trace(model, X, training=True).random
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert (model.training, model.norm.training, model.drop.training) == (True, True, False)


def test_a_mode_is_put_back_after_an_error() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))
    model[1].eval()
    with suppress(KeyError), set_mode(model, training=False, norms=True):
        assert (model.training, model[0].training, model[1].training) == (False, False, True)
        raise KeyError
    assert (model.training, model[0].training, model[1].training) == (True, True, False)


def test_a_version_counts_changes_in_place() -> None:
    h = torch.zeros(2)
    before = version(h)
    assert version(h + 1) == before
    h += 1
    assert version(h) == before + 1


def test_features_of_another_precision_or_width_are_told_before_anything_runs() -> None:
    with refused(TypeError):
        trace(gcn(), X.float(), training=True)
    with refused():
        trace(gcn(), X[:, :4], training=True)
