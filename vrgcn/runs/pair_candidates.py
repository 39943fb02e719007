"""Candidates where links are predicted: models, then ways to train the one that won.

    models   between kinds: GraphSAGE on features and learned rows, LightGCN, and GCN on features;
             in a graph without kinds: GCN with cosines, the GAE of Kipf and Welling, and LightGCN
    ways     minibatches of nodes or of pairs, by exact training, ns or two-way

Graphs whose epochs cost too much have one candidate: LightGCN, or GCN where nodes of one kind have
features, with the estimator that counted costs choose. docs/results/links.md has the measurements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from vrgcn.engine.estimators import find_estimator
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.runs.job import Job, job_of
from vrgcn.runs.settings import Candidate
from vrgcn.targets.degree_features import has_degree_features
from vrgcn.targets.scored import pairs_of
from vrgcn.training.config import TrainConfig

_WORK = 7.5e5  # nodes that an epoch of the usual model may cost for others to be compared with it
_LONG = 30  # epochs of a run from which on a race is a part of it
_GAIN = 0.002  # by which another candidate has to be better than the one before it
_WIDE = 128  # numbers in a learned row where there are very many pairs: on gowalla better than 64
DROPOUT = 0.3
Way = Literal["nodes", "pairs"]
NODES: Way = "nodes"
PAIRS: Way = "pairs"
# Minibatches and estimators that are compared, and the smallest and largest size of minibatches.
_WAYS: tuple[tuple[Way, str], ...] = (
    (NODES, "exact"),
    (NODES, "ns"),
    (NODES, "two-way"),
    (PAIRS, "exact"),
    (PAIRS, "ns"),
)
_SIZES = {NODES: (512, 2048), PAIRS: (512, 4096)}
_STEPS = 16  # steps of an epoch below which a minibatch is not made larger
_NEGATIVES = (512, 4096)
_RANKED, _RARELY = 2e8, 5  # pairs from whose rankings on evaluations are rare, and how rare

# A partner has to score above all shared negatives, by the angle between embeddings.
SOFTMAX = {"decoder": "cosine", "loss": "softmax", "negative_sampling": "shared"}
_CANDIDATES: dict[str, dict[str, Any]] = {
    "graphsage with learned rows": {
        "model": "graphsage", "layers": 1, "node_embeddings": True, "dropout": DROPOUT, **SOFTMAX,
    },
    "lightgcn by lift": {
        "model": "lightgcn", "layers": 3, **SOFTMAX, "decoder": "lift", "learning_rate": 0.02,
    },
    "gcn": {"model": "gcn", "dropout": DROPOUT, **SOFTMAX},
    "gae": {"model": "gcn", "dropout": 0.0},
}  # fmt: skip
_OF_ROWS = ("graphsage with learned rows", "lightgcn by lift")
_OF_KINDS = (*_OF_ROWS, "gcn")
_OF_ONE_KIND = ("gcn", "gae", "lightgcn by lift")
_OF_BARE = ("lightgcn by lift", "gcn")


def pair_candidates(model: ModelConfig, train: TrainConfig, graph: Graph) -> list[Candidate]:
    """Return the models that suit a graph, the usual one first; only one if pairs are too many, or
    a run too short, to compare several."""
    names = _possible(graph)
    tried = [
        Candidate(name, *_settings(name, model, train, graph), _GAIN * (name != names[0]))
        for name in names
    ]
    if _is_large(tried[0], graph):
        return [_for_large(tried, graph)]
    return tried if _compared(train, graph) else tried[:1]


def pair_ways(chosen: Candidate, job: Job, given: TrainConfig, graph: Graph) -> list[Candidate]:
    """Return the chosen model with each kind of minibatches and each estimator, that of its job
    first.

    given: the training's settings, of which auto is left to choose
    """
    first = (chosen.train.pair_batches, job.config.estimator)
    neighbours = job.costs([first[1]])[first[1]].neighbours > 0
    found = [replace(chosen, name=_called(*first), train=replace(chosen.train, estimator=first[1]))]
    for way, estimator in _WAYS:
        if given.pair_batches not in (AUTO, way) or given.estimator not in (AUTO, estimator):
            continue
        if estimator != first[1] and not neighbours:  # nothing to estimate
            continue
        if (way, estimator) != first:
            size = batch_size_of(way, given, graph)
            train = replace(chosen.train, pair_batches=way, estimator=estimator, batch_size=size)
            found.append(Candidate(_called(way, estimator), chosen.model, train, _GAIN))
    return found


def _possible(graph: Graph) -> tuple[str, ...]:
    """Names of the candidates that suit a graph, the usual one first."""
    if graph.kinds.named:
        features = any(graph.kinds.widths.values())
        return _OF_KINDS if features else _OF_ROWS
    bare = graph.num_features <= 1 or has_degree_features(graph)
    return _OF_BARE if bare else _OF_ONE_KIND


def _is_large(usual: Candidate, graph: Graph) -> bool:
    """True if an epoch of the usual model costs too much to compare it with others, or cannot be
    trained."""
    try:
        job = job_of(usual, graph)
    except InputError:
        return True
    cost = job.costs([job.config.estimator]).get(job.config.estimator)
    return cost is None or cost.work + job.target.scoring_work(cost.steps) > _WORK


def _for_large(tried: list[Candidate], graph: Graph) -> Candidate:
    """The only candidate of a large graph: LightGCN computes the fewest nodes where nodes have
    rows. Its rows are wider than usual between kinds, unless a width was given."""
    light = next(each for each in tried if each.model.model == "lightgcn")
    if tried[0].name not in _OF_ROWS:
        return tried[0]
    if graph.kinds.named and light.model.embedding == ModelConfig.embedding:
        light = replace(light, model=replace(light.model, embedding=_WIDE))
    return light


def _compared(train: TrainConfig, graph: Graph) -> bool:
    return train.epochs >= _LONG and len(pairs_of(graph).val) > 0


def _settings(
    name: str, model: ModelConfig, train: TrainConfig, graph: Graph
) -> tuple[ModelConfig, TrainConfig]:
    """The settings of a candidate; those that were given hold for each of them."""
    changes = dict(_CANDIDATES[name])
    if model.dropout is not None:
        changes.pop("dropout", None)
    if train.learning_rate != TrainConfig.learning_rate:
        changes.pop("learning_rate", None)
    if changes.get("negative_sampling") == "shared":
        changes["negatives"] = _clamped(graph.num_nodes // _STEPS, *_NEGATIVES)
    way = _way(changes["model"], train, graph)
    changes |= {"pair_batches": way, "batch_size": batch_size_of(way, train, graph)}
    changes["evaluate_every"] = _evaluated(train, graph)
    of_train = {key: changes.pop(key) for key in list(changes) if hasattr(train, key)}
    settled = replace(model, learned_rows=False, **changes)
    if settled.dropout is None:
        settled = replace(settled, dropout=0.0)
    return settled, replace(train, **of_train)


def _way(model: str, train: TrainConfig, graph: Graph) -> Way:
    """The minibatches that a candidate has first: relational models are computed by pairs, unless
    the given estimator cannot."""
    if train.pair_batches != AUTO:
        return NODES if train.pair_batches == NODES else PAIRS
    gradients = train.estimator != AUTO and find_estimator(train.estimator).gradient_history
    return NODES if model == "lightgcn" or not graph.kinds.named or gradients else PAIRS


def _evaluated(train: TrainConfig, graph: Graph) -> int:
    """Epochs between evaluations: rankings of very many pairs take longer than an epoch."""
    pairs = pairs_of(graph)
    every = TrainConfig.evaluate_every
    if train.evaluate_every != every or train.metric in (None, "auc", "ap"):
        return train.evaluate_every
    return _RARELY if len(pairs.sources) * len(pairs.targets) > _RANKED else every


def _clamped(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _called(way: str, estimator: str) -> str:
    return f"{way} by {estimator}"


def batch_size_of(way: Way, train: TrainConfig, graph: Graph) -> int:
    """Nodes or pairs in a minibatch, where none were given."""
    if train.batch_size != TrainConfig.batch_size:
        return train.batch_size
    count = graph.num_nodes if way == NODES else len(pairs_of(graph).train)
    return _clamped(count // _STEPS, *_SIZES[way])
