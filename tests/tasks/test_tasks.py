"""Tasks by name and by labels, and what all of them answer alike."""

from __future__ import annotations

import ast
import inspect
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.messages import refused
from vrgcn import Graph, tasks
from vrgcn.tasks import TASKS, find_task, implied_task, task_of, task_of_classes, tasks_scored_by
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.metrics import METRICS
from vrgcn.tasks.task import Task
from vrgcn.training.config import TrainConfig
from vrgcn.training.objective import TaskObjective, build_objective

# Labels of four nodes, the last one unknown, and how many classes there are.
LABELS: dict[str, tuple[Tensor, int]] = {
    "classes": (torch.tensor([0, 2, 2, -1]), 3),
    "multilabel": (torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [-1.0, -1.0]]), 2),
    "regression": (torch.tensor([1.5, -2.0, 4.0, math.nan], dtype=torch.float64), 0),
}
every_task = pytest.mark.parametrize("task", [find_task(name) for name in TASKS], ids=TASKS)


def graph(task: Task) -> Graph:
    labels, _ = LABELS[task.name]
    return Graph([[0], [1]], torch.ones(4, 2), labels, train=[0, 1, 2], task=task.name)


@every_task
def test_a_graph_keeps_labels_as_its_task_says(task: Task) -> None:
    labels, classes = LABELS[task.name]
    g = graph(task)
    assert (g.task, g.num_classes) == (task.name, classes)
    torch.testing.assert_close(g.labels, labels, equal_nan=True, rtol=0, atol=0)
    assert g.labelled.tolist() == [True, True, True, False]
    assert task.labelled(labels, torch.tensor([3, 0])).tolist() == [False, True]
    unknown = torch.full_like(labels, task.unknown)
    assert not task.labelled(unknown).any()


@every_task
def test_labels_as_a_graph_keeps_them_tell_their_task(task: Task) -> None:
    labels, _ = LABELS[task.name]
    assert task_of(labels) is task
    assert [t.name for t in map(find_task, TASKS) if t.holds(labels)] == [task.name]
    # Numbers might be meant as classes: whoever wants to predict them says so.
    assert implied_task(labels) == ("classes" if task.by_name else task.name)


def test_classes_are_one_for_a_node_or_several() -> None:
    names = [task_of_classes(several=several) for several in (False, True)]
    assert names == ["classes", "multilabel"]


def test_no_file_of_the_folder_has_the_name_of_one_of_its_functions() -> None:
    """The module, imported later than the function, would take its place."""
    files = {path.stem for path in Path(tasks.__file__).parent.glob("*.py")}
    tree = ast.parse(inspect.getsource(tasks))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {"find_task", "task_of_classes"} <= functions
    assert not files & functions


def test_an_unknown_task_is_refused_with_those_that_there_are() -> None:
    with refused():
        find_task("ranks")


@every_task
def test_a_criterion_needs_no_more_than_the_facts_it_names(task: Task) -> None:
    labels, classes = LABELS[task.name]
    known, nodes = labels[:3], torch.zeros(3, task.outputs(classes))
    facts = task.facts(known, classes)
    balanced = LossConfig(class_weights="balanced")
    for settings in (LossConfig(), balanced):
        needed = {name: facts[name] for name in task.needs(settings)}
        losses = task.criterion(settings, needed)(nodes, known)
        assert losses.shape == (3,)
        assert torch.isfinite(losses).all()


@every_task
def test_facts_from_elsewhere_take_the_place_of_those_of_the_graph(task: Task) -> None:
    """A part of a graph has few training nodes, and the loss is of all of them."""
    config = TrainConfig(class_weights="balanced" if task.has_classes else "none")
    g = graph(task)
    own = build_objective(g, config)
    assert isinstance(own, TaskObjective)
    facts = {name: 2 * value + 1 for name, value in task.facts(g.labels[:3], g.num_classes).items()}
    other = TaskObjective(g, config, facts)
    outputs, nodes = torch.ones(3, own.outputs), torch.arange(3)
    expected = task.criterion(LossConfig(class_weights=config.class_weights), facts)
    assert torch.equal(other.loss(outputs, nodes), expected(outputs, g.labels[:3]))
    assert not torch.equal(other.loss(outputs, nodes), own.loss(outputs, nodes))


OUTPUTS = {
    "classes": torch.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 1.0]]),
    "multilabel": torch.tensor([[1.0, -2.0], [3.0, 1.0]]),
    "regression": torch.tensor([[2.5], [-1.0]]),
}
PREDICTED = {
    "classes": ([1, 0], ["label", "p_a", "p_b", "p_c"], ["b", "a"]),
    "multilabel": ([[True, False], [True, True]], ["label", "p_a", "p_b"], ["a", "a|b"]),
    "regression": ([2.5, -1.0], ["prediction"], [2.5, -1.0]),
}


@every_task
def test_outputs_become_labels_columns_and_arrays(task: Task) -> None:
    outputs, (labels, names, first) = OUTPUTS[task.name], PREDICTED[task.name]
    classes = ["a", "b", "c"][: outputs.shape[1] if task.has_classes else 0]
    assert task.predicted(outputs).tolist() == labels
    table = task.columns(classes, None)
    arrays = table.arrays(outputs)
    assert [name for name, _ in table.fields] == names
    assert [kind for _, kind in table.fields] == [array.type for array in arrays]
    assert arrays[0].to_pylist() == first
    shown = task.array(outputs)
    if task.has_classes:
        assert torch.equal(shown, task.probabilities(outputs))
        assert [a.to_pylist() for a in arrays[1:]] == shown.t().tolist()
    else:
        assert (shown.dtype, shown.tolist()) == (torch.float64, first)


def test_the_most_probable_classes_come_first() -> None:
    table = find_task("classes").columns(["a", "b", "c"], top=2)
    arrays = table.arrays(OUTPUTS["classes"])
    assert [name for name, _ in table.fields] == ["label_1", "p_1", "label_2", "p_2"]
    assert [arrays[0].to_pylist(), arrays[2].to_pylist()] == [["b", "a"], ["c", "c"]]


@every_task
def test_a_choice_among_classes_that_there_are_not_is_refused(task: Task) -> None:
    with refused():
        task.check_top(4, 3)
    task.check_top(None, 3)


def test_labels_under_other_numbers_of_classes_keep_what_is_unknown() -> None:
    place = torch.tensor([3, 0, 1])
    labels, _ = LABELS["classes"]
    assert find_task("classes").renumbered(labels, place, 4).tolist() == [3, 1, 1, -1]
    labels, _ = LABELS["multilabel"]
    found = find_task("multilabel").renumbered(labels, place[:2], 4).tolist()
    assert found == [[0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1], [-1, -1, -1, -1]]


def test_every_metric_scores_some_task_and_the_first_is_the_default() -> None:
    found = {name: [task.name for task in tasks_scored_by(m)] for name, m in METRICS.items()}
    both, numbers = ["classes", "multilabel"], ["regression"]
    assert found == {
        **{"accuracy": ["classes"], "micro-f1": both, "macro-f1": both, "roc-auc": both},
        "average-precision": both,
        **{"rmse": numbers, "mae": numbers, "r2": numbers},
    }
    for task in map(find_task, TASKS):
        assert task.find_metric() is METRICS[task.metrics[0]]


def test_names_are_read_without_torch() -> None:
    code = "import sys; from vrgcn.tasks import TASKS; assert TASKS; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
