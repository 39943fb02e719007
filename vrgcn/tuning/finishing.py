"""The end of a search: the best single model and the average of the best, scored on the test nodes.

Nothing is trained again. The average is corrected and smoothed if that gains enough. Every choice
is made on the validation nodes; then the test nodes are scored, once for each of the two. Both are
calibrated on the validation nodes as single runs are. Each model that is kept predicts all nodes
once (inference/known.py). Where the time is over nevertheless, fewer averages are tried, models of
small weight are left out, and nothing is smoothed.

Where edges are predicted, nothing is averaged: embeddings of different networks have no common
axes, scores of a decoder no common scale.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from vrgcn.baselines.problem import Problem
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_json
from vrgcn.files.wording import counted
from vrgcn.files.writing import new_file, remove_folder
from vrgcn.inference import MODEL
from vrgcn.inference.average import Average
from vrgcn.inference.choose_smoothing import choose_smoothing
from vrgcn.inference.known import KnownModel
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel, save_model
from vrgcn.runs.card import facts_of, write_end
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.folder import AVERAGED, BEST, CONFIG, METRICS, RESULT, read_config
from vrgcn.runs.stages import calibrate_run
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import LabelMetric, Metric
from vrgcn.tuning.card import write_search_card
from vrgcn.tuning.caruana import choose_robustly
from vrgcn.tuning.leaderboard import ranked, settings_text
from vrgcn.tuning.members import Member, standard_error
from vrgcn.tuning.reserve import predicting
from vrgcn.tuning.session import Session
from vrgcn.tuning.space import TriedSettings
from vrgcn.tuning.standings import Standing, standings, standings_table
from vrgcn.tuning.study import Tried, tried
from vrgcn.tuning.trials import settled

S = TypeVar("S", bound=SavedModel)

_NEAR = 4.0  # standard errors behind the best within which a member counts, of few nodes
_FEW = 4  # members of an average for which there is time in any case
_CHOOSING = 0.02  # share of the limit that choosing the average has in any case
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
            f"best of {counted(len(self.trials), 'trial')} and "
            f"{counted(len(self.baselines), 'baseline')}, "
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
    session.leaderboard.doing("choosing the average" if session.averages else "scoring the best")
    members = session.members()
    best, trials = _best(session, members), tried(session.study)
    average, averaged = None, None
    planned, metric = session.search.given.train.epochs, session.target.metric
    errors: dict[str, float | None] = {}
    known: dict[str, Tensor] = {}
    if session.averages:
        average, averaged, errors, known = _average(session, members, best)
    weights = dict(zip(average.members, average.weights, strict=True)) if average else {}
    entries = [(m.tried, errors.get(m.name), weights.get(m.name, 0.0)) for m in members]
    if average is None:  # simple rules have no model
        entries += [(rule, None, 0.0) for rule in session.baselines.values()]
    end = None if averaged is None else (averaged.val, averaged.error)
    rows = standings(entries, end, metric, planned)
    assert best.tried.val is not None
    scores = Scores(metric, best.tried.val, errors.get(best.name), None)
    saved = best.load()
    scores = _write_best(session, best, saved, known.get(best.name), scores)
    session.write(rows)  # a killed process may have left it without the last trial
    title = f"Best of {len(trials)} trials, {metric.title}"
    session.leaderboard.finish(standings_table(rows, metric, title))
    session.study.set_user_attr("used", session.clock.used)
    kept = {BEST: scores} | ({} if averaged is None else {AVERAGED: averaged})
    write_search_card(session.folder, session.options, session.graph, rows, kept)
    settings = None
    if best.tried.baseline is None:
        settings = settled(session, session.tried_settings(best.tried))
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
    order = ranked(models, better)
    best = next(member for member in members if member.tried == order[0])
    if session.study.user_attrs.get("best") not in (None, best.name):
        # Left by a search that was resumed and found a better one.
        shutil.rmtree(session.folder / BEST, ignore_errors=True)
    session.study.set_user_attr("best", best.name)
    return best


def _average(
    session: Session, members: Sequence[Member], best: Member
) -> tuple[Average, Scores, dict[str, float | None], dict[str, Tensor]]:
    """Choose the average and write it. Return it, its scores, the standard errors of those of the
    members, and the outputs of the best for all nodes, by its name.

    best: the best single model, which predicts all nodes in any case
    """
    assert session.graph.labels is not None
    task, metric = find_task(session.graph.task), session.metric
    truth = session.graph.labels[session.graph.val]
    outputs = {member.name: member.validation_outputs(session.untested) for member in members}
    errors = {name: standard_error(metric, out, truth) for name, out in outputs.items()}
    shares = {name: task.shares(out) for name, out in outputs.items()}
    error = max((each for each in errors.values() if each is not None), default=0.0)
    ready = ranked([member.tried for member in members], session.target.better)
    least = session.clock.used + _CHOOSING * (session.clock.limit or 0.0)

    def score(mean: Tensor, labels: Tensor) -> float:
        return metric.compute(task.from_shares(mean), labels)

    chosen = choose_robustly(
        shares,
        truth,
        score,
        metric.better,
        lambda score, best: abs(best - score) <= _NEAR * error,
        over=lambda: session.clock.used >= least and session.clock.late(predicting(ready[:_FEW])),
    )
    weights = _affordable(session, members, chosen.weights, best)
    mean = torch.stack([weight * shares[name] for name, weight in weights.items()]).sum(0)
    spread = standard_error(metric, task.from_shares(mean), truth)
    average, whole, known = _predicted(session, members, weights, best)
    val = chosen.score if weights == chosen.weights else score(mean, truth)
    ahead, val = _smoothed(session, KnownModel.like(average, whole), val, spread, metric)
    scores = _tested(session, ahead, Scores(session.target.metric, val, spread, None))
    average = replace(average, stages=_calibrated(session, ahead).stages)
    _write_average(session, average, scores)
    return average, scores, errors, known


def _affordable(
    session: Session, members: Sequence[Member], weights: dict[str, float], best: Member
) -> dict[str, float]:
    """Return the weights of so many members, the heaviest, as can predict all nodes in time."""
    tried = {member.name: member.tried for member in members}
    kept = sorted(weights, key=lambda name: -weights[name])
    while len(kept) > 1 and session.clock.late(
        predicting(tried[name] for name in {*kept, best.name})
    ):
        kept.pop()
    total = sum(weights[name] for name in kept)
    return {name: weights[name] / total for name in weights if name in kept}


def _predicted(
    session: Session, members: Sequence[Member], weights: dict[str, float], best: Member
) -> tuple[Average, Tensor, dict[str, Tensor]]:
    """Return the average, its outputs for all nodes, and those of the best single model."""
    graph, task, known = session.graph, find_task(session.graph.task), {}
    kept = {member.name: member.load() for member in members if member.name in weights}
    average = Average.of_members(kept, weights, best=str(session.folder / BEST))
    mean: Tensor | None = None
    for name, (weight, saved) in average.parts.items():
        session.leaderboard.doing(f"predicting all nodes by {name}")
        outputs = predict(saved, graph, kind="all")
        if name == best.name:
            known[name] = outputs
        shares = weight * task.shares(outputs)
        mean = shares if mean is None else mean.add_(shares)
    assert mean is not None
    return average, task.from_shares(mean), known


def _smoothed(
    session: Session, average: KnownModel, val: float, error: float | None, metric: LabelMetric
) -> tuple[KnownModel, float]:
    """Return the average, corrected and smoothed if the validation score gains more than a part of
    its standard error, and its score."""
    late = session.clock.late
    if late(session.smoothing_seconds):
        return average, val
    session.leaderboard.doing("trying to correct and smooth the average")
    choice = choose_smoothing(average, Problem.of(session.untested, metric, over=late))
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


def _write_best(
    session: Session, member: Member, saved: SavedModel, known: Tensor | None, scores: Scores
) -> Scores:
    """known: its outputs for all nodes; None: they are predicted"""
    session.leaderboard.doing(f"scoring {member.tried.name}, the best single model")
    folder = session.folder / BEST
    folder.mkdir(exist_ok=True)
    for name in (CONFIG, METRICS):
        if (member.folder / name).is_file():
            with open(member.folder / name, "rb") as source, new_file(folder / name) as target:
                shutil.copyfileobj(source, target)
    if session.averages:
        known = predict(saved, session.graph, kind="all") if known is None else known
        ahead = KnownModel.like(saved, known)
        scores = _tested(session, ahead, scores)
        saved = replace(saved, stages=(*saved.stages, *_calibrated(session, ahead).stages))
    else:
        scores = _tested(session, saved, scores)
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
