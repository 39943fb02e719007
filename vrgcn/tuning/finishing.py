"""The end of a search: the best single model and the average of the best, scored on the test nodes.

Nothing is trained again. The average is corrected and smoothed if that gains enough. Every choice
is made on the validation nodes; then the test nodes are scored, once for each of the two. Both are
calibrated on the validation nodes as single runs are.

Where edges are predicted, nothing is averaged: embeddings of different networks have no common
axes, scores of a decoder no common scale.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import nn

from vrgcn.baselines.problem import Problem
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_json
from vrgcn.files.writing import new_file, remove_folder
from vrgcn.inference import MODEL
from vrgcn.inference.average import Average
from vrgcn.inference.choose_smoothing import choose_smoothing
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel, save_model
from vrgcn.runs.card import facts_of, write_end
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.folder import AVERAGED, BEST, CONFIG, METRICS, RESULT, read_config
from vrgcn.runs.stages import calibrate_run
from vrgcn.targets.predicted import predicts_labels
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import LabelMetric, Metric
from vrgcn.tuning.card import write_search_card
from vrgcn.tuning.caruana import choose_robustly
from vrgcn.tuning.leaderboard import ranked, settings_text
from vrgcn.tuning.members import Member, standard_error
from vrgcn.tuning.session import Session
from vrgcn.tuning.space import TriedSettings
from vrgcn.tuning.standings import Standing, standings, standings_table
from vrgcn.tuning.study import Tried, tried
from vrgcn.tuning.trials import find_members, settled

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
        members = self.average.members
        weights = zip(members, self.average.weights, strict=True)
        shares = ", ".join(f"{weight:.2f} {name}" for name, weight in weights)
        return f"{text}\naverage of {len(members)}: {shares}\n{self.average_result}"


def finish(session: Session) -> TuneResult:
    """Write the average to the folder `average` and the best single model to the folder `best`,
    both scored on the test split. The result of the best comes last: with it the search has
    finished."""
    members = find_members(session)
    best, trials = _best(session, members), tried(session.study)
    average, averaged = None, None
    planned, metric = session.search.given.train.epochs, session.target.metric
    errors: dict[str, float | None] = {}
    if predicts_labels(session.graph):
        average, averaged, errors = _average(session, members)
    weights = dict(zip(average.members, average.weights, strict=True)) if average else {}
    entries = [(m.tried, errors.get(m.name), weights.get(m.name, 0.0)) for m in members]
    if average is None:  # simple rules have no model
        entries += [(rule, None, 0.0) for rule in session.baselines.values()]
    end = None if averaged is None else (averaged.val, averaged.error)
    rows = standings(entries, end, metric, planned)
    assert best.tried.val is not None
    scores = Scores(metric, best.tried.val, errors.get(best.name), None)
    saved = best.load()
    scores = _write_best(session, best, saved, scores)
    session.write(rows)  # a killed process may have left it without the last trial
    title = f"Best of {len(trials)} trials, {metric.title}"
    session.leaderboard.finish(standings_table(rows, metric, title))
    session.study.set_user_attr("used", session.clock.used)
    kept = {BEST: scores} | ({} if averaged is None else {AVERAGED: averaged})
    write_search_card(session.folder, session.options, session.graph, rows, kept)
    settings = None
    if best.tried.baseline is None:
        settings = settled(session, session.search.given.changed(best.tried.values))
    baselines = list(session.baselines.values())
    return TuneResult(
        trials, baselines, best.tried, settings, saved.model, scores, average, averaged, rows
    )


def _best(session: Session, members: Sequence[Member]) -> Member:
    """Return the best of the members; a folder of another one is removed."""
    if not members:
        trials = tried(session.study)
        reasons = "; ".join(str(trial.reason) for trial in trials[-3:])
        raise InputError(f"none of {len(trials)} trials ran to its end: {reasons}")
    models = [member.tried for member in members]
    better = session.target.better
    order = ranked(models, better) or ranked(models, better, pruned=True)
    best = next(member for member in members if member.tried == order[0])
    if session.study.user_attrs.get("best") not in (None, best.name):
        # Left by a search that was resumed and found a better one.
        shutil.rmtree(session.folder / BEST, ignore_errors=True)
    session.study.set_user_attr("best", best.name)
    return best


def _average(
    session: Session, members: Sequence[Member]
) -> tuple[Average, Scores, dict[str, float | None]]:
    """Choose the average and write it. Return it, its scores, and the standard errors of those of
    the members."""
    assert session.graph.labels is not None
    task, metric = find_task(session.graph.task), session.metric
    truth = session.graph.labels[session.graph.val]
    outputs = {member.name: member.validation_outputs(session.untested) for member in members}
    errors = {name: standard_error(metric, out, truth) for name, out in outputs.items()}
    shares = {name: task.shares(out) for name, out in outputs.items()}
    error = max((each for each in errors.values() if each is not None), default=0.0)
    chosen = choose_robustly(
        shares,
        truth,
        lambda mean, labels: metric.compute(task.from_shares(mean), labels),
        metric.better,
        lambda score, best: abs(best - score) <= _NEAR * error,
    )
    kept = {member.name: member.load() for member in members if member.name in chosen.weights}
    average = Average.of_members(kept, chosen.weights, best=str(session.folder / BEST))
    mean = torch.stack([w * shares[name] for name, w in chosen.weights.items()]).sum(0)
    spread = standard_error(metric, task.from_shares(mean), truth)
    average, val = _smoothed(session, average, chosen.score, spread, metric)
    scores = _tested(session, average, Scores(session.target.metric, val, spread, None))
    average = _calibrated(session, average)
    _write_average(session, average, scores)
    return average, scores, errors


def _smoothed(
    session: Session, average: Average, val: float, error: float | None, metric: LabelMetric
) -> tuple[Average, float]:
    """Return the average, corrected and smoothed if the validation score gains more than a part of
    its standard error, and its score."""
    choice = choose_smoothing(average, Problem.of(session.untested, metric))
    gain = choice.alone - choice.val if metric.error else choice.val - choice.alone
    if choice.smoothing is None or gain <= _GAIN * (error or 0.0):
        return average, val
    return average.then(choice.smoothing), choice.val


def _tested(session: Session, saved: SavedModel, scores: Scores) -> Scores:
    """Return scores with that of the test split, if there is one."""
    target = session.target
    if not target.has("test"):
        return scores
    outputs = predict(saved, session.graph, target.nodes("test"), kind="all")
    return replace(scores, test=target.score_split(saved.model, outputs, "test"))


def _calibrated(session: Session, saved: S) -> S:
    """Return a model calibrated on the validation nodes, as a single run is; the test nodes are
    scored before, and play no part."""
    wanted = str(session.options.get("calibrate", "auto"))
    return calibrate_run(saved, session.untested, wanted, lambda _: None)


def _write_best(session: Session, member: Member, saved: SavedModel, scores: Scores) -> Scores:
    folder = session.folder / BEST
    folder.mkdir(exist_ok=True)
    for name in (CONFIG, METRICS):
        if (member.folder / name).is_file():
            with open(member.folder / name, "rb") as source, new_file(folder / name) as target:
                shutil.copyfileobj(source, target)
    scores = _tested(session, saved, scores)
    saved = _calibrated(session, saved)
    save_model(saved, folder / MODEL)
    result = read_json(member.folder / RESULT) | {"test": scores.test}
    facts = facts_of(session.graph)
    write_end(folder, read_config(folder), result, saved, facts, scores.error)
    return scores


def _write_average(session: Session, average: Average, scores: Scores) -> None:
    folder = session.folder / AVERAGED
    if folder.is_dir():
        remove_folder(folder)
    folder.mkdir()
    config = {**session.options, "average": len(average.weights)}
    write_settings(folder / CONFIG, config)
    save_model(average, folder / MODEL)
    result = {"metric": scores.metric.title, "val": scores.val, "test": scores.test}
    result |= {"epoch": 0, "seconds": 0.0, "evaluation_seconds": 0.0}  # as those of runs have
    write_end(folder, config, result, average, facts_of(session.graph), scores.error)
