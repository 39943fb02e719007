"""Settings of training that are not of their type are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.messages import refused
from vrgcn import ESTIMATORS, TrainConfig


@pytest.mark.parametrize(
    "given",
    [
        {"epochs": True},
        {"epochs": None},
        {"seed": False},
        {"patience": "3"},
        {"estimator": None},
        {"estimator": ESTIMATORS["cvd"]},
        {"fanout": "many"},
        {"fanout": "12"},
        {"fanout": 1.5},
        {"fanout": (1, 2.5)},
        {"fanout": True},
        {"learning_rate": "fast"},
        {"learning_rate": None},
        {"weight_decay": True},
        {"clip": "1"},
        {"label_smoothing": "a lot"},
        {"warm_start": "no"},
        {"inductive": None},
        {"optimizer": None},
        {"optimizer": ["adam"]},
    ],
)
def test_what_is_not_of_its_type_is_refused_by_name(given: dict) -> None:
    with refused():
        TrainConfig(**given)


def test_numbers_of_numpy_and_what_stands_for_a_default_are_taken() -> None:
    config = TrainConfig(
        epochs=np.int64(3),
        learning_rate=np.float32(0.5),
        weight_decay=0,
        fanout=[np.int64(2), 1],
        warm_start=np.True_,
        patience=None,
        preprocess=None,
        propagation=None,
        clip=None,
    )
    assert (config.epochs, config.learning_rate, config.fanout) == (3, 0.5, (2, 1))
    assert TrainConfig(fanout=np.int64(2)).fanout == (2,)
