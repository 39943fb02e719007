"""The limits against hand-made results."""

from __future__ import annotations

import copy
import json

import pytest

from lab.bench.accuracy import PEER
from lab.bench.limits import LIMITS, judge, summary
from lab.bench.sparse import AFTER, FIRST


def _reached(seconds, reached=True):
    return {"reached": reached, "seconds": seconds, "memory": {"excess": 400e6}}


RESULTS = {
    "epoch": {
        "algorithms": {
            "history": {"ratio_to_mlp": {"median": 1.1}},
            "two-way": {"ratio_to_mlp": {"median": 1.2}},
            "CV+PP": {"ratio_to_mlp": {"median": 1.6}},
            "CVD+PP": {"ratio_to_mlp": {"median": 2.1}},
        }
    },
    "accuracy": {
        "algorithms": {
            "history": _reached(20.0),
            "two-way": _reached(10.0),
            "CV+PP": _reached(20.0),
            "CVD+PP": _reached(20.0),
            "exact+PP": _reached(150.0),
            PEER: {"reached": True, "seconds": 600.0},
        }
    },
    "deep": {
        "steps": {
            f"{layers} layers": {"two-way": {"ratio": {"median": 1.3}, "to_raw": {"median": 1.05}}}
            for layers in (2, 3, 4)
        },
        "race": {"two-way": _reached(2.0), "exact+PP": _reached(41.0)},
    },
    "histories": {
        "average": {"dtypes": {"float16": {"times_as_fast": {"median": 1.6}}}},
        "accuracy": {"float16": {"t": -0.5, "p": 0.6}},
    },
    "sparse": {
        "rows": {FIRST: {"ratio": {"median": 1.4}}, AFTER: {"ratio": {"median": 1.9}}},
        "auto": AFTER,
    },
    "growth": {"nodes": {"exponent": 1.02}, "degree": {"exponent": 0.4}},
    "startup": {
        "programs": {
            "vrgcn --help": {"seconds": {"median": 0.2}},
            "from vrgcn import *": {"ratio_to_torch": {"median": 1.1}},
        },
        "mistakes": {"slowest": {"median": 0.2}},
    },
}


def _changed(path, value):
    results = copy.deepcopy(RESULTS)
    place = results
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return results


def test_all_limits_can_be_met():
    verdicts = judge(RESULTS)
    assert len(verdicts) == 26
    assert all(verdict.met for verdict in verdicts)
    section = summary(RESULTS)
    assert [row[3] for row in section.tables[0].rows] == ["yes"] * 26
    json.dumps(section.results, allow_nan=False)


_ALGORITHMS = ("accuracy", "algorithms")


@pytest.mark.parametrize(
    ("path", "value", "missed"),
    [
        (("epoch", "algorithms", "history", "ratio_to_mlp", "median"), 1.26, "history epoch"),
        (("epoch", "algorithms", "CV+PP", "ratio_to_mlp", "median"), 1.76, "CV+PP epoch"),
        (("epoch", "algorithms", "CVD+PP", "ratio_to_mlp", "median"), 2.61, "CVD+PP epoch"),
        (("epoch", "algorithms", "two-way", "ratio_to_mlp", "median"), 1.61, "two-way epoch"),
        (("deep", "steps", "3 layers", "two-way", "ratio", "median"), 1.71, "3 layers, step"),
        (("deep", "steps", "4 layers", "two-way", "ratio", "median"), 1.81, "4 layers, step"),
        (("deep", "steps", "2 layers", "two-way", "to_raw", "median"), 1.11, "frame, 2 layers"),
        (("deep", "race", "exact+PP", "seconds"), 19.0, "3 layers: times sooner"),
        ((*_ALGORITHMS, "exact+PP", "seconds"), 79.0, "CVD+PP: times sooner than exact+PP"),
        ((*_ALGORITHMS, "CVD+PP", "seconds"), 13.0, "than CVD+PP"),
        ((*_ALGORITHMS, PEER, "seconds"), 499.0, "than PyG"),
        ((*_ALGORITHMS, "CVD+PP", "memory", "excess"), 501e6, "tables: CVD+PP"),
        (("histories", "average", "dtypes", "float16", "times_as_fast", "median"), 1.4, "fast"),
        (("histories", "accuracy", "float16"), {"t": -3.0, "p": 0.01}, "less accurate"),
        (("sparse", "rows", AFTER, "ratio", "median"), 2.01, "wide sparse features"),
        (("growth", "nodes", "exponent"), 1.2, "against V"),
        (("growth", "degree", "exponent"), 1.2, "against degree"),
        (("startup", "programs", "vrgcn --help", "seconds", "median"), 0.5, "--help"),
        (("startup", "mistakes", "slowest", "median"), 0.5, "an error of the command line"),
        (
            ("startup", "programs", "from vrgcn import *", "ratio_to_torch", "median"),
            1.3,
            "import torch",
        ),
    ],
)
def test_each_limit_can_be_missed_alone(path, value, missed):
    found = [verdict.limit for verdict in judge(_changed(path, value)) if verdict.met is False]
    assert len(found) == 1
    assert missed in found[0]


def test_better_accuracy_in_16_bits_is_no_loss():
    path = ("histories", "accuracy", "float16")
    assert all(verdict.met for verdict in judge(_changed(path, {"t": 3.0, "p": 0.01})))


def test_two_way_is_to_be_seven_times_sooner_than_exact():
    found = judge(_changed((*_ALGORITHMS, "exact+PP", "seconds"), 69.0))
    missed = [verdict.limit for verdict in found if verdict.met is False]
    assert missed == [
        "two-way: times sooner than exact+PP",
        "CVD+PP: times sooner than exact+PP",
    ]


@pytest.mark.parametrize("name", ["two-way", "CVD+PP"])
def test_a_target_that_is_never_reached_is_missed(name):
    results = _changed((*_ALGORITHMS, name, "reached"), False)
    found = [verdict.limit for verdict in judge(results) if verdict.met is False]
    assert len(found) == 2
    assert all("times sooner" in limit for limit in found)


def test_what_was_not_measured_is_neither_met_nor_missed():
    verdicts = judge({"growth": RESULTS["growth"]})
    assert [verdict.met for verdict in verdicts if verdict.measured is not None] == [True, True]
    assert sum(verdict.met is None for verdict in verdicts) == len(LIMITS) - 2
