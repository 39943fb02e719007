"""Tasks: what a model can be trained for, by the kind of label that nodes have.

A task contains everything that depends on the kind of label: checks of labels, number of outputs,
loss, scores, columns of predictions. Other code calls the task and never tests its name. A new task
is a file here with a class that has the methods of `Task`, and a line in TASKS; or such a class in
another package, with an entry point of the group `vrgcn.tasks`, which the user names. This file
imports no torch: the command line reads the names.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import TASKS as PLUGINS
from vrgcn.files.plugins import check_own, is_plugin, known_names, load_plugin, plugin_package

if TYPE_CHECKING:
    from torch import Tensor

    from vrgcn.tasks.metrics import LabelMetric
    from vrgcn.tasks.task import Task

# name of the task, which is also its file: class
TASKS: dict[str, str] = {
    "classes": "OneClass",
    "multilabel": "SeveralClasses",
    "regression": "Number",
}
FLAGGED = tuple(TASKS)  # those that model files have a flag for, or that no flag stands for
DEFAULT = "classes"  # for missing labels, or labels whose shape fits no task


def find_task(name: str) -> Task:
    """Return the task of this name, as in `Graph.task`."""
    if not is_task(name):
        raise InputError(f"task {name!r} is none of {known_names(PLUGINS, TASKS)}")
    if name not in TASKS:
        return _plugin(name)
    check_own(PLUGINS, name)
    return _own(name)


@cache
def _own(name: str) -> Task:
    module = importlib.import_module(f"vrgcn.tasks.{name}")
    task: Task = getattr(module, TASKS[name])()
    return task


def is_task(name: object) -> bool:
    """Return True if a task of vrgcn's own or of another package has this name."""
    return isinstance(name, str) and (name in TASKS or is_plugin(PLUGINS, name))


@cache
def _plugin(name: str) -> Task:
    """Return the task of another package."""
    from vrgcn.tasks.task import Task

    kind = load_plugin(PLUGINS, name)
    if not (isinstance(kind, type) and issubclass(kind, Task) and kind.name == name):
        raise InputError(
            f"the task {name!r} of {plugin_package(PLUGINS, name)} is no class of "
            f"vrgcn.tasks.task.Task whose name is {name!r}"
        )
    return kind()


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


def tasks_scored_by(metric: LabelMetric) -> list[Task]:
    """Return the tasks that a metric can score."""
    tasks = map(find_task, TASKS)
    return [task for task in tasks if metric in map(task.find_metric, task.metrics)]
