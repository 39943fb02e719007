"""A bounded search for models, by validation scores only: baselines, networks, their average.

Baselines come first and have a part of the time. Then networks are trained in turn (turns.py):
those that `vrgcn train` compares on the graph, in its settings, then a portfolio and settings that
Optuna draws. The first is trained to its end, so that what is found is never below it on the
validation nodes; others are paused while they are behind, and resumed when they are not. A trial's
graph has no test nodes: they can have no part in the choice. A trial or a baseline that diverges or
does not fit in memory has failed, with a reason, and the search continues. Where edges are
predicted, simple rules take the place of baselines.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrgcn.baselines import RECIPES, Recipe
from vrgcn.baselines.estimator import estimator_name, fit_estimator
from vrgcn.costs.choice import CANDIDATES, EXACT, candidate_costs
from vrgcn.costs.order import build_for
from vrgcn.engine.devices import use_threads
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.pairs.terms import LOSSES
from vrgcn.runs.candidates import candidates
from vrgcn.runs.config_file import build
from vrgcn.runs.identity import differences, fingerprint
from vrgcn.runs.settings import USUAL_MODEL, USUAL_TRAIN, Settings
from vrgcn.targets.opening import find_target
from vrgcn.targets.scored import ScoredEdges, scored_edges
from vrgcn.targets.spec import with_usual
from vrgcn.tasks import find_task
from vrgcn.training.clock import Clock, duration
from vrgcn.training.config import TrainConfig, given_config
from vrgcn.training.target import Target
from vrgcn.tuning.baselines_first import fit_baselines, score_rules
from vrgcn.tuning.finishing import TuneResult, finish
from vrgcn.tuning.leaderboard import Leaderboard
from vrgcn.tuning.session import Session
from vrgcn.tuning.space import (
    NOT_RELATIONAL,
    SPACE,
    SPACES,
    Search,
    TriedSettings,
    searched,
)
from vrgcn.tuning.study import check_optuna, note_identity, open_study
from vrgcn.tuning.trials import run_trials

if TYPE_CHECKING:
    import optuna

TRIALS_BY_DEFAULT = 40


def search_models(
    graph: Graph,
    model: ModelConfig | None = None,
    config: TrainConfig | None = None,
    *,
    trials: int | None = None,
    time_limit: str | None = None,
    search: Sequence[str] = tuple(SPACE),
    baselines: Sequence[Any] | None = None,
    folder: str | Path | None = None,
    options: dict[str, Any] | None = None,
    verbose: bool = False,
    on_begin: Callable[[], None] = lambda: None,
    on_note: Callable[[str], None] = print,
    begun: float | None = None,
) -> TuneResult:
    """Search for models on a graph whose features are scaled and that is split.

    model, config: the settings that are tried first, and of all that is not searched; None: those
        that `vrgcn train` takes, or compares, on this graph
    trials: how many at most; None: 40, or as many as the time allows
    time_limit: of all of it, such as "5m"; None: that of the config
    search: settings to vary, names of `tuning.space.SPACE`
    baselines: names of `vrgcn.baselines.RECIPES`, and estimators of scikit-learn, which are fitted
        on [X, P X, P P X, log(1 + degree)] and predict the nodes of this graph alone; None: all
        names that can be fitted here; (): none
    folder: for the runs of the trials and the best; a stopped search resumes from what is there,
        and another one, of another graph or other settings, is refused. None: nothing is kept but
        what is returned
    options: what config.toml of the runs says beside their settings
    on_begin: called once it is known that the folder is this search's
    begun: a time by `Clock.now` from which the limit counts; None: this one
    """
    check_optuna()
    config = USUAL_TRAIN if config is None else given_config(config)
    limit = config.time_limit if time_limit is None else time_limit
    config = replace(config, time_limit=None)
    edges = scored_edges(graph)
    if edges is None:
        _check_labels(graph)
        given, fit = TriedSettings(model or USUAL_MODEL, config), _fitting(baselines, graph)
    else:
        search = searched(search, edges.kind)
        given, fit = _given(edges, model, config), _scoring(edges, baselines)
    seconds, trials = _length(limit, trials)
    use_threads(config.threads)
    with ExitStack() as stack:
        home = Path(folder or stack.enter_context(tempfile.TemporaryDirectory()))
        home.mkdir(parents=True, exist_ok=True)
        target, clock = find_target(graph, given.train), Clock(seconds, begun)
        board = stack.enter_context(Leaderboard(target.metric, verbose, clock))
        study = stack.enter_context(open_study(home, larger=target.better(1.0, 0.0)))
        if folder is not None:
            _refuse_another(home, study, _identity(graph, given, search, target))
        on_begin()
        board.doing("counting what models cost")
        first = _candidates(given, graph)
        session = Session(
            graph=graph,
            target=target,
            candidates=first,
            search=_space(first, graph, search, target),
            study=study,
            folder=home,
            clock=clock,
            leaderboard=board,
            options=options or {},
            on_note=on_note,
        )
        fit(session)
        run_trials(session, trials)
        return finish(session)


def _check_labels(graph: Graph) -> None:
    if graph.labels is None or not len(graph.train) or not len(graph.val):
        if graph.dated is not None:
            raise InputError(
                "tuning needs training and validation rows: import the graph with other dates, "
                f"{setting('train_until', Placeholder('DATE'))} and "
                f"{setting('val_until', Placeholder('DATE'))}"
            )
        raise InputError(
            "tuning needs training and validation nodes with labels: give the graph a split, or "
            "draw one: --ratio 0.6 0.2 0.2, from Python random_split(graph, (0.6, 0.2, 0.2))"
        )


def _fitting(baselines: Sequence[Any] | None, graph: Graph) -> Callable[[Session], None]:
    """Return what fits the baselines of labels."""
    given_names = list(RECIPES) if baselines is None else list(baselines)
    names = [name for name in given_names if isinstance(name, str)]
    own = _own_baselines([each for each in given_names if not isinstance(each, str)], graph)
    unknown = [name for name in names if name not in RECIPES]
    if unknown:
        raise InputError(f"baselines: {unknown[0]!r} is none of {', '.join(RECIPES)}")
    if graph.kinds.named:  # labels spread between nodes of one kind
        names = [name for name in names if not RECIPES[name].smooth]
    return lambda session: fit_baselines(session, names, own)


def _scoring(edges: ScoredEdges, baselines: Sequence[Any] | None) -> Callable[[Session], None]:
    """Return what scores the simple rules of edges."""
    if not len(edges.predicted.val):
        raise InputError("tuning needs validation pairs: split the graph with some, by the ratio")
    if baselines:
        raise InputError("baselines: those of pairs are simple rules, all of them or none, ()")
    return (lambda session: None) if baselines is not None else score_rules


def _given(edges: ScoredEdges, model: ModelConfig | None, config: TrainConfig) -> TriedSettings:
    """Return the settings that are tried first for edges; those that are usual, where none are
    given."""
    usual = build(Settings, with_usual({"predict": edges.predict}))
    train = usual.train if config == USUAL_TRAIN else config
    loss = next((name for name in LOSSES if name == edges.losses[0]), None)
    if train.loss == AUTO and loss is not None:  # which is searched
        train = replace(train, loss=loss)
    return TriedSettings(usual.model if model is None else model, train)


def _space(
    first: Sequence[TriedSettings], graph: Graph, search: Sequence[str], target: Target
) -> Search:
    """first: the candidates, whose first one has the settings of all that is not searched"""
    given, *others = first
    edges = scored_edges(graph)
    if edges is not None:
        return Search(given, search, among=SPACES[edges.kind], tried=others)
    left_out = [*_too_slow(given, graph, target), *_unsuited(given, graph)]
    unknown = NOT_RELATIONAL if graph.kinds.named else ()
    return Search(given, search, left_out, unknown, tried=others)


def _length(limit: str | None, trials: int | None) -> tuple[float | None, int | None]:
    """Return the seconds and the number of trials of a search; 40 trials if neither is given."""
    seconds = None if limit is None else duration(limit)
    if limit is not None and seconds is None:
        raise InputError(f"time_limit {limit!r} is no time, such as 90s, 10m or 2h")
    if trials is not None and trials < 1:
        raise InputError(f"trials must be at least 1, not {trials}")
    if trials is None and seconds is None:
        return None, TRIALS_BY_DEFAULT
    return seconds, trials


def _candidates(given: TriedSettings, graph: Graph) -> list[TriedSettings]:
    """Return the settings that `vrgcn train` takes or compares, with values in place of None."""
    untested = graph.with_splits({"train": graph.train, "val": graph.val})
    found: list[TriedSettings] = []
    for each in candidates(given.model, given.train, untested):
        model = each.model
        if (model.norm, given.model.norm) == ("none", "auto"):
            model = replace(model, norm="auto", layer_norm=False)  # which is searched
        found.append(TriedSettings(model, each.train))
    return found


def _own_baselines(estimators: Sequence[Any], graph: Graph) -> dict[str, Recipe]:
    """Return recipes of estimators of scikit-learn, by name."""
    needed = ("fit", "predict_proba" if find_task(graph.task).has_classes else "predict")
    recipes: dict[str, Recipe] = {}
    for estimator in estimators:
        lacks = [name for name in needed if not hasattr(estimator, name)]
        if lacks or isinstance(estimator, type):
            raise InputError(
                f"baselines: {estimator!r} is no estimator of scikit-learn with {needed[0]} and "
                f"{needed[1]}, nor the name of a baseline"
            )
        name = estimator_name(estimator, {*RECIPES, *recipes})
        recipes[name] = Recipe(partial(fit_estimator, estimator=estimator), repr(estimator))
    return recipes


def _too_slow(given: TriedSettings, graph: Graph, target: Target) -> tuple[str, ...]:
    """Exact training, where an epoch costs more than twice that of two-way on this graph, as
    counted: a few of its trials would take the time of all others."""
    usual = replace(given.model, model="graphsage")
    model = build_for(usual, graph, target.outputs, given.train.seed)
    costs = candidate_costs(model, graph, given.train, target=target)
    others = [costs[name] for name in CANDIDATES if name in costs]
    slow = EXACT in costs and others and not costs[EXACT].hardly_more(others[0])
    return (EXACT,) if slow else ()


def _identity(
    graph: Graph, given: TriedSettings, search: Sequence[str], target: Target
) -> dict[str, Any]:
    """Return the identity of a search: trials are comparable if it is the same."""
    train = {name: value for name, value in asdict(given.train).items() if name != "threads"}
    return {
        "graph": fingerprint(graph),
        "model": asdict(given.model),
        "config": train,
        "run": {"search": list(search), "the metric": target.metric.title},
    }


def _refuse_another(folder: Path, study: optuna.Study, now: dict[str, Any]) -> None:
    """Raise if the trials in a folder belong to another search."""
    changed = differences(*note_identity(study, now))
    if changed:
        raise InputError(
            f"{folder} holds another search: {'; '.join(changed)}; give another folder, or delete "
            "it to begin again"
        )


def _unsuited(given: TriedSettings, graph: Graph) -> list[str]:
    """Return the models that know no kinds of nodes, or not the given settings, or have nothing to
    learn from on this graph."""
    unsuited, kinds = [], graph.kinds
    try:
        given.changed({"model": "residual"})
    except InputError:
        unsuited.append("residual")
    if kinds.named:
        unsuited = ["residual"]
        if not kinds.widths.get(kinds.target or "", 0):
            unsuited.append("mlp")
    return unsuited
