"""Candidates: settings that stand for `model="auto"`, between which a race or a search chooses.

The first is the usual one, which a run takes if nothing is compared. Others differ from it in what
no count of the graph decides:

- few labels (fewer than 100 training nodes per class, fewer than a tenth of all nodes): a GCN
  without norm under weight decay (Kipf and Welling's), and GraphSAGE
- more labels: GraphSAGE; a larger one without dropout, for labels that are hard to fit; a deeper
  residual model, for neighbours that are unlike the node
- links: see pair_settings.py

No label of a validation or test node has a part in the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.runs.auto_settings import by_counts, few_labels, is_usual
from vrgcn.runs.pair_settings import pair_candidates
from vrgcn.targets.scored import scored_edges
from vrgcn.training.config import TrainConfig

_DECAY = 5e-4
_FEW_GAIN = 0.02  # by which GraphSAGE has to be better: where it is at all, it is by far
_GAIN = 0.005
_OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a larger graphsage without dropout": ({"layers": 3, "hidden": 256, "dropout": 0.0}, {}),
    "a residual model": ({"model": "residual", "layers": 4}, {"learning_rate": 0.003}),
}


@dataclass(frozen=True)
class Candidate:
    """Settings of a run, with values in place of auto and None except for the estimator.

    name: what notes call it
    gain: by which its validation score has to be better than that of the first candidate
    """

    name: str
    model: ModelConfig
    train: TrainConfig
    gain: float = 0.0


def candidates(model: ModelConfig, train: TrainConfig, graph: Graph) -> Sequence[Candidate]:
    """Return what `vrgcn train` chooses from on a graph, the usual settings first; only those if
    the model is given, or another setting that candidates differ in, if the run is short, or if
    too few validation nodes or pairs could tell them apart.

    graph: as the model is trained on it, with scaled features
    """
    edges = scored_edges(graph)
    if model.model == AUTO and edges is not None and edges.kind == "links":
        found = [Candidate(*each) for each in pair_candidates(model, train, graph)]
        return [_finished(replace(c, **_counted(c, graph))) for c in found]
    given = model
    model, train = by_counts(model, train, graph)
    usual = Candidate(model.settled().model, model, train)
    if given.model != AUTO or not len(graph.val) or given.norm != "auto":
        return [_finished(usual)]
    if few_labels(graph):
        return [*map(_finished, _of_few(model, train))]
    if given.dropout is None and is_usual(given, train, graph):
        return [*map(_finished, (usual, *_of_many(model, train)))]
    return [_finished(usual)]


def _counted(candidate: Candidate, graph: Graph) -> dict[str, Any]:
    model, train = by_counts(candidate.model, candidate.train, graph)
    return {"model": model, "train": train}


def _of_few(model: ModelConfig, train: TrainConfig) -> list[Candidate]:
    decayed = train if train.weight_decay is not None else replace(train, weight_decay=_DECAY)
    return [
        Candidate("gcn", replace(model, model="gcn", norm="none"), decayed),
        Candidate("graphsage", replace(model, model="graphsage"), train, _FEW_GAIN),
    ]


def _of_many(model: ModelConfig, train: TrainConfig) -> list[Candidate]:
    usual = replace(model, model="graphsage")
    return [
        Candidate(name, replace(usual, **of_model), replace(train, **of_train), _GAIN)
        for name, (of_model, of_train) in _OTHERS.items()
    ]


def _finished(candidate: Candidate) -> Candidate:
    decay = candidate.train.weight_decay or 0.0
    return replace(
        candidate,
        model=candidate.model.settled(),
        train=replace(candidate.train, weight_decay=decay),
    )
