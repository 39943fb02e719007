"""Candidates: settings that stand for `model="auto"`, between which a race or a search chooses.

The first is the usual one, which a run takes if nothing is compared. Others differ from it in what
no count of the graph decides:

- few labels (fewer than 100 training nodes per class, fewer than a tenth of all nodes): a GCN
  without norm under weight decay (Kipf and Welling's), and GraphSAGE
- more labels: GraphSAGE; a larger one without dropout, for labels that are hard to fit; a deeper
  residual model, for neighbours that are unlike the node
- links: pair_candidates.py
- rows with a time of their own: one layer, and one more linear layer on what it gives

No label of a validation or test node has a part in the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.runs.auto_settings import by_counts, few_labels
from vrgcn.runs.job import Job
from vrgcn.runs.pair_candidates import pair_candidates, pair_ways
from vrgcn.runs.settings import Candidate
from vrgcn.targets.scored import scored_edges
from vrgcn.training.config import TrainConfig

_DECAY = 5e-4
_FEW_GAIN = 0.02  # by which GraphSAGE has to be better: where it is at all, it is by far
_GAIN = 0.005  # of an error, four times
_VALIDATION = 50  # nodes from which on a validation score is more than chance
_LONG = 64  # epochs of a run from which on a race is a part of it
# The usual model's settings that others change; a run with other values keeps its model.
_CHANGED = {"hidden": 128, "layers": 2, "dense": 1, "skip": False, "jumping": "none"}
_OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a larger graphsage without dropout": ({"layers": 3, "hidden": 256, "dropout": 0.0}, {}),
    "a residual model": ({"model": "residual", "layers": 4}, {"learning_rate": 0.003}),
}


def candidates(model: ModelConfig, train: TrainConfig, graph: Graph) -> Sequence[Candidate]:
    """Return what `vrgcn train` chooses from on a graph, the usual settings first; only those if
    the model is given, or another setting that candidates differ in, if the run is short, if too
    few validation nodes or pairs could tell them apart, or if tables are kept on disk.

    graph: as the model is trained on it, with scaled features
    """
    edges = scored_edges(graph)
    if model.model == AUTO and edges is not None and edges.kind == "links":
        found = [_by_counts(each, graph) for each in pair_candidates(model, train, graph)]
    else:
        model = _of_rows(model, graph)
        usual = _by_counts(Candidate(model.settled().model, model, train), graph)
        found = _of_labels(usual, graph) if _compared(model, train, graph) else [usual]
    if train.memory == "disk":  # tables of several candidates would be in memory
        found = found[:1]
    return [_finished(each) for each in found]


def ways(chosen: Candidate, job: Job, given: TrainConfig, graph: Graph) -> list[Candidate]:
    """Return the ways to train a model of links that was chosen, that of its job first.

    given: the settings of the training, of which auto is left to choose
    """
    first, *others = pair_ways(chosen, job, given, graph)
    unsettled = (
        replace(each, train=replace(each.train, patience=given.patience)) for each in others
    )
    return [first, *(_finished(_by_counts(each, graph)) for each in unsettled)]


def _of_rows(model: ModelConfig, graph: Graph) -> ModelConfig:
    """The model of rows with a time of their own: the facts that they see are one hop away, and
    averages of features are computed once. Two layers take ten times as long there."""
    given = (model.layers, model.jumping) != (ModelConfig.layers, ModelConfig.jumping)
    if graph.dated is None or model.model != AUTO or given:
        return model
    return replace(model, layers=1, jumping="cat")


def _compared(model: ModelConfig, train: TrainConfig, graph: Graph) -> bool:
    """True if labels are predicted whose validation nodes can choose a model, and no setting that
    candidates change was given."""
    if model.model != AUTO or model.norm != "auto" or not len(graph.val):
        return False
    if few_labels(graph):
        return True
    given = [getattr(model, name) != value for name, value in _CHANGED.items()]
    given += [model.dropout is not None, train.learning_rate != TrainConfig.learning_rate]
    apart = graph.kinds.named
    return not any(given) and not apart and train.epochs >= _LONG and len(graph.val) >= _VALIDATION


def _of_labels(usual: Candidate, graph: Graph) -> list[Candidate]:
    sage = replace(usual.model, model="graphsage")
    if few_labels(graph):
        decay = _DECAY if usual.train.weight_decay is None else usual.train.weight_decay
        return [
            Candidate(
                "gcn",
                replace(sage, model="gcn", norm="none"),
                replace(usual.train, weight_decay=decay),
            ),
            Candidate("graphsage", sage, usual.train, _FEW_GAIN),
        ]
    return [
        usual,
        *(
            Candidate(name, replace(sage, **of_model), replace(usual.train, **of_train), _GAIN)
            for name, (of_model, of_train) in _OTHERS.items()
        ),
    ]


def _by_counts(candidate: Candidate, graph: Graph) -> Candidate:
    model, train = by_counts(candidate.model, candidate.train, graph)
    return replace(candidate, model=model, train=train)


def _finished(candidate: Candidate) -> Candidate:
    train = candidate.train
    return replace(
        candidate,
        model=candidate.model.settled(),
        train=replace(train, weight_decay=train.weight_decay or 0.0),
    )
