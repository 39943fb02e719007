"""Estimators by name and by composition."""

from __future__ import annotations

import pytest

from tests.messages import refused
from vrgcn import ESTIMATORS, Estimator
from vrgcn.engine.estimators import find_estimator

COMPOSITIONS = {
    "exact": "full/sampled/sampled",
    "ns": "uniform/sampled/sampled",
    "is": "importance/sampled/sampled",
    "cv": "uniform/corrected/sampled",
    "cvd": "uniform/corrected/sampled/residual",
    "history": "none/history/none",
    "gradient-only": "uniform/history/sampled/residual",
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_a_name_is_its_composition(name: str) -> None:
    assert find_estimator(name) == ESTIMATORS[name] == find_estimator(COMPOSITIONS[name])


def test_raw_compositions_keep_tables_without_a_frame() -> None:
    for written in ("few/corrected/corrected", "uniform/corrected/corrected/residual"):
        assert find_estimator(written).moves
        assert not find_estimator(f"{written}/raw").moves
    assert not ESTIMATORS["cvd"].moves


def test_an_estimator_of_ones_own_is_taken_as_it_is() -> None:
    own = Estimator("full", "corrected", "none")
    assert find_estimator(own) is own


def test_histories_are_for_all_but_sampled_values() -> None:
    assert {name for name in COMPOSITIONS if not ESTIMATORS[name].history} == {"exact", "ns", "is"}
    assert not ESTIMATORS["history"].corrects
    assert ESTIMATORS["gradient-only"].corrects


@pytest.mark.parametrize(
    "written",
    [
        "cvv",
        "uniform/corrected",
        "uniform/corrected/sampled/twice",
        "uniform/residual",
        "best/corrected/sampled",
        "uniform/none/sampled",
        "uniform/sampled/guess",
        "uniform/sampled/sampled/residual",
        "uniform/corrected/sampled/raw",
        "few/corrected/corrected/raw/residual",
    ],
)
def test_what_is_no_composition_is_refused_by_its_part(written: str) -> None:
    with refused():
        find_estimator(written)
