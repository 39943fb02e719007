"""A search while it runs: what its parts share, and what was tried so far."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrgcn.baselines import RECIPES
from vrgcn.files.writing import remove_partial, write_text
from vrgcn.graph.graph import Graph
from vrgcn.inference import MODEL
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.folder import BASELINES, BEST, CHECKPOINTS, LEADERBOARD, TRIAL, TRIALS
from vrgcn.targets.predicted import predicts_labels
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import LabelMetric
from vrgcn.training.clock import Clock
from vrgcn.training.target import Target
from vrgcn.tuning.halving import Course, Halving
from vrgcn.tuning.leaderboard import Leaderboard, ranked
from vrgcn.tuning.members import Member, fitted_baseline
from vrgcn.tuning.reserve import reserve
from vrgcn.tuning.space import Search, TriedSettings
from vrgcn.tuning.standings import Standing
from vrgcn.tuning.study import COST, PARTS, TRAINED, Tried, courses, tried

if TYPE_CHECKING:
    import optuna

_MEMBERS = 40  # models, the best, from which an average is chosen
_RUNG, _SHORT = 4, 16  # parts of the patience, and of the epochs without one, of the first rung
_TIMED = 3  # computations of the metric that are timed
_LEAST = 3  # such rungs that a training has at least


@dataclass
class Session:
    """One search in its folder.

    graph: with all its nodes; what is tried sees `untested`, the graph without test nodes
    candidates: settings that are tried first, as they are: those that `vrgcn train` compares
    options: what config.toml of a run says beside its settings
    baselines: what was fitted, or scored by a rule, by name
    """

    graph: Graph
    target: Target
    candidates: Sequence[TriedSettings]
    search: Search
    study: optuna.Study
    folder: Path
    clock: Clock
    leaderboard: Leaderboard
    options: Mapping[str, Any]
    on_note: Callable[[str], None]

    def __post_init__(self) -> None:
        """Continue from what an earlier process left in the folder."""
        self.untested = self.graph.with_splits({"train": self.graph.train, "val": self.graph.val})
        self.baselines: dict[str, Tried] = {}
        for path in sorted((self.folder / BASELINES).glob("*")):
            fitted = fitted_baseline(path)
            if fitted is not None:
                self.baselines[path.name] = fitted
        self.clock.go_on(self.study.user_attrs.get("used", 0.0))
        self._starts: list[dict[str, Any]] = []
        self._portfolio: Iterator[dict[str, Any]] | None = None
        self.leaderboard.restore([*self.baselines.values(), *self.ended])
        for pattern in (BEST, f"{TRIALS}/{TRIAL}*", f"{BASELINES}/*"):
            for run in self.folder.glob(pattern):
                remove_partial(run)  # left by a killed process

    @property
    def ended(self) -> list[Tried]:
        """The trials that have ended, in their order."""
        return [trial for trial in tried(self.study) if trial.state != "running"]

    @property
    def metric(self) -> LabelMetric:
        """The score of labels, computed."""
        return find_task(self.graph.task).find_metric(self.search.given.train.metric)

    @cached_property
    def halving(self) -> Halving:
        """When trials are judged: first after a quarter of the evaluations without a better score
        that end a training."""
        train = self.search.given.train
        first = (train.patience or 0) * train.evaluate_every / _RUNG or train.epochs / _SHORT
        larger = self.target.better(1.0, 0.0)
        return Halving(max(1, min(math.ceil(first), train.epochs // _LEAST)), larger)

    @property
    def left(self) -> float:
        """The seconds for further trials, without those reserved for the end of the search."""
        limit = self.clock.limit
        return float("inf") if limit is None else limit - self.clock.used - reserve(self)

    def courses(self) -> list[Course]:
        """Return what the trials have come to. One without a checkpoint cannot be resumed."""
        return [
            replace(course, paused=course.paused and self._has_checkpoint(course.number))
            for course in courses(self.study)
        ]

    def _has_checkpoint(self, number: int) -> bool:
        return bool(checkpoints_in(self.trial_folder(number) / CHECKPOINTS))

    def settings_of(self, trial: optuna.Trial) -> TriedSettings:
        """Return the settings of a trial. Those of a candidate may differ from the given ones in
        settings that are not searched, too."""
        drawn = self.search.draw(trial)  # the study's own record of it
        return self._candidate(trial.number) or drawn

    def tried_settings(self, ended: Tried) -> TriedSettings:
        """Return the settings of a trial that has ended."""
        return self._candidate(ended.number) or self.search.changed(ended.values)

    def _candidate(self, number: int) -> TriedSettings | None:
        return self.candidates[number] if number < len(self.candidates) else None

    def start(
        self, place: int, settle: Callable[[TriedSettings], TriedSettings]
    ) -> dict[str, Any] | None:
        """Return the settings at a place of the portfolio, without those of the candidates; None
        after its end."""
        if self._portfolio is None:
            tried = [self.search.values_of(settle(each)) for each in self.candidates]
            self._portfolio = self.search.portfolio_values(settle, tried)
        self._starts += islice(self._portfolio, max(0, place + 1 - len(self._starts)))
        return self._starts[place] if place < len(self._starts) else None

    def predicted(self, cost: float, epochs: int) -> float:
        """Return the seconds that some epochs of a trial take, by their cost and the speed of the
        trials so far: what a trial takes before and after them is a sum of its own. 0 if there is
        no limit or no trial yet."""
        attrs = [frozen.user_attrs for frozen in self.study.get_trials(deepcopy=False)]
        noted = [each for each in attrs if each.get("epochs") and PARTS in each]
        paid = sum(each["epochs"] * each[COST] for each in noted)
        if self.clock.limit is None or not paid:
            return 0.0
        trained = sum(each[TRAINED] for each in noted)
        beside = sum(each["seconds"] for each in noted) - trained
        return epochs * cost * trained / paid + beside / sum(each[PARTS] for each in noted)

    @property
    def averages(self) -> bool:
        """True if the search ends with an average."""
        return predicts_labels(self.graph)

    @cached_property
    def metric_seconds(self) -> float:
        """The seconds of one computation of the metric for the validation nodes."""
        assert self.graph.labels is not None
        truth = self.graph.labels[self.graph.val]
        outputs = self.members()[0].validation_outputs(self.untested)
        clock = Clock()
        for _ in range(_TIMED):
            self.metric.compute(outputs, truth)
        return clock.used / _TIMED

    @property
    def smoothing_seconds(self) -> float:
        """The seconds in which one model was corrected and smoothed; 0 if none was."""
        smooth = [
            ended.seconds
            for name, ended in self.baselines.items()
            if name in RECIPES and RECIPES[name].smooth and ended.state == "complete"
        ]
        return min(smooth, default=0.0)

    def members(self) -> list[Member]:
        """Return the baselines and trials that have a model and a score, in order: a trial that was
        paused may still add to an average. Of many, those with the best scores."""
        members = [
            Member(ended, self.folder / BASELINES / name) for name, ended in self.baselines.items()
        ]
        members += [Member(each, self.trial_folder(each.number)) for each in tried(self.study)]
        kept = [member for member in members if (member.folder / MODEL).is_file()]
        best = ranked([member.tried for member in kept], self.target.better)[:_MEMBERS]
        return [member for member in kept if member.tried in best]

    def trial_folder(self, number: int) -> Path:
        return self.folder / TRIALS / f"{TRIAL}{number:03d}"

    def note(self, ended: Tried) -> None:
        """Show and record what was tried."""
        if ended.baseline is not None:
            self.baselines[ended.baseline] = ended
        self.leaderboard.ended(ended)
        self.study.set_user_attr("used", self.clock.used)
        self.write()

    def write(self, rows: Sequence[Standing] = ()) -> None:
        """Write the leaderboard. rows: of its end"""
        about = {
            "metric": self.target.metric.title,
            "seconds": self.clock.used,
            "baselines": [asdict(ended) for ended in self.baselines.values()],
            "trials": [asdict(trial) for trial in tried(self.study)],
            "standings": [asdict(row) for row in rows],
        }
        write_text(self.folder / LEADERBOARD, json.dumps(about, indent=1) + "\n")
