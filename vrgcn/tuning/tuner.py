"""A bounded search for models, on validation alone: baselines, then networks, then their average.

Baselines come first and have a part of the time. Trials of networks are drawn by Optuna. The first
is of the settings that were given and is never pruned, so that what is found is never below them on
the validation nodes. A trial's graph has no test nodes: they can have no part in the choice. Of the
others, those whose best validation score so far is not in the better half of all trials that came
as far are pruned, after a sixth, a third and two thirds of the cost (successive halving). A trial
or a baseline that diverges or does not fit in memory has failed, with a reason, and the search goes
on.

Where edges are predicted, simple rules take the place of baselines, and nothing is averaged:
embeddings of different networks have no common axes, scores of a decoder no common scale.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from vrgcn.baselines import RECIPES, Recipe
from vrgcn.baselines.past import past_of
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.work import cheap_first, fit_seconds
from vrgcn.costs.choice import choose_estimator, work
from vrgcn.files.memory import free_memory, is_out_of_memory
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import AUTO
from vrgcn.files.sizes import bytes_text
from vrgcn.files.writing import remove_folder, remove_partial, write_text
from vrgcn.graph.graph import Graph
from vrgcn.inference import MODEL
from vrgcn.inference.average import Average
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel
from vrgcn.runs.auto_settings import few_labels
from vrgcn.runs.building import build_network
from vrgcn.runs.folder import (
    AVERAGED,
    BASELINES,
    BEST,
    CHECKPOINTS,
    CONFIG,
    LEADERBOARD,
    TRIAL,
    TRIALS,
)
from vrgcn.runs.interrupts import Interrupted, StopRequest, stop_requests
from vrgcn.runs.job import Job, prepare
from vrgcn.targets.finding import find_target
from vrgcn.targets.predicted import predicts_labels
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import LabelMetric
from vrgcn.training.clock import Clock
from vrgcn.training.listener import Callbacks, StopTraining
from vrgcn.training.state import Epoch
from vrgcn.training.target import Target
from vrgcn.training.wording import seconds_text
from vrgcn.tuning.card import write_search_card
from vrgcn.tuning.finishing import Finished, Finishing, Scores
from vrgcn.tuning.halving import is_pruned
from vrgcn.tuning.leaderboard import Leaderboard, ranked, settings_text
from vrgcn.tuning.members import Member, fit_baseline, fitted_baseline
from vrgcn.tuning.space import Search, TriedSettings
from vrgcn.tuning.standings import Standing, standings_table
from vrgcn.tuning.study import COST, Tried, curves, end_trial, epoch_costs, next_trial, tried

if TYPE_CHECKING:
    import optuna

_FIRST = 1 / 6  # largest share of the time for the first trial
_SHARE = 1 / 8  # smallest share of the time for another, so that a slow one does not take all
_SLOWER = 1.5  # times as long as the first it may take in any case
_BASELINES = 0.15  # share of the time after which no baseline is begun, and those begun end
_KEPT = 0.05  # share of the time kept for the average and the test nodes
_TRIALS = 20  # trials of few labels that shall fit into the time, with fewer epochs if need be
_LEAST = 30  # epochs of these trials in any case
_ENOUGH = 0.5  # share of the first trial's epochs below which a trial is not begun
_CUT, _OVER = "it had its share of the time", "the time was over"
_UNFIT = 3  # trials in turn that would take too long after which a search ends
_TOO_SHORT = "too_short"  # key of the seconds that were left then
_MEMBERS = 40  # models, the best, from which an average is chosen
_HOPELESS = 5  # failures before any success after which a search gives up


@dataclass(frozen=True)
class TuneResult:
    """trials: networks that were tried, in order; baselines: that were fitted
    best: the best single model of all; settings: of a network, None of a baseline
    model: of the best; result: its scores
    average: of the models that predict best together; average_result: its scores; both None for
        pairs, where nothing is averaged
    standings: rows of the leaderboard, best first, the average last
    """

    trials: list[Tried]
    baselines: list[Tried]
    best: Tried
    settings: TriedSettings | None
    model: nn.Module
    result: Scores
    average: Average | None
    average_result: Scores | None
    standings: list[Standing]

    def __str__(self) -> str:
        values = settings_text(self.best.values)
        text = (
            f"best of {len(self.trials)} trials and {len(self.baselines)} baselines, "
            f"{self.best.name}{': ' + values if values else ''}\n{self.result}"
        )
        if self.average is None:
            return text
        members = self.average.members or {}
        weights = zip(members, self.average.weights, strict=True)
        shares = ", ".join(f"{weight:.2f} {name}" for name, weight in weights)
        return f"{text}\naverage of {len(members)}: {shares}\n{self.average_result}"


class Tuner:
    """One search: baselines, trials one after the other, then the average of the best."""

    def __init__(
        self,
        graph: Graph,
        target: Target,
        search: Search,
        study: optuna.Study,
        folder: Path,
        clock: Clock,
        leaderboard: Leaderboard,
        options: dict[str, Any],
        on_note: Callable[[str], None],
    ) -> None:
        self.graph = graph
        self.untested = graph.with_splits({"train": graph.train, "val": graph.val})
        self.target = target
        self.search = search
        self.study = study
        self.folder = folder
        self.clock = clock
        self.leaderboard = leaderboard
        self.options = options
        self.on_note = on_note
        clock.go_on(study.user_attrs.get("used", 0.0))
        self.baselines: dict[str, Tried] = {}
        for place in sorted((folder / BASELINES).glob("*")):
            found = fitted_baseline(place)
            if found is not None:
                self.baselines[place.name] = found
        ended = [t for t in tried(study) if t.state != "running"]
        leaderboard.restore([*self.baselines.values(), *ended])
        for pattern in (BEST, f"{TRIALS}/{TRIAL}*", f"{BASELINES}/*"):
            for run in folder.glob(pattern):
                remove_partial(run)  # left by a killed process
        begun = len(study.get_trials(deepcopy=False))
        if begun <= len(search.portfolio):  # none, or killed between them
            for start in search.first(self._settled):
                study.enqueue_trial(start, skip_if_exists=True)

    def fit_baselines(self, names: Sequence[str], own: Mapping[str, Recipe] | None = None) -> None:
        """Fit the baselines that are missing, as far as their part of the time allows; the first in
        any case.

        own: the user's, by name; they come first
        """
        own = own or {}
        missing = [name for name in names if not RECIPES[name].available]
        if missing:
            self.on_note(
                f"without the baselines {', '.join(missing)}: they need scikit-learn or LightGBM; "
                "pip install 'vrgcn[sklearn]'"
            )
        with stop_requests() as stop:

            def over() -> bool:
                limit = self.clock.limit
                late = limit is not None and self.clock.used >= _BASELINES * limit
                return late or stop.signal is not None

            seed = self.search.given.train.seed
            graph = self.untested
            fitted = graph if graph.visible is None else past_of(graph, seed)
            problem = Problem.of(fitted, self._metric, seed, over)
            order = [*own, *cheap_first(names, problem)]
            for name in order:
                if name in missing or name in self.baselines:
                    continue
                slow = name not in own and self._too_slow(name, problem)
                if self.baselines and (over() or slow):
                    continue
                ended = fit_baseline(
                    name,
                    problem,
                    self.untested,
                    self._metric,
                    self.folder / BASELINES / name,
                    self.options,
                    lambda: stop.signal is not None,
                    own.get(name),
                )
                if ended is not None:
                    self.baselines[name] = ended
                    self._note(ended)
                if stop.signal is not None:
                    raise Interrupted(stop.signal, f"stopped at the baseline {name}")
            # Of two with one score, the first counts; so does a search that was resumed.
            first = [*own, *cheap_first(RECIPES, problem)]
            kept = {name: self.baselines[name] for name in first if name in self.baselines}
            self.baselines = kept | self.baselines

    def fit_rules(self) -> None:
        """Score the simple rules that stand beside the target on the validation split."""
        clock, before = Clock(), 0.0
        width = self.search.given.model.embedding
        for title, scores in self.target.simple_scores(("val",), width):
            took = clock.used - before
            ended = Tried(-1, "complete", scores["val"], {}, 0, took, None, title)
            before = clock.used
            self.baselines[title] = ended
            self._note(ended)

    def _too_slow(self, name: str, problem: Problem) -> bool:
        """Return True if a baseline would take longer than baselines may, by its counted seconds
        and those that others took."""
        limit = self.clock.limit
        if limit is None:
            return False
        taken = sum(ended.seconds for ended in self.baselines.values())
        counted = sum(fit_seconds(known, problem) for known in self.baselines)
        slower = max(1.0, taken / counted) if counted else 1.0
        return self.clock.used + slower * fit_seconds(name, problem) > 2 * _BASELINES * limit

    def run(self, trials: int | None) -> None:
        """Try settings until the number of trials or the time limit is reached."""
        with stop_requests() as stop:
            self._run(trials, stop)

    def _run(self, trials: int | None, stop: StopRequest) -> None:
        unfit = 0
        while True:
            done = [trial for trial in tried(self.study) if trial.state != "running"]
            failed = [trial for trial in done if trial.state == "failed"]
            if len(failed) == len(done) >= _HOPELESS:
                said = f"the first {len(done)} trials failed, the last: {failed[-1].reason}"
                if not self._members():
                    raise InputError(said)
                self.on_note(f"{said}; no more are tried")
                return
            short = self.study.user_attrs.get(_TOO_SHORT, 0.0)
            if (trials is not None and len(done) >= trials) or (done and self._left() <= short):
                return
            trial = next_trial(self.study, self.search.given.train.seed)
            ended = self._try(trial)
            end_trial(self.study, trial, ended)
            self._note(ended)
            if stop.signal is not None:  # it came after the trial was done
                raise Interrupted(stop.signal, f"stopped after trial {ended.number}")
            unfit = unfit + 1 if not ended.epochs and ended.state == "pruned" else 0
            if unfit >= _UNFIT:
                self.study.set_user_attr(_TOO_SHORT, self._left())
                return
            if ended.reason == _OVER:  # seconds that are left would begin trials that tell nothing
                return

    def finish(self) -> TuneResult:
        """Write the best single model to the folder `best` and the average to the folder `average`,
        both scored on the test split. Models of pairs have no average."""
        members = self._members()
        chosen, end = self._chosen(members), self._finishing()
        if predicts_labels(self.graph):
            return self._result(end.run(members, chosen, self._metric))
        return self._result(end.run_edges(members, chosen, list(self.baselines.values())))

    def _finishing(self) -> Finishing:
        return Finishing(
            self.graph,
            self.untested,
            self.target.metric,
            self._test_score,
            self.folder,
            self.options,
            self.search.given.train.epochs,
        )

    def _test_score(self, saved: SavedModel) -> float | None:
        if not self.target.has("test"):
            return None
        outputs = predict(saved, self.graph, self.target.nodes("test"), kind="all")
        return self.target.score_split(saved.model, outputs, "test")

    @property
    def _metric(self) -> LabelMetric:
        """The score of labels, computed."""
        return find_task(self.graph.task).find_metric(self.search.given.train.metric)

    def _chosen(self, members: Sequence[Member]) -> Member:
        """Return the best of the members; a folder of another one is removed."""
        if not members:
            trials = tried(self.study)
            reasons = "; ".join(str(trial.reason) for trial in trials[-3:])
            raise InputError(f"none of {len(trials)} trials ran to its end: {reasons}")
        models = [member.tried for member in members]
        better = self.target.better
        order = ranked(models, better) or ranked(models, better, pruned=True)
        chosen = next(member for member in members if member.tried == order[0])
        if self.study.user_attrs.get("best") not in (None, chosen.name):
            # Left by a search that was resumed and found a better one.
            shutil.rmtree(self.folder / BEST, ignore_errors=True)
        self.study.set_user_attr("best", chosen.name)
        return chosen

    def _result(self, found: Finished) -> TuneResult:
        """Return the end of the search, and show it."""
        trials, chosen = tried(self.study), found.best
        self._write(found.rows)  # a killed process may have left it without the last trial
        metric = self.target.metric
        title = f"Best of {len(trials)} trials, {metric.title}"
        self.leaderboard.finish(standings_table(found.rows, metric, title))
        self.study.set_user_attr("used", self.clock.used)
        scores = {BEST: found.scores}
        if found.average_scores is not None:
            scores[AVERAGED] = found.average_scores
        write_search_card(self.folder, self.options, self.graph, found.rows, scores)
        settings = None
        if chosen.tried.baseline is None:
            settings = self._settled(self.search.given.changed(chosen.tried.values))
        return TuneResult(
            trials,
            list(self.baselines.values()),
            chosen.tried,
            settings,
            found.saved.model,
            found.scores,
            found.average,
            found.average_scores,
            found.rows,
        )

    def _members(self) -> list[Member]:
        """Return the baselines and trials that have a model and a score, in order: a trial that was
        pruned may still add to an average. Of many, those with the best scores."""
        fitted = [
            Member(ended, self.folder / BASELINES / name) for name, ended in self.baselines.items()
        ]
        trained = [Member(trial, self._trial_folder(trial.number)) for trial in tried(self.study)]
        found = [
            member
            for member in (*fitted, *trained)
            if member.tried.state in ("complete", "pruned")
            and member.tried.val is not None
            and (member.folder / MODEL).is_file()
        ]
        models = [member.tried for member in found]
        best = ranked(models, self.target.better, pruned=True)[:_MEMBERS]
        return [member for member in found if member.tried in best]

    def _trial_folder(self, number: int) -> Path:
        return self.folder / TRIALS / f"{TRIAL}{number:03d}"

    def _left(self) -> float:
        """Return the seconds for further trials, without those reserved for the end of the
        search."""
        if self.clock.limit is None:
            return float("inf")
        return (1 - _KEPT) * self.clock.limit - self.clock.used

    def _try(self, trial: optuna.Trial) -> Tried:
        """Train as a trial says; errors of the trial itself are recorded, not raised."""
        clock = Clock()
        seen: list[Epoch] = []
        settings = self.search.given
        try:
            settings = self.search.draw(trial)
            state, reason, val = self._train(trial, settings, seen)
        except (MemoryError, FloatingPointError, InputError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not is_out_of_memory(error):
                raise
            state, val = "failed", self._best_of(seen)
            reason = (str(error).splitlines() or [type(error).__name__])[0]
        values = dict(trial.params)
        return Tried(trial.number, state, val, values, len(seen), clock.used, reason)  # type: ignore[arg-type]

    def _train(
        self, trial: optuna.Trial, settings: TriedSettings, seen: list[Epoch]
    ) -> tuple[str, str | None, float | None]:
        """Return how it ended, why, and the score of the kept model."""
        folder = self._trial_folder(trial.number)
        *others, reported = curves(self.study, trial)
        pruned = False
        left, share = self._left(), self._share(trial.number)
        settings = self._settled(settings)
        job = self._job(settings)
        cost = self._cost(job)
        trial.set_user_attr(COST, cost)
        costs = epoch_costs(self.study, trial)
        epoch = self._predicted(cost)
        settings = self._shortened(settings, epoch)
        if epoch and min(left, share) / epoch < self._enough(settings.train.epochs):
            predicted = seconds_text(epoch * settings.train.epochs)
            return "pruned", f"it would take about {predicted}", None

        def judge(epoch: int) -> None:
            nonlocal pruned
            known = {number: score for number, score in reported.items() if number <= epoch}
            larger = self.target.better(1.0, 0.0)
            pruned = is_pruned(
                [*others, known], epochs=settings.train.epochs, larger=larger, costs=costs
            )
            if pruned:
                raise StopTraining

        def on_epoch(point: Epoch) -> None:
            seen.append(point)
            self.leaderboard.epoch(
                trial.number, point.epoch, settings.train.epochs, point.val, self.clock.used
            )
            best = self._best_of(seen)  # for which a model is kept, not for its last epoch
            if point.val is None or best is None:
                return
            if point.epoch not in reported:  # before a kill or a rollback
                trial.report(best, point.epoch)
                reported[point.epoch] = best
            judge(point.epoch)

        def on_restore(curve: list[Epoch]) -> None:
            seen[:] = curve  # later epochs, before a rollback, have no model any more
            judge(len(curve))  # a signal may have stopped it after the step that it is pruned at

        limit = min(left, share)
        config = replace(
            settings.train,
            diagnostics=0,
            time_limit=None if limit == float("inf") else f"{max(limit, 0.001):.3f}s",
        )
        result = replace(job, config=config).run(
            folder,
            self._described(settings),
            Callbacks(on_epoch=on_epoch, on_restore=on_restore, on_note=self.on_note),
            resume=(folder / CONFIG).is_file(),
        )
        remove_folder(folder / CHECKPOINTS)  # it is never resumed from here
        if pruned:
            return "pruned", None, self._best_of(seen)
        if result.stopped != "time":
            return "complete", None, result.val
        counts = share < left or not trial.number or self._leads(result.val)
        state, reason = ("complete", _CUT) if counts else ("pruned", _OVER)
        return state, reason, result.val

    def _leads(self, score: float | None) -> bool:
        """Return True if a score is better than that of every finished trial."""
        best = ranked(tried(self.study), self.target.better)
        if score is None or not best or best[0].val is None:
            return False
        return self.target.better(score, best[0].val)

    def _share(self, number: int) -> float:
        """Return the seconds that a trial may take, however many there are."""
        if self.clock.limit is None:
            return float("inf")
        if not number:
            return _FIRST * self.clock.limit
        return max(_SHARE * self.clock.limit, _SLOWER * tried(self.study)[0].seconds)

    def _best_of(self, points: Sequence[Epoch]) -> float | None:
        best: float | None = None
        for val in (point.val for point in points if point.val is not None):
            best = val if best is None or self.target.better(val, best) else best
        return best

    def _settled(self, settings: TriedSettings) -> TriedSettings:
        """Return the settings with the estimator that `auto` stands for in just these settings: a
        search compares actual estimators."""
        if settings.train.estimator != AUTO:
            return settings
        train, _ = choose_estimator(self._build(settings), self.graph, settings.train)
        return replace(settings, train=train)

    def _job(self, settings: TriedSettings) -> Job:
        """The training of a trial."""
        target = find_target(self.untested, settings.train)
        target.tested = False
        return prepare(self._build(settings), self.untested, settings.train, target)

    def _build(self, settings: TriedSettings) -> nn.Module:
        return build_network(settings.model, self.graph, self.target, settings.train.seed)

    def _cost(self, job: Job) -> float:
        """Return the counted cost of an epoch. Raise if a trial does not fit: if memory runs out, a
        process may be killed silently."""
        name = job.config.estimator
        costs = job.costs([name])
        if name not in costs:
            return 1.0  # it cannot be trained, and training says why
        there = ("edges", "features")  # parts of the graph, which is in memory already
        needed = sum(size for part, size in costs[name].memory.items() if part not in there)
        free = free_memory()
        if needed > free:
            raise MemoryError(
                f"it would take {bytes_text(needed)} of memory, and {bytes_text(free)} are free"
            )
        return work(costs[name])

    def _predicted(self, cost: float) -> float:
        """Return the seconds of an epoch by its cost and the speed of the trials before it; 0 if
        there is no limit or no trial yet."""
        if self.clock.limit is None:
            return 0.0
        seconds = paid = 0.0
        for frozen in self.study.get_trials(deepcopy=False):
            noted = frozen.user_attrs
            if noted.get("epochs") and COST in noted:
                seconds += noted["seconds"]
                paid += noted["epochs"] * noted[COST]
        return cost * seconds / paid if paid else 0.0

    def _shortened(self, settings: TriedSettings, epoch: float) -> TriedSettings:
        """Return the settings with so many epochs that several trials fit into the time, where few
        nodes have labels: their runs hardly gain from longer training, and evaluate all nodes after
        every step.

        epoch: predicted seconds of one; 0: not known
        """
        if not epoch or self.clock.limit is None or not few_labels(self.untested):
            return settings
        share = (1 - _BASELINES - _KEPT) * self.clock.limit / _TRIALS
        epochs = max(_LEAST, int(share / epoch))
        return settings.changed({"epochs": min(epochs, settings.train.epochs)})

    def _enough(self, epochs: int) -> float:
        """Return the epochs that a trial has to come to in its time to be worth it, by those of the
        first trial, which may have been cut short too."""
        first = tried(self.study)[0].epochs
        return _ENOUGH * min(epochs, first)

    def _described(self, settings: TriedSettings) -> dict[str, Any]:
        return {**self.options, **settings.values(), "time_limit": None}

    def _note(self, ended: Tried) -> None:
        self.leaderboard.ended(ended)
        self.study.set_user_attr("used", self.clock.used)
        self._write()

    def _write(self, rows: Sequence[Standing] = ()) -> None:
        about = {
            "metric": self.target.metric.title,
            "seconds": self.clock.used,
            "baselines": [asdict(ended) for ended in self.baselines.values()],
            "trials": [asdict(trial) for trial in tried(self.study)],
            "standings": [asdict(row) for row in rows],
        }
        write_text(self.folder / LEADERBOARD, json.dumps(about, indent=1) + "\n")
