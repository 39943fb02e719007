"""Settings of training that are not of their type are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from vrgcn import ESTIMATORS, TrainConfig


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epochs": True}, "epochs must be a whole number, not True"),
        ({"epochs": None}, "epochs must be a whole number, not None"),
        ({"seed": False}, "seed must be a whole number, not False"),
        ({"patience": "3"}, "patience must be a whole number, not '3'"),
        ({"estimator": None}, "estimator must be a name such as 'cvd', not None"),
        ({"estimator": ESTIMATORS["cvd"]}, "estimator must be a name .*own: fit\\(estimator="),
        ({"fanout": "many"}, "fanout must be a whole number, or one per layer, not 'many'"),
        ({"fanout": "12"}, "fanout must be a whole number, or one per layer, not '12'"),
        ({"fanout": 1.5}, "fanout must be a whole number, or one per layer, not 1.5"),
        ({"fanout": (1, 2.5)}, r"fanout must be a whole number, or one per layer, not \(1, 2.5\)"),
        ({"fanout": True}, "fanout must be a whole number, or one per layer, not True"),
        ({"learning_rate": "fast"}, "learning_rate must be a number, not 'fast'"),
        ({"learning_rate": None}, "learning_rate must be a number, not None"),
        ({"weight_decay": True}, "weight_decay must be a number, not True"),
        ({"clip": "1"}, "clip must be a number, not '1'"),
        ({"label_smoothing": "a lot"}, "label_smoothing must be a number, not 'a lot'"),
        ({"warm_start": "no"}, "warm_start must be True or False, not 'no'"),
        ({"inductive": None}, "inductive must be True or False, not None"),
        ({"optimizer": None}, "optimizer None is none of adam, sgd"),
        ({"optimizer": ["adam"]}, r"optimizer \['adam'\] is none of adam, sgd"),
    ],
)
def test_what_is_not_of_its_type_is_refused_by_name(given: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
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
