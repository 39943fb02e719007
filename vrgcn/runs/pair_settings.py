"""What `auto` stands for where links are predicted: the model, the kind of minibatches and the
estimator, chosen by pilots (pilots.py) on the validation pairs.

    the model       between kinds: GraphSAGE on features and learned rows, LightGCN, and GCN on
                    features; in a graph without kinds: GCN with cosines, the GAE of Kipf and
                    Welling, and LightGCN
    the minibatches and the estimator   of the chosen model: nodes or pairs, exact, ns or two-way

All pilots have the same counted work (`epoch_work`), that of some epochs of the usual model: one
whose epochs cost half as much has twice as many. Nothing is timed, so the same seed chooses the
same. A candidate that comes to no epoch within the work is not tried. Graphs whose epochs cost too
much for pilots have LightGCN, or GCN where nodes of one kind have features, with the estimator that
counted costs choose. docs/guides/links.md has the measurements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

from vrgcn.engine.estimators import find_estimator
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.runs.job import Job
from vrgcn.runs.pilots import moved, pilot, prepared
from vrgcn.targets.degree_features import has_degree_features
from vrgcn.targets.scored import pairs_of
from vrgcn.training.config import TrainConfig

_EPOCHS = 5  # of the usual model that a pilot is worth
_WORK = 1.5e6  # nodes that a pilot may cost at most: some seconds
_LEAST = 2  # epochs of the usual model that have to fit into that
_LONG = 30  # epochs of a run from which on pilots are a small part of it
_SHARE = 0.05  # of a time limit that a pilot may take
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


class _Made(NamedTuple):
    """Settings that a pilot tries, its job, what an epoch of it costs, and whether the model looks
    at neighbours."""

    model: ModelConfig
    train: TrainConfig
    job: Job
    work: float
    neighbours: bool


def settle_pairs(
    model: ModelConfig, train: TrainConfig, graph: Graph, *, compare: bool
) -> tuple[ModelConfig, TrainConfig, str | None]:
    """Return settings of the model and the training in place of model auto, and a note on what
    pilots found.

    compare: False: the usual model, without pilots
    """
    names = _possible(graph)
    settings = {name: _settings(name, model, train, graph) for name in names}
    usual = _made(*settings[names[0]], graph)
    if usual is None or _LEAST * usual.work > _WORK:
        return *_for_large(names, settings, graph), None
    if not compare or not _compared(train, graph):
        return *settings[names[0]], None
    found = {names[0]: usual}
    for name in names[1:]:
        made = _made(*settings[name], graph)
        if made is not None:
            found[name] = made
    budget = min(_WORK, _EPOCHS * usual.work)
    chosen, scores, curve = _best(found, budget, {})
    note = _told(chosen, scores, found[chosen].job)
    ways, first = _ways(found[chosen], train, graph)
    best, by_way, _ = _best(ways, budget, {first: curve})
    note += "; minibatches of " + _told(best, by_way, found[chosen].job)
    note = f"chosen by short trainings of equal work: {note}; {setting('model')} skips them"
    return ways[best].model, ways[best].train, note


def pair_candidates(
    model: ModelConfig, train: TrainConfig, graph: Graph
) -> list[tuple[str, ModelConfig, TrainConfig, float]]:
    """Return name, settings and necessary gain of each candidate, the usual one first; only that
    one if pairs are too many, or a run too short, to compare several."""
    names = _possible(graph)
    settings = {name: _settings(name, model, train, graph) for name in names}
    usual = _made(*settings[names[0]], graph)
    if usual is None or _LEAST * usual.work > _WORK:
        large = _for_large(names, settings, graph)
        return [(large[0].model, *large, 0.0)]
    if not _compared(train, graph):
        names = names[:1]
    return [(name, *settings[name], _GAIN * (name != names[0])) for name in names]


def epoch_work(job: Job) -> float | None:
    """Return the work of an epoch, in nodes that take as long: the nodes that it computes and the
    pairs that it scores. None if the job's estimator cannot train the model."""
    cost = job.costs([job.config.estimator]).get(job.config.estimator)
    return None if cost is None else cost.work + job.target.scoring_work(cost.steps)


def _possible(graph: Graph) -> tuple[str, ...]:
    """Names of the candidates that suit a graph, the usual one first."""
    if graph.kinds.named:
        features = any(graph.kinds.widths.values())
        return _OF_KINDS if features else _OF_ROWS
    bare = graph.num_features <= 1 or has_degree_features(graph)
    return _OF_BARE if bare else _OF_ONE_KIND


def _for_large(
    names: tuple[str, ...], settings: dict[str, tuple[ModelConfig, TrainConfig]], graph: Graph
) -> tuple[ModelConfig, TrainConfig]:
    """The settings without pilots: LightGCN computes the fewest nodes where nodes have rows. Its
    rows are wider than usual between kinds, unless a width was given."""
    if names[0] not in _OF_ROWS:
        return settings[names[0]]
    model, train = settings["lightgcn by lift"]
    if graph.kinds.named and model.embedding == ModelConfig.embedding:
        model = replace(model, embedding=_WIDE)
    return model, train


def _compared(train: TrainConfig, graph: Graph) -> bool:
    return train.epochs >= _LONG and len(pairs_of(graph).val) > 0 and train.memory != "disk"


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


def _made(model: ModelConfig, train: TrainConfig, graph: Graph) -> _Made | None:
    """The candidate of some settings; None if they cannot be trained."""
    try:
        job = prepared(model, train, graph)
        counted = epoch_work(job)
    except InputError:
        return None
    if counted is None:
        return None
    cost = job.costs([job.config.estimator])[job.config.estimator]
    return _Made(model, train, job, counted, cost.neighbours > 0)


def _best(
    found: dict[str, _Made], budget: float, known: dict[str, list[float]]
) -> tuple[str, dict[str, float], list[float]]:
    """Return the name of the best candidate, the scores of all, and the curve of the best.

    known: curves of candidates that need no pilot any more
    """
    curves = dict(known)
    chosen = next(iter(known), "")
    for name, candidate in found.items():
        epochs = int(budget / candidate.work)
        if name in known or (curves and not epochs):
            continue
        other = curves.get(chosen, [])
        curves[name] = pilot(candidate.job, max(epochs, 1), other, gain=_GAIN, share=_SHARE)
        metric = candidate.job.target.metric
        if not other or metric.better(curves[name][-1], moved(metric, other[-1], _GAIN)):
            chosen = name
    return chosen, {name: curve[-1] for name, curve in curves.items()}, curves[chosen]


def _ways(chosen: _Made, given: TrainConfig, graph: Graph) -> tuple[dict[str, _Made], str]:
    """The chosen model with each kind of minibatches and each estimator that may be tried, by what
    a note calls them; and the one that its pilot had.

    given: the training's settings, of which auto is left to choose
    """
    model, train, job = chosen[:3]
    first = (train.pair_batches, job.config.estimator)
    found = {_called(*first): chosen._replace(train=replace(train, estimator=first[1]))}
    for way, estimator in _WAYS:
        if given.pair_batches not in (AUTO, way) or given.estimator not in (AUTO, estimator):
            continue
        if estimator != first[1] and not chosen.neighbours:  # nothing to estimate
            continue
        size = batch_size_of(way, given, graph)
        config = replace(train, pair_batches=way, estimator=estimator, batch_size=size)
        made = None if (way, estimator) == first else _made(model, config, graph)
        if made is not None:
            found[_called(way, estimator)] = made
    return found, _called(*first)


def _called(way: str, estimator: str) -> str:
    return f"{way} by {estimator}"


def batch_size_of(way: Way, train: TrainConfig, graph: Graph) -> int:
    """Nodes or pairs in a minibatch, where none were given."""
    if train.batch_size != TrainConfig.batch_size:
        return train.batch_size
    count = graph.num_nodes if way == NODES else len(pairs_of(graph).train)
    return _clamped(count // _STEPS, *_SIZES[way])


def _told(chosen: str, scores: dict[str, float], job: Job) -> str:
    """The chosen one with its score, and those of the others."""
    metric = job.target.metric
    others = ", ".join(f"{name} {metric.text(scores[name])}" for name in scores if name != chosen)
    mine = f"{chosen}, validation {metric.title} {metric.text(scores[chosen])}"
    return f"{mine} ({others})" if others else mine
