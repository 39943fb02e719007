"""Columns and orders of nodes that tell what they should not.

A column that predicts the label on its own is often the label's own source, or known only after it.
An order that predicts it comes from rows sorted by class, or ids given class by class. A column
that tells training nodes from test nodes was filled in later, or in one of the two only: scores
then say little about the nodes that will be predicted.

Only training nodes are asked about labels: one half of them makes a rule of each column, the other
half says how right the rule is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.leaks.columns import (
    bins,
    dense_features,
    dense_width,
    rows_within,
    sample,
    sparse_features,
)
from vrgcn.leaks.finding import Budget, Finding, Severity
from vrgcn.leaks.skill import (
    Floats,
    Members,
    halves,
    r2_of_bins,
    r2_of_presence,
    skill_of_bins,
    skills_of_presence,
)
from vrgcn.tasks import find_task

CERTAIN = 0.95  # skill of a column that says nearly everything
STRONG, AHEAD = 0.7, 0.35  # skill of one that is far ahead of others, and how far
AUC = 0.995  # of a column that tells one class from all others
LARGE = 0.05  # share of nodes of a class that counts on its own
_SHOWN = 10
_NODES = 20_000


@dataclass(frozen=True)
class Told:
    """What a column tells.

    skill: see `skill.py`; label: the class that it tells best, by `auc`; None for numbers
    """

    column: str
    skill: float
    auc: float = 0.0
    label: int | None = None


def columns_that_tell_labels(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find columns that alone predict the label of training nodes."""
    if graph.labels is None:
        return
    width = dense_width(graph, graph.target)
    nodes = sample(graph.train, min(_NODES, rows_within(budget.cells, width)))
    task = find_task(graph.task)
    columns = list(_numbers(graph, nodes) if not task.has_classes else _classes(graph, nodes))
    best: dict[str, Told] = {}
    for told in columns:
        if told.column not in best or _order(told) > _order(best[told.column]):
            best[told.column] = told
    yield from _judged(graph, list(best.values()), numbers=not task.has_classes)


def _order(told: Told) -> tuple[float, float]:
    return told.skill, told.auc


def members_of(graph: Graph, nodes: Tensor) -> Members | None:
    """The classes of some nodes; None if there are too few nodes to say anything."""
    assert graph.labels is not None
    labels = graph.labels[nodes]
    if labels.dim() == 2:
        return Members.make((labels > 0).double().numpy(), exclusive=False)
    of = np.zeros((len(nodes), graph.num_classes))
    of[np.arange(len(nodes)), labels.numpy()] = 1
    return Members.make(of, exclusive=True)


def _classes(graph: Graph, nodes: Tensor) -> Iterator[Told]:
    members = members_of(graph, nodes)
    if members is None:
        return
    for feature in dense_features(graph, graph.target, nodes):
        rule = skill_of_bins(bins(feature.values, members.fitted), members)
        place = int(rule.auc.argmax())
        name = int(members.names[place])
        yield Told(feature.column, rule.skill, float(rule.auc[place]), name)
    for block in sparse_features(graph, graph.target, nodes):
        skills, auc = skills_of_presence(block.present, members)
        best = auc.argmax(1)
        odd = (skills > STRONG / 2) | (auc.max(1) >= AUC)
        for place in np.flatnonzero(odd).tolist():
            yield Told(
                block.titles[place],
                float(skills[place]),
                float(auc[place, best[place]]),
                int(members.names[best[place]]),
            )


def _numbers(graph: Graph, nodes: Tensor) -> Iterator[Told]:
    assert graph.labels is not None
    if len(nodes) < 4 * 10:
        return
    numbers: Floats = graph.labels[nodes].double().numpy()
    fitted = halves(len(nodes))
    for feature in dense_features(graph, graph.target, nodes):
        yield Told(feature.column, r2_of_bins(bins(feature.values, fitted), numbers, fitted))
    for block in sparse_features(graph, graph.target, nodes):
        r2 = r2_of_presence(block.present, numbers, fitted)
        for place in np.flatnonzero(r2 > STRONG / 2).tolist():
            yield Told(block.titles[place], float(r2[place]))


def _judged(graph: Graph, told_by: list[Told], *, numbers: bool) -> Iterator[Finding]:
    """Findings about columns that tell too much."""
    ordinary = [told for told in told_by if told.skill < STRONG and told.auc < AUC]
    next_best = max(ordinary, key=_order, default=None)
    level = max(next_best.skill, 0.0) if next_best is not None else 0.0
    beside = "no other column tells much"
    if next_best is not None and level > 0:
        beside = f"the next best column, {next_best.column!r}, has {level:.2f}"
    measure = "R²" if numbers else "skill"
    odd = [told for told in told_by if told.skill >= STRONG]
    for told in sorted(odd, key=_order, reverse=True)[:_SHOWN]:
        severity: Severity = "high" if told.skill >= CERTAIN else "medium"
        if severity == "medium" and told.skill - level < AHEAD:
            continue
        text = (
            f"column {told.column!r} alone tells the label: {measure} {told.skill:.2f} on "
            f"held-out training nodes, where 0 is a guess and 1 is always right; {beside}"
        )
        yield Finding(severity, "column", text, _advice([told]))
    if not numbers:
        yield from _one_class_each(graph, [told for told in told_by if told.skill < STRONG])


def _one_class_each(graph: Graph, columns_told: list[Told]) -> Iterator[Finding]:
    """Columns that tell one class from all others. With many classes and columns some do so by
    nature: a column counts if its class is large, or if most classes have such a column."""
    assert graph.labels is not None
    sure: dict[int, Told] = {}
    for told in sorted(columns_told, key=lambda each: each.auc):
        if told.auc >= AUC and told.label is not None:
            sure[told.label] = told
    labels = graph.labels[graph.train]
    sizes = (labels > 0).sum(0) if labels.dim() == 2 else labels.bincount()
    if 2 * len(sure) < int((sizes > 0).sum()):
        sure = {k: told for k, told in sure.items() if sizes[k] >= LARGE * len(labels)}
    if not sure:
        return
    shown = list(sure.items())[-_SHOWN:]
    words = ", ".join(f"{told.column!r} ({_class_name(graph, label)})" for label, told in shown)
    columns = "column" if len(sure) == 1 else f"{len(sure)} columns"
    yield Finding(
        "high",
        "column",
        f"{columns} alone {'tells' if len(sure) == 1 else 'tell, each,'} one class from all "
        f"others, with an AUC of {min(told.auc for told in sure.values()):.4f} or more on held-out "
        f"training nodes: {words}",
        _advice([told for _, told in shown]),
    )


def _class_name(graph: Graph, label: int) -> str:
    names = graph.names.classes
    return f"class {label}" if names is None else names[label]


def _advice(telling: list[Told]) -> str:
    columns = tuple(told.column for told in telling)
    named = columns if len(columns) > 1 else columns[0]
    return (
        "is it known before the label is, for nodes whose label is to be predicted? If not, import "
        f"the table without it, {setting('drop', named, command='import')}"
    )


SPLIT_SKILL = 0.9
_SPLIT_NODES = 10_000
_SPLIT_SHOWN = 5


def columns_that_tell_splits(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find columns whose values say whether a node is a training or a test node. Dates are not
    asked: a split by time is no mistake."""
    if graph.labels is None:
        return
    width = dense_width(graph, graph.target)
    most = min(_SPLIT_NODES, rows_within(budget.cells, width) // 2)
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
        for place in np.flatnonzero(skills >= SPLIT_SKILL).tolist():
            skills_of[block.titles[place]] = float(skills[place])
    odd = {column: skill for column, skill in skills_of.items() if skill >= SPLIT_SKILL}
    for column in sorted(odd, key=lambda name: -odd[name])[:_SPLIT_SHOWN]:
        yield Finding(
            "medium",
            "split",
            f"column {column!r} tells training nodes from test nodes: skill {odd[column]:.2f}, "
            "where 0 is a guess and 1 is always right",
            "a model may learn it and fail on other nodes; leave the column out, or split the "
            "nodes as those that will be predicted differ from known ones",
        )


ORDER_SKILL = 0.7


def orders_that_tell_labels(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find orders of rows and of ids that alone predict the label of training nodes."""
    if graph.labels is None:
        return
    nodes = sample(graph.train, min(_NODES, budget.cells))
    for what, places in _orders(graph, nodes):
        skill = _skill(graph, nodes, places)
        if skill < ORDER_SKILL:
            continue
        yield Finding(
            "medium",
            "order",
            f"the order of the {what} tells the label: skill {skill:.2f} on held-out training "
            "nodes, where 0 is a guess and 1 is always right",
            "ids and row numbers are no features here, so training does not see them; make no "
            "feature, split or batch of them, and ask why the table is sorted: nodes without a "
            "label may be told apart the same way",
        )
        return


def _orders(graph: Graph, nodes: Tensor) -> Iterator[tuple[str, NDArray[np.float64]]]:
    yield "rows", nodes.numpy().astype(np.float64)
    own = graph.names.nodes is not None or bool(graph.names.by_kind)
    if own:
        ids = graph.names.node_ids(nodes.numpy())
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks()
        ranks = pc.rank(ids, tiebreaker="dense").to_numpy().astype(np.float64)
        yield "ids", ranks


def _skill(graph: Graph, nodes: Tensor, places: NDArray[np.float64]) -> float:
    if not find_task(graph.task).has_classes:
        if len(nodes) < 40:
            return 0.0
        assert graph.labels is not None
        fitted = halves(len(nodes))
        numbers = graph.labels[nodes].double().numpy()
        return r2_of_bins(bins(places, fitted), numbers, fitted)
    members = members_of(graph, nodes)
    if members is None:
        return 0.0
    rule = skill_of_bins(bins(places, members.fitted), members)
    if members.exclusive:
        return rule.skill
    return float(2 * rule.auc.mean() - 1)
