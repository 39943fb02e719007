"""The possible values of y: unknown ones in arrays and in lists, and those that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.messages import refused
from vrgcn.scikit.targets import read_classes, read_numbers

NAN = float("nan")


@pytest.mark.parametrize(
    "y",
    [
        ["a", NAN, "b", "a"],
        ["a", -1, "b", "a"],
        ["a", None, "b", "a"],
        ("a", -1, "b", "a"),
        np.array(["a", -1, "b", "a"]),  # NumPy turns this into "-1"
        np.array(["a", -1, "b", "a"], dtype=object),
    ],
)
def test_unknown_labels_among_texts_are_no_classes(y) -> None:
    target = read_classes(y, -1)
    assert target.known.tolist() == [True, False, True, True]
    assert target.values[target.known].tolist() == ["a", "b", "a"]


def test_a_text_is_a_class_where_nothing_stands_for_unknown() -> None:
    assert read_classes(np.array(["1", "-1", "0"]), None).known.all()
    assert read_classes(["x", "y"], -1).values.tolist() == ["x", "y"]


def test_nan_that_became_a_text_is_doubted() -> None:
    y = np.array(["a", NAN, "b"])
    with refused():
        read_classes(y, -1)
    assert read_classes(y.astype(object), -1).known.all()
    assert read_classes(y, "nan").known.tolist() == [True, False, True]


def test_texts_and_numbers_are_not_mixed() -> None:
    for y in (["a", 1, "b"], np.array([1, None, "a"], dtype=object)):
        with refused():
            read_classes(y, -1)
    assert read_classes([True, None, 1], -1).known.tolist() == [True, False, True]


def test_numbers_may_be_written_as_texts_and_what_is_none_is_named() -> None:
    found = read_numbers(np.array([1, None, "2.5"], dtype=object))
    assert found.known.tolist() == [True, False, True]
    assert found.values[found.known].tolist() == [1, 2.5]
    for y in (["1", "tall"], np.array(["1", "tall"]), np.array([1, "tall"], dtype=object)):
        with pytest.raises(ValueError, match="'tall'"):
            read_numbers(y)
