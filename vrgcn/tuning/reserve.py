"""The seconds that the end of a search takes, counted from what members cost in this run.

At the end the models of the average predict all nodes once, the average is chosen, which computes
the metric thousands of times, and the models are written. Both are timed while the search runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vrgcn.tuning.caruana import evaluations
from vrgcn.tuning.leaderboard import ranked
from vrgcn.tuning.members import GROUPS
from vrgcn.tuning.study import Tried

if TYPE_CHECKING:
    from vrgcn.tuning.session import Session

_AVERAGED = 10  # members that an average is expected to have
_ALL_NODES = 1.4  # times as long as the validation nodes all nodes take
_SMOOTHING = 0.05  # share of the limit that correcting and smoothing may take
_FIXED, _SHARE = 1.0, 0.01  # seconds, and share of the limit, for files and what is not counted


def reserve(session: Session) -> float:
    """Return the seconds that the end of a search is expected to take."""
    limit = session.clock.limit
    if limit is None:
        return 0.0
    order = ranked([member.tried for member in session.members()], session.target.better)
    seconds = _FIXED + _SHARE * limit
    if not session.averages or not order:  # the best scores the test edges, often more than these
        return seconds + 2 * predicting(order[:1])
    seconds += min(session.smoothing_seconds, _SMOOTHING * limit)
    scores = GROUPS * len(order) + evaluations(len(order), len(session.graph.val))
    # The trial that is trained now predicts the validation nodes once more.
    seconds += max(model.predicting_seconds for model in order)
    return seconds + predicting(order[:_AVERAGED]) + session.metric_seconds * scores


def predicting(models: Iterable[Tried]) -> float:
    """Return the seconds in which some models predict all nodes."""
    return _ALL_NODES * sum(model.predicting_seconds for model in models)
