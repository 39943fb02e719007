"""Settings of a run that counts of its graph decide, in place of None.

- learned rows: where nodes outside training have 5 or more training nodes among their neighbours
- centred features: with many labels, without weight decay and learned rows, which start fast
- dropout: 0.5, or 0.2 where there are fewer than 100 feature columns
- patience: 10 evaluations, or as many as make 100 steps (30 over relations); never with a cosine
  schedule, with `select` "last" and without validation nodes or pairs

Between models a race decides: candidates.py.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.models.plugins import is_plugin_model
from vrgcn.targets.scored import scored_edges
from vrgcn.tasks import find_task
from vrgcn.training.config import TrainConfig

_PER_CLASS, _SHARE = 100, 0.1  # few labels: fewer training nodes per class, and of all nodes
_NEIGHBOURS = 5.0  # training neighbours from which on learned rows are worth their time
_NUMBERS = 1 << 23  # numbers of a table of learned rows at most: its optimiser keeps three
_COLUMNS = 100  # feature columns from which on half of them can be dropped
_PATIENCE, _STEPS = 10, 100  # evaluations, and steps, without a better score
_OF_RELATIONS = 30  # the same steps where labels are learned over relations: each takes long


def by_counts(
    model: ModelConfig, train: TrainConfig, graph: Graph
) -> tuple[ModelConfig, TrainConfig]:
    """Return the settings with the patience, the dropout, the learned rows and the centring of
    features that counts of the graph decide."""
    train = replace(train, patience=_patience(train, graph))
    if model.dropout is None:
        wide = graph.num_features >= _COLUMNS or graph.kinds.named
        model = replace(model, dropout=0.5 if wide else 0.2)
    if model.learned_rows is None:
        model = replace(model, learned_rows=_rows_worth(model, train, graph))
    if model.centre_features is None:
        other = few_labels(graph) or train.weight_decay or model.learned_rows
        model = replace(model, centre_features=not other)
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
    enough = _OF_RELATIONS if edges is None and graph.kinds.named else _STEPS
    return max(_PATIENCE, math.ceil(enough / steps / train.evaluate_every))
