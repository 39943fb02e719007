"""The beginning of a search: baselines, which have a part of the time; of edges, simple rules.

The cheapest come first. Each of them begins that may end within a fifth of the time. Counted
seconds are rough, so one begins even if it is counted to take somewhat longer. Its fit ends in the
middle, and keeps what it has found so far, when it has taken half of what was left and longer than
was counted: so that one which takes long leaves time for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vrgcn.baselines import RECIPES, Recipe
from vrgcn.baselines.past import past_of
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.work import FIXED, cheap_first, fit_seconds, speed
from vrgcn.files.wording import seconds_text
from vrgcn.runs.folder import BASELINES
from vrgcn.runs.interrupts import Interrupted, stop_requests
from vrgcn.training.clock import Clock
from vrgcn.tuning.members import fit_baseline
from vrgcn.tuning.session import Session
from vrgcn.tuning.study import Tried

SHARE = 0.2  # share of the time after which no baseline is begun, and those begun end
_ROUGH = 3.0  # times what is left that a baseline which is begun may be predicted to take
_HALF, _LONGER = 0.5, 1.5  # share of what is left, or times its prediction, that one may take


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
    part = _Part(session)
    with stop_requests() as stop:

        def over() -> bool:
            return part.over or stop.signal is not None

        fitted = graph if graph.visible is None else past_of(graph, seed)
        problem = Problem.of(fitted, session.metric, seed, over)
        late: dict[str, float] = {}
        for name in [*own, *cheap_first(names, problem)]:
            if name in missing or name in session.baselines:
                continue
            seconds = 0.0 if name in own else _seconds(session, name, problem)
            part.begin(seconds)
            if session.baselines and (over() or seconds > _ROUGH * part.left):
                late[name] = seconds
                continue
            session.leaderboard.doing(f"fitting the baseline {name}")
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
        if late:
            session.on_note(_late_text(late))
        # Of two with one score, the first counts; so does a search that was resumed.
        order = [*own, *cheap_first(RECIPES, problem)]
        first = {name: session.baselines[name] for name in order if name in session.baselines}
        session.baselines = first | session.baselines


class _Part:
    """The part of the time that baselines have. It begins now: loading PyTorch and the graph, which
    a busy machine does slowly, is none of it."""

    def __init__(self, session: Session) -> None:
        self.clock = session.clock
        spent = sum(ended.seconds for ended in session.baselines.values())
        limit = float("inf") if self.clock.limit is None else self.clock.limit
        self._end = self._own_end = self.clock.used + SHARE * limit - spent

    @property
    def left(self) -> float:
        """The seconds that are left for all of them."""
        return self._end - self.clock.used

    def begin(self, seconds: float) -> None:
        """Begin with one that is predicted to take so long."""
        own = max(_HALF * self.left, _LONGER * seconds)
        self._own_end = min(self._end, self.clock.used + own)

    @property
    def over(self) -> bool:
        """True if there is no time left for the one that has begun."""
        return self.clock.used >= self._own_end


def _seconds(session: Session, name: str, problem: Problem) -> float:
    """Return the seconds that a baseline is predicted to take here."""
    taken = {name: ended.seconds for name, ended in session.baselines.items()}
    return FIXED + speed(taken, problem) * fit_seconds(name, problem, taken)


def _late_text(late: Mapping[str, float]) -> str:
    """Name the baselines for which the time was too short."""
    each = ", ".join(f"{name} (about {seconds_text(seconds)})" for name, seconds in late.items())
    return f"no time for the baselines {each}: they have {SHARE:.0%} of the time limit"


def score_rules(session: Session) -> None:
    """Score the simple rules that stand beside the target on the validation split, as far as their
    part of the time allows; the first in any case."""
    clock, before, part = Clock(), 0.0, _Part(session)
    session.leaderboard.doing("scoring simple rules")
    width = session.search.given.model.embedding
    for title, scores in session.target.simple_scores(("val",), width):
        took, before = clock.used - before, clock.used
        session.note(Tried(-1, "complete", scores["val"], {}, 0, took, None, title))
        if part.left <= 0:
            session.on_note(
                f"simple rules had {SHARE:.0%} of the time limit: none is scored after {title}"
            )
            return
        session.leaderboard.doing(f"scoring simple rules, after {title}")
