"""Columns that tell training nodes from test nodes: something that is filled in later, or in one of
the two only. Scores then say little about the nodes that will be predicted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from vrgcn.graph.graph import Graph
from vrgcn.leaks.columns import (
    bins,
    dense_features,
    dense_width,
    rows_within,
    sample,
    sparse_features,
)
from vrgcn.leaks.finding import Budget, Finding
from vrgcn.leaks.skill import Members, skill_of_bins, skills_of_presence

SKILL = 0.9
_NODES = 10_000
_SHOWN = 5


def columns_that_tell_splits(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find columns whose values say whether a node is a training or a test node. Dates are not
    asked: a split by time is no mistake."""
    if graph.labels is None:
        return
    width = dense_width(graph, graph.target)
    most = min(_NODES, rows_within(budget.cells, width) // 2)
    train, test = (sample(graph.split(name), most) for name in ("train", "test"))
    if not len(train) or not len(test):
        return
    nodes, order = torch.cat([train, test]).sort()
    of = np.zeros((len(nodes), 2))
    of[np.arange(len(nodes)), (order >= len(train)).numpy().astype(int)] = 1
    members = Members.make(of, exclusive=True)
    if members is None:
        return
    skills_of: dict[str, float] = {}
    for feature in dense_features(graph, graph.target, nodes):
        if feature.title.endswith((".seconds", ".sin", ".cos")):
            continue
        skill = skill_of_bins(bins(feature.values, members.fitted), members).skill
        skills_of[feature.column] = max(skill, skills_of.get(feature.column, 0.0))
    for block in sparse_features(graph, graph.target, nodes):
        skills, _ = skills_of_presence(block.present, members)
        for place in np.flatnonzero(skills >= SKILL).tolist():
            skills_of[block.titles[place]] = float(skills[place])
    odd = {column: skill for column, skill in skills_of.items() if skill >= SKILL}
    for column in sorted(odd, key=lambda name: -odd[name])[:_SHOWN]:
        yield Finding(
            "medium",
            "split",
            f"column {column!r} tells training nodes from test nodes: skill {odd[column]:.2f}, "
            "where 0 is a guess and 1 is always right",
            "a model may learn it and fail on other nodes; leave the column out, or split the "
            "nodes as those that will be predicted differ from known ones",
        )
