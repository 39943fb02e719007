"""The settings of a run that depend on its graph: what auto and None stand for.

- the model: short trainings are compared by their validation scores. With few labels (fewer than
  100 training nodes per class, fewer than a tenth of all nodes) GraphSAGE as usual and a GCN
  without norm under weight decay (Kipf and Welling's): GraphSAGE is taken if it is better by 0.02.
  With more labels GraphSAGE as usual, a larger one without dropout (for labels that are hard to
  fit) and a deeper residual model (for neighbours that are unlike the node): another than the usual
  one is taken if it is better by 0.005
- the model of pairs, and how it is trained: pair_settings.py
- learned rows: where nodes outside training have 5 or more training nodes among their neighbours
- dropout: 0.5, or 0.2 where there are fewer than 100 feature columns
- patience: 10 evaluations, or as many as make 100 steps; never with a cosine schedule, with
  `select` "last" and without validation nodes or pairs

Labels of validation nodes choose between models, and nothing else. `docs/guides/training.md` has
the measurements behind the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.models.plugins import is_plugin_model
from vrgcn.runs.pair_settings import settle_pairs
from vrgcn.runs.pilots import moved, pilot, prepared
from vrgcn.targets.opening import find_target
from vrgcn.targets.scored import scored_edges
from vrgcn.tasks import find_task
from vrgcn.training.config import TrainConfig

_PER_CLASS, _SHARE = 100, 0.1  # few labels: fewer training nodes per class, and of all nodes
_DECAY = 5e-4
_PILOT = 50  # epochs of a training that is compared where labels are few
_MARGIN = 0.02  # by which GraphSAGE has to be better: where it is at all, it is by far
_SHORT = 16  # epochs of a training that is compared where labels are many
_GAIN = 0.005  # by which another model than the usual has to be better; of an error, four times
_VALIDATION = 50  # nodes from which on a validation score is more than chance
_WORK = 2.5e5  # nodes that an epoch may cost where several models are compared: some seconds
# The usual model's settings that another model changes; a run with other values keeps its model.
_CHANGED = {"hidden": 128, "layers": 2, "dense": 1, "skip": False, "jumping": "none"}
_OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a larger graphsage without dropout": ({"layers": 3, "hidden": 256, "dropout": 0.0}, {}),
    "a residual model": ({"model": "residual", "layers": 4}, {"learning_rate": 0.003}),
}
_NEIGHBOURS = 5.0  # training neighbours from which on learned rows are worth their time
_NUMBERS = 1 << 23  # numbers of a table of learned rows at most: its optimiser keeps three
_COLUMNS = 100  # feature columns from which on half of them can be dropped
_PATIENCE, _STEPS = 10, 100  # evaluations, and steps, without a better score


def settle(
    model: ModelConfig, train: TrainConfig, graph: Graph, *, compare: bool = True
) -> tuple[ModelConfig, TrainConfig, str | None]:
    """Return the settings of the model and the training with values in place of auto and None, and
    a note on a choice that was made by training.

    graph: as the model is trained on it, with scaled features
    compare: compare models where labels are many too; False: a search will
    """
    edges = scored_edges(graph)
    if edges is not None and edges.kind == "links" and model.model == "auto":
        model, train, note = settle_pairs(model, train, graph, compare=compare)
        return *settle(model, train, graph)[:2], note
    compare = compare and model.dropout is None
    model, train = by_counts(model, train, graph)
    note = None
    if model.model == "auto":
        model, train, note = _choose_model(model, train, graph, compare)
    decay = 0.0 if train.weight_decay is None else train.weight_decay
    return model.settled(), replace(train, weight_decay=decay), note


def by_counts(
    model: ModelConfig, train: TrainConfig, graph: Graph
) -> tuple[ModelConfig, TrainConfig]:
    """Return the settings with the patience, the dropout and the learned rows that counts of the
    graph decide."""
    train = replace(train, patience=_patience(train, graph))
    if model.dropout is None:
        wide = graph.num_features >= _COLUMNS or graph.kinds.named
        model = replace(model, dropout=0.5 if wide else 0.2)
    if model.learned_rows is None:
        model = replace(model, learned_rows=_rows_worth(model, train, graph))
    return model, train


def few_labels(graph: Graph) -> bool:
    """True if few nodes have the label that they are trained for, one class each."""
    if graph.labels is None:
        return False
    few = len(graph.train) < min(_PER_CLASS * graph.num_classes, _SHARE * graph.num_nodes)
    return few and not graph.kinds.named and find_task(graph.task).name == "classes"


def training_neighbours(graph: Graph) -> float:
    """Return the mean number of training nodes among the neighbours of validation nodes; of all
    nodes outside training if there are none."""
    trained = torch.zeros(graph.num_nodes, dtype=torch.bool)
    trained[graph.train] = True
    nodes = graph.val if len(graph.val) else (~trained).nonzero()[:, 0]
    if not len(nodes):
        return 0.0
    count = 0
    for some in nodes.split(65_536):
        _, entries = graph.adjacency.entries(some)
        count += int(trained[graph.adjacency.indices.index_select(0, entries)].sum())
    return count / len(nodes)


def _rows_worth(model: ModelConfig, train: TrainConfig, graph: Graph) -> bool:
    if model.model == "mlp" or is_plugin_model(model.model):
        return False
    if graph.kinds.named or train.inductive or train.memory == "disk":
        return False
    if graph.num_nodes * model.hidden > _NUMBERS:
        return False
    return training_neighbours(graph) >= _NEIGHBOURS


def _patience(train: TrainConfig, graph: Graph) -> int:
    if train.patience is not None:
        return train.patience
    edges = scored_edges(graph)
    val = graph.val if edges is None else edges.predicted.val
    if not len(val) or train.schedule == "cosine" or train.select == "last":
        return 0
    visited = graph.train if edges is None else edges.predicted.train
    if train.pair_batches == "nodes":
        visited = torch.arange(graph.num_nodes)
    steps = math.ceil(len(visited) / train.batch_size)
    return max(_PATIENCE, math.ceil(_STEPS / steps / train.evaluate_every))


_Tried = tuple[ModelConfig, TrainConfig]


def _choose_model(
    model: ModelConfig, train: TrainConfig, graph: Graph, compare: bool
) -> tuple[ModelConfig, TrainConfig, str | None]:
    """compare: several models where labels are many"""
    usual = replace(model, model="graphsage"), train
    if not len(graph.val) or model.norm != "auto":
        return *usual, None
    if few_labels(graph):
        return _choose_for_few(*usual, graph)
    if compare and _are_compared(*usual, graph):
        return _choose_for_many(*usual, graph)
    return *usual, None


def _choose_for_few(
    model: ModelConfig, train: TrainConfig, graph: Graph
) -> tuple[ModelConfig, TrainConfig, str]:
    decayed = train if train.weight_decay is not None else replace(train, weight_decay=_DECAY)
    tried = ((model, train), (replace(model, model="gcn", norm="none"), decayed))
    scores = [_pilot(*each, graph, _PILOT)[-1] for each in tried]
    metric = find_target(graph, train).metric
    second = scores[0] < scores[1] + _MARGIN  # scores of classes: more is better
    texts = [metric.text(score) for score in scores]
    note = (
        f"few nodes have labels: {'gcn' if second else 'graphsage'} was chosen by {_PILOT} epochs "
        f"of each: validation {metric.title} {texts[0]} by graphsage, {texts[1]} by gcn without "
        f"norm and with weight decay"
    )
    return *tried[second], note


def is_usual(model: ModelConfig, train: TrainConfig, graph: Graph) -> bool:
    """True if a run is so long that short trainings of several models are a part of it, if
    validation nodes are enough to tell them apart, and if no setting that they would change was
    given."""
    given = (getattr(model, name) != value for name, value in _CHANGED.items())
    if any(given) or train.learning_rate != TrainConfig.learning_rate:
        return False
    if graph.kinds.named or train.memory == "disk" or train.epochs < 4 * _SHORT:
        return False
    return len(graph.val) >= _VALIDATION


def _are_compared(model: ModelConfig, train: TrainConfig, graph: Graph) -> bool:
    """True if an epoch costs little, too."""
    if not is_usual(model, train, graph):
        return False
    job = prepared(model, train, graph)
    name = job.config.estimator
    return all(cost.work <= _WORK for cost in job.costs([name]).values())


def _choose_for_many(
    model: ModelConfig, train: TrainConfig, graph: Graph
) -> tuple[ModelConfig, TrainConfig, str]:
    tried: dict[str, _Tried] = {"graphsage": (model, train)}
    for name, (of_model, of_train) in _OTHERS.items():
        tried[name] = replace(model, **of_model), replace(train, **of_train)
    metric = find_target(graph, train).metric
    scores: dict[str, float] = {}
    usual: list[float] = []
    for name, each in tried.items():
        found = _pilot(*each, graph, _SHORT, usual)
        usual, scores[name] = usual or found, found[-1]
    chosen = "graphsage"
    for name, score in scores.items():
        needed = moved(metric, scores[chosen], _GAIN if chosen == "graphsage" else 0.0)
        if name != chosen and metric.better(score, needed):
            chosen = name
    texts = ", ".join(f"{metric.text(score)} by {name}" for name, score in scores.items())
    note = (
        f"{chosen} was chosen by {_SHORT} epochs of each: validation {metric.title} {texts} "
        f"({setting('model', 'graphsage')} trains that at once)"
    )
    return *tried[chosen], note


def _pilot(
    model: ModelConfig, train: TrainConfig, graph: Graph, epochs: int, usual: Sequence[float] = ()
) -> list[float]:
    """usual: scores of the usual model's pilot"""
    return pilot(prepared(model, train, graph), epochs, usual, gain=_GAIN)
