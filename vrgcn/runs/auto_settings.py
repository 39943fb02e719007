"""The settings of a run that depend on its graph: what auto and None stand for.

- few labels (fewer than 100 training nodes per class, fewer than a tenth of all nodes): two models
  are trained for a moment, GraphSAGE as usual and a GCN without norm under weight decay (Kipf and
  Welling's); GraphSAGE is taken if its validation score is better by 0.02
- learned rows: where nodes outside training have 5 or more training nodes among their neighbours
- dropout: 0.5, or 0.2 where there are fewer than 100 feature columns
- patience: 10 evaluations, or as many as make 100 steps; never with a cosine schedule, with
  `select` "last" and without validation nodes

Labels of validation nodes choose between the two models, and nothing else. `docs/training.md` has
the measurements behind the numbers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.runs.job import prepare
from vrgcn.tasks import find_task
from vrgcn.training.config import TrainConfig
from vrgcn.training.interval import duration
from vrgcn.training.objective import build_objective

_PER_CLASS, _SHARE = 100, 0.1  # few labels: fewer training nodes per class, and of all nodes
_DECAY = 5e-4
_PILOT = 50  # epochs of a training that is compared
_MARGIN = 0.02  # by which GraphSAGE has to be better: where it is at all, it is by far
_NEIGHBOURS = 5.0  # training neighbours from which on learned rows are worth their time
_NUMBERS = 1 << 23  # numbers of a table of learned rows at most: its optimiser keeps three
_COLUMNS = 100  # feature columns from which on half of them can be dropped
_PATIENCE, _STEPS = 10, 100  # evaluations, and steps, without a better score


def settle(
    model: ModelConfig, train: TrainConfig, graph: Graph
) -> tuple[ModelConfig, TrainConfig, str | None]:
    """Return the settings of the model and the training with values in place of auto and None, and
    a note on a choice that was made by training.

    graph: as the model is trained on it, with scaled features
    """
    train = replace(train, patience=_patience(train, graph))
    if model.dropout is None:
        wide = graph.num_features >= _COLUMNS or graph.kinds is not None
        model = replace(model, dropout=0.5 if wide else 0.2)
    if model.learned_rows is None:
        model = replace(model, learned_rows=_rows_worth(model, train, graph))
    note = None
    if model.model == "auto":
        model, train, note = _choose_model(model, train, graph)
    decay = 0.0 if train.weight_decay is None else train.weight_decay
    return model.settled(), replace(train, weight_decay=decay), note


def few_labels(graph: Graph) -> bool:
    """True if few nodes have the label that they are trained for, one class each."""
    few = len(graph.train) < min(_PER_CLASS * graph.num_classes, _SHARE * graph.num_nodes)
    return few and graph.kinds is None and find_task(graph.task).name == "classes"


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
    if model.model == "mlp" or graph.kinds is not None or train.inductive or train.memory == "disk":
        return False
    if graph.num_nodes * model.hidden > _NUMBERS:
        return False
    return training_neighbours(graph) >= _NEIGHBOURS


def _patience(train: TrainConfig, graph: Graph) -> int:
    if train.patience is not None:
        return train.patience
    if not len(graph.val) or train.schedule == "cosine" or train.select == "last":
        return 0
    steps = math.ceil(len(graph.train) / train.batch_size)
    return max(_PATIENCE, math.ceil(_STEPS / steps / train.evaluate_every))


def _choose_model(
    model: ModelConfig, train: TrainConfig, graph: Graph
) -> tuple[ModelConfig, TrainConfig, str | None]:
    usual = replace(model, model="graphsage")
    if not few_labels(graph) or not len(graph.val) or model.norm != "auto":
        return usual, train, None
    decayed = train if train.weight_decay is not None else replace(train, weight_decay=_DECAY)
    tried = ((usual, train), (replace(model, model="gcn", norm="none"), decayed))
    scores = [_pilot(*each, graph) for each in tried]
    metric = build_objective(graph, train).metric
    second = scores[0] < scores[1] + _MARGIN  # scores of classes: more is better
    texts = [metric.text(score) for score in scores]
    note = (
        f"few nodes have labels: {'gcn' if second else 'graphsage'} was chosen by {_PILOT} epochs "
        f"of each: validation {metric.title} {texts[0]} by graphsage, {texts[1]} by gcn without "
        f"norm and with weight decay"
    )
    return *tried[second], note


def _pilot(model: ModelConfig, train: TrainConfig, graph: Graph) -> float:
    """Return the best validation score of a short training."""
    from vrgcn.costs.order import build_for

    config = replace(
        train,
        epochs=min(_PILOT, train.epochs),
        warmup=min(train.warmup, _PILOT, train.epochs),
        diagnostics=0,
        on_nan="stop",
        time_limit=_tenth(train.time_limit),
    )
    objective = build_objective(graph, config)
    built = build_for(model.settled(), graph, objective.outputs, config.seed)
    val: Any = prepare(built, graph, config, objective=objective).train().val
    return float(val)


def _tenth(limit: str | None) -> str | None:
    return None if limit is None else f"{max(0.1 * (duration(limit) or 0.0), 0.001):.3f}s"
