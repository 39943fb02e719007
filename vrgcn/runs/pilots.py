"""Pilots: short trainings that are compared by their validation scores to choose settings.

A pilot's length is a number of epochs, never seconds, so that the same seed makes the same choice.
Test nodes and test pairs have no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.runs.building import build_network
from vrgcn.runs.job import Job, prepare
from vrgcn.targets.opening import find_target
from vrgcn.tasks.metrics import Metric
from vrgcn.training.clock import duration
from vrgcn.training.config import TrainConfig
from vrgcn.training.listener import Callbacks, StopTraining
from vrgcn.training.state import Epoch

_BEHIND = 0.02  # of another pilot's score, from half of the epochs on: the training ends there
_LATELY = 3  # evaluations whose gain, made once more, has to suffice from then on


def prepared(model: ModelConfig, train: TrainConfig, graph: Graph) -> Job:
    """Return the job of training a model of these settings."""
    target = find_target(graph, train)
    built = build_network(model.settled(), graph, target, train.seed)
    return prepare(built, graph, train, target)


def pilot(
    job: Job,
    epochs: int,
    other: Sequence[float] = (),
    *,
    gain: float = 0.0,
    share: float = 0.1,
) -> list[float]:
    """Return the best validation score so far after each evaluation of a short training.

    other: those of another pilot of the same work; from half of the epochs on, a training ends if
        it is far behind, or not on its way to a score by which it would be taken
    gain: by which it has to be better to be taken
    share: of the run's time limit that the pilot may take
    """
    train = job.config
    epochs = min(epochs, train.epochs)
    config = replace(
        train,
        epochs=epochs,
        warmup=min(train.warmup, epochs),
        diagnostics=0,
        on_nan="stop",
        time_limit=_part(train.time_limit, share),
    )
    metric, planned = job.target.metric, max(epochs // train.evaluate_every, 1)
    job.target.tested = False
    best: list[float] = []

    def on_epoch(point: Epoch) -> None:
        if point.val is None:
            return
        best.append(best[-1] if best and not metric.better(point.val, best[-1]) else point.val)
        if not other or len(best) < planned // 2:
            return
        then = other[min(max(len(best) * len(other) // planned, 1), len(other)) - 1]
        far = not metric.better(best[-1], moved(metric, then, -_BEHIND))
        if far or not on_its_way(metric, best, moved(metric, other[-1], gain)):
            raise StopTraining

    result = replace(job, config=config).train(Callbacks(on_epoch=on_epoch))
    return best or [float("nan") if result.val is None else result.val]


def on_its_way(metric: Metric, best: Sequence[float], needed: float) -> bool:
    """True if a score is good enough once it gains again what it gained in the last evaluations."""
    earlier = best[max(len(best) - 1 - _LATELY, 0)]
    return len(best) <= _LATELY or metric.better(2 * best[-1] - earlier, needed)


def moved(metric: Metric, score: float, gain: float) -> float:
    """Return a score that is better by a gain; an error by four times that share of itself."""
    return score * (1 - 4 * gain) if metric.error else score + gain


def _part(limit: str | None, share: float) -> str | None:
    return None if limit is None else f"{max(share * (duration(limit) or 0.0), 0.001):.3f}s"
