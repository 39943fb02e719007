"""Tasks: what a model can be trained for, by the kind of label that nodes have.

A task contains everything that depends on the kind of label: checks of labels, number of outputs,
loss, scores, columns of predictions. Other code calls the task and never tests its name. A new task
is a file here with a class that has the methods of `Task`, and a line in TASKS. This file imports
no torch: the command line reads the names.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from vrgcn.tasks.metrics import Metric
    from vrgcn.tasks.task import Task

# name of the task, which is also its file: class
TASKS: dict[str, str] = {
    "classes": "OneClass",
    "multilabel": "SeveralClasses",
    "regression": "Number",
}
DEFAULT = "classes"  # for missing labels, or labels whose shape fits no task


@cache
def find_task(name: str) -> Task:
    """Return the task of this name, as in `Graph.task`."""
    if name not in TASKS:
        raise ValueError(f"task {name!r} is none of {', '.join(TASKS)}")
    module = importlib.import_module(f"vrgcn.tasks.{name}")
    task: Task = getattr(module, TASKS[name])()
    return task


def task_of(labels: Tensor) -> Task:
    """Return the task of labels as a graph keeps them, by their shape and type."""
    held = (task for task in map(find_task, TASKS) if task.holds(labels))
    return next(held, find_task(DEFAULT))


def implied_task(labels: Tensor | None) -> str:
    """Return the name of the task that labels stand for if the user names none."""
    task = find_task(DEFAULT) if labels is None else task_of(labels)
    return DEFAULT if task.by_name else task.name


def task_of_classes(*, several: bool) -> str:
    """Return the name of the task of one class per node, or of several."""
    tasks = map(find_task, TASKS)
    return next(task.name for task in tasks if task.has_classes and task.several == several)


def flagged_task(**flags: bool) -> str:
    """Return the name of the task whose flag is true; model files have a flag for each task except
    the default."""
    return next((name for name in TASKS if flags.get(name)), DEFAULT)


def tasks_scored_by(metric: Metric) -> list[Task]:
    """Return the tasks that a metric can score."""
    tasks = map(find_task, TASKS)
    return [task for task in tasks if metric in map(task.find_metric, task.metrics)]
