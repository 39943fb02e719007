"""Probabilities that can be trusted: what a calibration does on nodes that it was not fitted on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.inference.calibration import NOT_BETTER, Calibration, f1_score
from vrgcn.inference.regions import Covered, by_degree, coverage_of
from vrgcn.inference.saved import SavedModel
from vrgcn.tasks import find_task
from vrgcn.tasks.reliability import Reliability, brier, log_losses, reliability
from vrgcn.tasks.task import Task

COVERAGES = (0.8, 0.9, 0.95)
_MOST_CLASSES = 20  # whose coverage is shown


@dataclass(frozen=True)
class Threshold:
    """Scores of the second of two classes, predicted from a probability on.

    plain_f1: F1 if the more probable class is predicted instead
    """

    threshold: float
    precision: float
    recall: float
    f1: float
    plain_f1: float


@dataclass(frozen=True)
class Trust:
    """What can be said about probabilities, sets and intervals of some nodes.

    reliability, brier, log_loss: with the calibration; None for numbers
    plain, plain_brier, plain_log_loss: before it; the same if the temperature is 1
    coverage: promised coverage, and what was found; a coverage that too few nodes can promise is
        left out
    groups: found coverage by class and by degree, of `promised`
    threshold: of two classes
    """

    temperature: float
    reliability: Reliability | None
    plain: Reliability | None
    brier: float | None
    plain_brier: float | None
    log_loss: float | None
    plain_log_loss: float | None
    coverage: dict[float, Covered]
    promised: float | None
    groups: list[Covered]
    threshold: Threshold | None

    def as_dict(self) -> dict[str, Any]:
        """The entries of a file."""
        held, plain = self.reliability, self.plain
        return {
            "temperature": self.temperature,
            "calibration_error": None if held is None else held.error,
            "calibration_error_before": None if plain is None else plain.error,
            "brier": self.brier,
            "brier_before": self.plain_brier,
            "log_loss": self.log_loss,
            "log_loss_before": self.plain_log_loss,
            "coverage": {f"{c:g}": asdict(covered) for c, covered in self.coverage.items()},
            "coverage_groups": [asdict(covered) for covered in self.groups],
            "threshold": None if self.threshold is None else asdict(self.threshold),
        }

    def lines(self, split: str) -> list[str]:
        """Return sentences for a person. split: that the nodes belong to"""
        sentences = [self._probabilities()] if self.reliability is not None else []
        for promised, one in self.coverage.items():
            size = f"{one.size:.3g}"
            what = f"intervals are {size} wide"
            if self.reliability is not None:
                what = f"sets hold {size} {'class' if size == '1' else 'classes'}"
            sentences.append(
                f"{what} on average and cover {one.share:.1%} of {split} nodes (promised: "
                f"{promised:.0%})"
            )
        if self.threshold is not None:
            t = self.threshold
            sentences.append(
                f"second class from probability {t.threshold:.3f} on: precision {t.precision:.3f}, "
                f"recall {t.recall:.3f}, F1 {t.f1:.3f} ({t.plain_f1:.3f} from 0.5 on)"
            )
        return sentences

    def _probabilities(self) -> str:
        assert self.reliability is not None
        assert self.plain is not None
        numbers = [
            ("log loss", self.log_loss, self.plain_log_loss),
            ("Brier score", self.brier, self.plain_brier),
            ("calibration error", self.reliability.error, self.plain.error),
        ]
        if self.temperature == 1:
            scores = ", ".join(f"{name} {after:.4f}" for name, after, _ in numbers)
            return f"probabilities are those of the model ({NOT_BETTER}): {scores}"
        scores = ", ".join(f"{name} {after:.4f} ({before:.4f})" for name, after, before in numbers)
        return f"at temperature {self.temperature:.3g} (and without it): {scores}"


def trust_of(
    saved: SavedModel, graph: Graph, outputs: Tensor, labels: Tensor, nodes: Tensor
) -> Trust | None:
    """What the calibration of a model does on some nodes; None if it has none, or was fitted on one
    of them.

    outputs: calibrated; labels: in the model's classes; both of all nodes of the graph
    """
    calibration = saved.calibration
    if calibration is None or not len(nodes) or bool(torch.isin(nodes, graph.val).any()):
        return None
    task = find_task(saved.task)
    given, truth = outputs[nodes], labels[nodes]
    curves: list[Reliability | None] = [None]
    scores: list[float | None] = [None]
    losses: list[float | None] = [None]
    if task.has_classes:
        both = [given] if calibration.temperature == 1 else [given, calibration.undone(given)]
        chances = [task.probabilities(o) for o in both]
        curves = [reliability(p, truth) for p in chances]
        scores = [brier(p, truth) for p in chances]
        losses = [float(log_losses(o, truth).mean()) for o in both]
    coverage, promised, groups = _coverage(task, calibration, saved, graph, given, truth, nodes)
    return Trust(
        calibration.temperature,
        curves[0],
        curves[-1],
        scores[0],
        scores[-1],
        losses[0],
        losses[-1],
        coverage,
        promised,
        groups,
        _threshold(task, calibration, given, truth),
    )


def _coverage(
    task: Task,
    calibration: Calibration,
    saved: SavedModel,
    graph: Graph,
    outputs: Tensor,
    labels: Tensor,
    nodes: Tensor,
) -> tuple[dict[float, Covered], float | None, list[Covered]]:
    covered: dict[float, Covered] = {}
    promised, groups = None, []
    for wanted in COVERAGES if len(calibration.scores) else ():
        try:
            region = calibration.region(task, wanted)
        except InputError:  # too few nodes to promise as much
            continue
        covered[wanted] = coverage_of(task, outputs, labels, region, {})[0]
        if wanted == 0.9:
            degrees = graph.adjacency.counts[nodes]
            named = _by_class(task, saved, labels) | by_degree(degrees)
            promised, groups = wanted, coverage_of(task, outputs, labels, region, named)[1:]
    return covered, promised, groups


def _by_class(task: Task, saved: SavedModel, labels: Tensor) -> dict[str, Tensor]:
    if not task.has_classes:
        return {}
    counts = torch.bincount(labels)
    largest = counts.argsort(descending=True, stable=True)[:_MOST_CLASSES].sort().values.tolist()
    names = saved.classes or [str(c) for c in range(len(counts))]
    return {f"class {names[c]}": labels == c for c in largest}


def _threshold(
    task: Task, calibration: Calibration, outputs: Tensor, labels: Tensor
) -> Threshold | None:
    if calibration.threshold is None:
        return None
    chosen = task.probabilities(outputs.double())[:, 1] >= calibration.threshold
    actual = labels == 1
    hits = int((chosen & actual).sum())
    return Threshold(
        calibration.threshold,
        hits / max(int(chosen.sum()), 1),
        hits / max(int(actual.sum()), 1),
        f1_score(chosen, actual),
        f1_score(outputs.argmax(1) == 1, actual),
    )
