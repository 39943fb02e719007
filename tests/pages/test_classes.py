"""Scores of each class as rows."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from vrgcn.pages.evaluation import class_row, main_classes
from vrgcn.tasks.metrics import class_scores


def scored(truth: list[int], guess: list[int], classes: int):
    return class_scores(F.one_hot(torch.tensor(guess), classes).float(), torch.tensor(truth))


def test_a_row_has_shares_counts_and_a_dash_where_there_is_no_share():
    scores = scored([0, 0, 1, 1], [0, 1, 1, 1], 3)
    assert class_row(scores, 0) == ["1.000", "0.500", "0.667", "2", "1"]
    assert class_row(scores, 1) == ["0.667", "1.000", "0.800", "2", "3"]
    assert class_row(scores, 2)[:2] == ["–", "–"]


def test_of_many_classes_the_largest_that_occur_are_shown():
    assert main_classes(scored([0, 1], [1, 1], 3)) == [0, 1, 2]
    assert main_classes(scored([7, 7, 29], [7, 7, 3], 30)) == [7, 29, 3]
