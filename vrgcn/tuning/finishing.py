"""The end of a search: the best single model and the average of the best, scored on the test nodes.

Nothing is trained again. The average is corrected and smoothed if that gains enough. Every choice
is made on the validation nodes; then the test nodes are scored, once for each of the two. Both are
calibrated on the validation nodes as single runs are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from vrgcn.baselines.problem import Problem
from vrgcn.files.parsing import read_json
from vrgcn.files.writing import new_file, remove_folder, write_text
from vrgcn.graph.graph import Graph
from vrgcn.inference import MODEL
from vrgcn.inference.average import Average, save_average
from vrgcn.inference.choose_smoothing import choose_smoothing
from vrgcn.inference.saved import SavedModel, save_model
from vrgcn.runs.calibration import calibrate_run
from vrgcn.runs.card import Scored, write_card
from vrgcn.runs.card_facts import facts_of
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.folder import AVERAGED, BEST, CONFIG, METRICS, RESULT, read_config
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import LabelMetric, Metric
from vrgcn.tuning.caruana import choose_robustly
from vrgcn.tuning.members import Member, standard_error
from vrgcn.tuning.standings import Standing, standings
from vrgcn.tuning.study import Tried

S = TypeVar("S", bound=SavedModel)

_NEAR = 4.0  # standard errors behind the best within which a member counts, of few nodes
_GAIN = 0.25  # standard errors that a smoothing has to gain: it is the best of a dozen


@dataclass(frozen=True)
class Scores:
    """Scores of a model. val, error: validation score and its standard error; test: None without
    test nodes"""

    metric: Metric
    val: float
    error: float | None
    test: float | None

    def __str__(self) -> str:
        test = "no test score"
        if self.test is not None:
            test = f"test {self.metric.title} {self.metric.text(self.test)}"
        error = "" if self.error is None else f" ± {self.metric.text(self.error)}"
        return f"{test} (validation {self.metric.text(self.val)}{error})"


@dataclass(frozen=True)
class Finished:
    """best: the best single model, loaded, and its scores; average: the same of the average, None
        where nothing is averaged
    rows: of the leaderboard
    """

    best: Member
    saved: SavedModel
    scores: Scores
    average: Average | None
    average_scores: Scores | None
    rows: list[Standing]


class Finishing:
    """graph: with all its nodes; untested: without test nodes
    score: returns the test score of a model; None without test nodes or pairs
    options: what config.toml of a run says beside its settings
    planned: epochs of a trial that is not cut short
    """

    def __init__(
        self,
        graph: Graph,
        untested: Graph,
        metric: Metric,
        score: Callable[[SavedModel], float | None],
        folder: Path,
        options: Mapping[str, Any],
        planned: int,
    ) -> None:
        self.graph = graph
        self.untested = untested
        self.metric = metric
        self.score = score
        self.folder = folder
        self.options = options
        self.planned = planned
        self.task = find_task(graph.task)

    def run(self, members: Sequence[Member], best: Member, metric: LabelMetric) -> Finished:
        """Choose the average, write both folders, and score them. The result of the best comes
        last: with it the search has finished.

        best: the best of the members; metric: computes the score from labels
        """
        assert self.graph.labels is not None
        truth = self.graph.labels[self.graph.val]
        outputs = {member.name: member.validation_outputs(self.untested) for member in members}
        errors = {name: standard_error(metric, out, truth) for name, out in outputs.items()}
        shares = {name: self.task.shares(found) for name, found in outputs.items()}
        error = max((found for found in errors.values() if found is not None), default=0.0)
        chosen = choose_robustly(
            shares,
            truth,
            lambda mean, labels: metric.compute(self.task.from_shares(mean), labels),
            metric.better,
            lambda score, best: abs(best - score) <= _NEAR * error,
        )
        kept = {member.name: member.load() for member in members if member.name in chosen.weights}
        average = Average.of_members(kept, chosen.weights, best=str(self.folder / BEST))
        mean = torch.stack([w * shares[name] for name, w in chosen.weights.items()]).sum(0)
        spread = standard_error(metric, self.task.from_shares(mean), truth)
        average, val = self._smoothed(average, chosen.score, spread, metric)
        averaged = self._tested(average, Scores(self.metric, val, spread, None))
        average = self._calibrated(average)
        self._write_average(average, averaged)
        rows = standings(
            [
                (member.tried, errors[member.name], chosen.weights.get(member.name, 0.0))
                for member in members
            ],
            (val, spread),
            self.metric,
            self.planned,
        )
        assert best.tried.val is not None
        scores = Scores(self.metric, best.tried.val, errors[best.name], None)
        saved = best.load()
        return Finished(best, saved, self._write_best(best, saved, scores), average, averaged, rows)

    def run_edges(self, members: Sequence[Member], best: Member, rules: list[Tried]) -> Finished:
        """Write the best model of pairs and score it; nothing is averaged.

        rules: simple ones, for the leaderboard
        """
        every = [*(member.tried for member in members), *rules]
        rows = standings([(each, None, 0.0) for each in every], None, self.metric, self.planned)
        assert best.tried.val is not None
        scores, saved = Scores(self.metric, best.tried.val, None, None), best.load()
        return Finished(best, saved, self._write_best(best, saved, scores), None, None, rows)

    def _smoothed(
        self, average: Average, val: float, error: float | None, metric: LabelMetric
    ) -> tuple[Average, float]:
        """Return the average, corrected and smoothed if the validation score gains more than a
        part of its standard error, and its score."""
        problem = Problem.of(self.untested, metric)
        found = choose_smoothing(average, problem)
        gain = found.alone - found.val if metric.error else found.val - found.alone
        if found.smoothing is None or gain <= _GAIN * (error or 0.0):
            return average, val
        return replace(average, smoothing=found.smoothing), found.val

    def _write_best(self, member: Member, saved: SavedModel, scores: Scores) -> Scores:
        folder = self.folder / BEST
        folder.mkdir(exist_ok=True)
        for name in (CONFIG, METRICS):
            if (member.folder / name).is_file():
                with open(member.folder / name, "rb") as source, new_file(folder / name) as target:
                    shutil.copyfileobj(source, target)
        scores = self._tested(saved, scores)
        saved = self._calibrated(saved)
        save_model(saved, folder / MODEL)
        result = read_json(member.folder / RESULT) | {"test": scores.test}
        self._write_card(folder, read_config(folder), scores, saved, result["epoch"])
        write_text(folder / RESULT, json.dumps(result, indent=2) + "\n")
        return scores

    def _calibrated(self, saved: S) -> S:
        """Return a model calibrated on the validation nodes, as a single run is; the test nodes
        are scored before, and play no part."""
        wanted = str(self.options.get("calibrate", "auto"))
        found = calibrate_run(saved, self.untested, wanted, lambda _: None)
        assert isinstance(found, type(saved))
        return found

    def _write_average(self, average: Average, scores: Scores) -> None:
        folder = self.folder / AVERAGED
        if folder.is_dir():
            remove_folder(folder)
        folder.mkdir()
        config = {**self.options, "average": len(average.weights)}
        write_settings(folder / CONFIG, config)
        save_average(average, folder)
        self._write_card(folder, config, scores, average)
        result = {"metric": self.metric.title, "val": scores.val, "test": scores.test}
        result |= {"epoch": 0, "seconds": 0.0, "evaluation_seconds": 0.0}  # as those of runs have
        write_text(folder / RESULT, json.dumps(result, indent=2) + "\n")

    def _write_card(
        self,
        folder: Path,
        config: Mapping[str, Any],
        scores: Scores,
        saved: SavedModel,
        epoch: int = 0,
    ) -> None:
        scored = Scored(self.metric.title, scores.val, scores.test, epoch, scores.error)
        write_card(folder, config, scored, saved, facts_of(self.graph))

    def _tested(self, saved: SavedModel, scores: Scores) -> Scores:
        return replace(scores, test=self.score(saved))
