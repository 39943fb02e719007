"""The beginning of a search: baselines, which have a part of the time; of edges, simple rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vrgcn.baselines import RECIPES, Recipe
from vrgcn.baselines.past import past_of
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.work import cheap_first, fit_seconds
from vrgcn.runs.folder import BASELINES
from vrgcn.runs.interrupts import Interrupted, stop_requests
from vrgcn.training.clock import Clock
from vrgcn.tuning.members import fit_baseline
from vrgcn.tuning.session import Session
from vrgcn.tuning.study import Tried

SHARE = 0.15  # share of the time after which no baseline is begun, and those begun end


def fit_baselines(session: Session, names: Sequence[str], own: Mapping[str, Recipe]) -> None:
    """Fit the baselines that are missing, as far as their part of the time allows; the first in
    any case.

    own: the user's, by name; they come first
    """
    graph, seed = session.untested, session.search.given.train.seed
    names = [name for name in names if RECIPES[name].suits(graph)]
    missing = [name for name in names if not RECIPES[name].available]
    if missing:
        session.on_note(
            f"without the baselines {', '.join(missing)}: they need scikit-learn or LightGBM; "
            "pip install 'vrgcn[sklearn]'"
        )
    with stop_requests() as stop:

        def over() -> bool:
            limit = session.clock.limit
            late = limit is not None and session.clock.used >= SHARE * limit
            return late or stop.signal is not None

        fitted = graph if graph.visible is None else past_of(graph, seed)
        problem = Problem.of(fitted, session.metric, seed, over)
        for name in [*own, *cheap_first(names, problem)]:
            if name in missing or name in session.baselines:
                continue
            slow = name not in own and _too_slow(session, name, problem)
            if session.baselines and (over() or slow):
                continue
            ended = fit_baseline(
                name,
                own[name] if name in own else RECIPES[name],
                problem,
                graph,
                session.folder / BASELINES / name,
                metric=session.metric,
                options=session.options,
                stopped=lambda: stop.signal is not None,
            )
            if ended is not None:
                session.note(ended)
            if stop.signal is not None:
                raise Interrupted(stop.signal, f"stopped at the baseline {name}")
        # Of two with one score, the first counts; so does a search that was resumed.
        order = [*own, *cheap_first(RECIPES, problem)]
        first = {name: session.baselines[name] for name in order if name in session.baselines}
        session.baselines = first | session.baselines


def _too_slow(session: Session, name: str, problem: Problem) -> bool:
    """Return True if a baseline would take longer than baselines may, by its counted seconds and
    those that others took."""
    limit = session.clock.limit
    if limit is None:
        return False
    taken = sum(ended.seconds for ended in session.baselines.values())
    counted = sum(fit_seconds(known, problem) for known in session.baselines)
    slower = max(1.0, taken / counted) if counted else 1.0
    return session.clock.used + slower * fit_seconds(name, problem) > 2 * SHARE * limit


def score_rules(session: Session) -> None:
    """Score the simple rules that stand beside the target on the validation split."""
    clock, before = Clock(), 0.0
    width = session.search.given.model.embedding
    for title, scores in session.target.simple_scores(("val",), width):
        took, before = clock.used - before, clock.used
        session.note(Tried(-1, "complete", scores["val"], {}, 0, took, None, title))
