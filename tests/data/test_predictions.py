"""Tables of predictions: the classes of a node that has several can be told apart."""

from __future__ import annotations

import json

import pytest
import torch

from vrgcn.data.id_columns import IdColumns
from vrgcn.data.predictions import PredictionRows
from vrgcn.graph.names import Names
from vrgcn.tasks import find_task

OUTPUTS = torch.tensor([[1.0, 1.0, -1.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])


def labels(classes: list[str]) -> list[str]:
    rows = PredictionRows(IdColumns(Names()), find_task("multilabel"), classes, top=None)
    return rows.batch(torch.arange(3), OUTPUTS).column("label").to_pylist()


def test_several_classes_are_joined():
    assert labels(["a", "b", "c"]) == ["a|b", "b|c", ""]


@pytest.mark.parametrize("classes", [["a", "a|b", "b"], ["|", "", 'ü"']])
def test_classes_that_could_not_be_told_apart_are_a_list(classes):
    told = labels(classes)
    assert [json.loads(label) for label in told] == [classes[:2], classes[1:], []]
    assert "\\u" not in "".join(told)
