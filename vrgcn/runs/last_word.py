"""The last word of a training: the best of a few quick baselines, beside the trained model.

Baselines of labels have a tenth of the run's own work, or a second, the cheapest first; of edges,
simple rules are scored. Which are fitted is counted, not timed: the same run always has the same
ones. The best is chosen on the validation split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vrgcn.baselines import RECIPES
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.work import fit_seconds
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.inference.fitting import fit_recipe
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel
from vrgcn.runs.race import moved, score_noise
from vrgcn.tasks.metrics import LabelMetric, Metric

SHARE = 0.1  # of a run's own work
_SECOND = 1.5e5  # work of training (`Job.epoch_work`) in a second of one core
_LEAST = 1.0  # counted seconds that any run has for baselines
# Seconds of fits that take many small steps, on however small a graph.
_SMALL = {"link": 0.5, "linear": 1.0, "linear-2": 2.5, "smoothed": 2.5}
_IMPORT = 1.0  # counted seconds to load the package of a recipe
_LOUD = 0.2  # share of an error by which a baseline has to be better to be a warning


@dataclass(frozen=True)
class Rival:
    """A baseline or a simple rule, and what it scores.

    name: the model that `vrgcn train` takes for it; None: none
    scores: by split
    """

    name: str | None
    words: str
    scores: Mapping[str, float]


def quick_recipes(problem: Problem, work: float) -> Iterator[str]:
    """Yield the baselines that fit into a share of some work of training, the cheapest first."""
    left = max(_LEAST, SHARE * work / _SECOND)
    fitted: list[str] = []
    known = [n for n, each in RECIPES.items() if each.available and each.suits(problem.graph)]
    for name in sorted(known, key=lambda name: _seconds(name, problem, ())):
        seconds = _seconds(name, problem, fitted)
        if seconds <= left:
            left -= seconds
            fitted.append(name)
            yield name


def _seconds(name: str, problem: Problem, fitted: Sequence[str]) -> float:
    """Return the counted seconds of a recipe after others."""
    recipe, others = RECIPES[name], [RECIPES[other] for other in fitted]
    counted = fit_seconds(name, problem, fitted)
    if any(other.fit is recipe.fit for other in others):
        return counted
    loads = bool(recipe.packages) and not any(other.packages for other in others)
    return max(counted, _SMALL.get(name, 0.0)) + _IMPORT * loads


def best_baseline(
    graph: Graph,
    metric: LabelMetric,
    work: float,
    seed: int,
    doing: Callable[[str], None] = lambda what: None,
) -> Rival | None:
    """Return the quick baseline with the best validation score; None if none is quick enough.

    graph: features scaled; work: of the training; doing: called with what takes its time
    """
    if graph.labels is None or not len(graph.train) or not len(graph.val) or not graph.num_features:
        return None
    problem, best = Problem.of(graph, metric, seed), None
    for name in quick_recipes(problem, work):
        doing(f"fitting {RECIPES[name].words}")
        try:
            saved = fit_recipe(RECIPES[name], problem)
            scores = scores_of(saved, graph, metric)
        except (MemoryError, FloatingPointError, InputError):  # its own fault: the run is done
            continue
        if best is None or metric.better(scores["val"], best.scores["val"]):
            best = Rival(name, RECIPES[name].words, scores)
    return best


def scores_of(saved: SavedModel, graph: Graph, metric: LabelMetric) -> dict[str, float]:
    """Return the scores of a model of labels on the validation and the test nodes that there
    are."""
    assert graph.labels is not None
    nodes = {split: graph.split(split) for split in ("val", "test")}
    return {
        split: metric.compute(predict(saved, graph, some, kind="all"), graph.labels[some])
        for split, some in nodes.items()
        if len(some)
    }


def scores_text(metric: Metric, scores: Mapping[str, float]) -> str:
    """Return scores by split as a text."""
    return ", ".join(
        f"{'validation' if split == 'val' else split} {metric.title} {metric.text(score)}"
        for split, score in scores.items()
    )


def verdict(
    rivals: Sequence[Rival], metric: Metric, val: float | None, validated: int
) -> str | None:
    """Return what is to be said if one of some rivals is better than a trained model beyond the
    noise of its score; None if none is.

    val: validation score of the trained model; validated: nodes or edges that it is taken of
    """
    scored = [rival for rival in rivals if "val" in rival.scores]
    if val is None or not scored:
        return None
    best = scored[0]
    for rival in scored[1:]:
        best = rival if metric.better(rival.scores["val"], best.scores["val"]) else best
    score = best.scores["val"]
    if not metric.better(score, moved(metric, val, score_noise(metric, val, validated))):
        return None
    advice = f"; {setting('model', best.name)} takes it" if best.name else ""
    loud = metric.error and score < (1 - _LOUD) * val
    return (
        f"{'warning: ' if loud else ''}{best.words}: better than the model that was trained, "
        f"validation {metric.title} {metric.text(score)} against {metric.text(val)}{advice}"
    )
