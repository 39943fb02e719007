"""The leaderboard: trials, best first, as a growing table on a terminal, as lines elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from vrgcn.files.wording import counted, printable, seconds_text
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.tasks.metrics import Metric
from vrgcn.training.clock import Clock
from vrgcn.tuning.study import Tried

SHOWN = 10  # trials on a terminal
_SHORT = {
    "hidden": "width", "layer_norm": "norm", "learning_rate": "rate", "weight_decay": "decay",
}  # fmt: skip
Better = Callable[[float, float], bool]


def ranked(trials: Sequence[Tried], better: Better) -> list[Tried]:
    """Return the trials that have a score and did not fail, best first; of equal scores the earlier
    first. A paused one has the score of the weights that are kept of it."""
    order: list[Tried] = []
    for trial in trials:
        if trial.state in ("complete", "paused") and trial.val is not None:
            place = next(
                (n for n, other in enumerate(order) if better(trial.val, other.val or 0.0)),
                len(order),
            )
            order.insert(place, trial)
    return order


def board(trials: Sequence[Tried], metric: Metric, title: str, shown: int = SHOWN) -> Table:
    """Return a table of the best trials."""
    best = ranked(trials, metric.better)[:shown]
    names = list(dict.fromkeys(name for trial in best for name in trial.values))
    if len(best) > 1:  # a column of one value tells nothing
        networks = [trial.values for trial in best if trial.baseline is None]
        names = [name for name in names if len({str(values.get(name)) for values in networks}) > 1]
    headings = ["trial", metric.title, *(_SHORT.get(name, name) for name in names), "epochs", "s"]
    rows = [
        [
            str(trial.number) if trial.baseline is None else trial.baseline,
            "–" if trial.val is None else metric.text(trial.val),
            *(value_text(trial.values[name]) if name in trial.values else "–" for name in names),
            str(trial.epochs),
            f"{trial.seconds:.1f}",
        ]
        for trial in best
    ]
    return text_table(title, headings, rows)


def summary(trials: Sequence[Tried]) -> str:
    """Return a line such as 23 trials: 9 to their end, 13 paused, 1 failed (1 because …)."""
    fitted = [trial for trial in trials if trial.baseline is not None]
    trials = [trial for trial in trials if trial.baseline is None]
    states = Counter(trial.state for trial in trials)
    parts = [f"{states['complete']} to their end"]
    parts += [f"{states[s]} {s}" for s in ("paused", "failed", "running") if states[s]]
    text = f"{counted(len(trials), 'trial')}: {', '.join(parts)}"
    if fitted:
        text = f"{counted(len(fitted), 'baseline')}; {text}"
    reasons = Counter(trial.reason for trial in (*fitted, *trials) if trial.state == "failed")
    return text + "".join(f"\n  {count} failed: {reason}" for reason, count in reasons.items())


def settings_text(values: dict[str, Any]) -> str:
    """Return settings as text, such as model graphsage, layers 3, width 256, without those that
    are off."""
    on = {name: value for name, value in values.items() if value or name == "dropout"}
    return ", ".join(f"{_SHORT.get(name, name)} {value_text(v)}" for name, v in on.items())


def changes_text(trial: Tried, trials: Sequence[Tried]) -> str:
    """Return the settings of a trial as text: all of the first one, what others have else."""
    first = next((each.values for each in trials if each.number == 0), {})
    if trial.number == 0 or not first:
        return settings_text(trial.values)
    parts = [
        f"{_SHORT.get(name, name)} {value_text(value)}"
        for name, value in trial.values.items()
        if first.get(name) != value
    ]
    return f"as trial 0, but {', '.join(parts)}" if parts else "as trial 0"


def value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


class _Now:
    """The best so far and what is being done, drawn anew with the seconds that have passed: nobody
    has to say that time passes."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.table: Table | None = None
        self.text = "beginning"

    def __rich__(self) -> Group:
        limit = "" if self.clock.limit is None else f" of {_whole(self.clock.limit)}"
        now = Text(f"{self.text}; {_whole(self.clock.used)}{limit} so far")
        return Group(now) if self.table is None else Group(self.table, now)


def _whole(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else seconds_text(seconds)


class Leaderboard:
    """The leaderboard that is shown while a search runs.

    verbose: False shows nothing
    clock: of the search
    """

    def __init__(self, metric: Metric, verbose: bool, clock: Clock) -> None:
        self.metric = metric
        self.verbose = verbose
        console = Console()
        self._now = _Now(clock)
        self._live = Live(self._now, console=console, transient=True, refresh_per_second=4)
        self._drawn = verbose and console.is_terminal
        self._trials: dict[str, Tried] = {}

    def __enter__(self) -> Leaderboard:
        if self._drawn:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._drawn:
            self._live.stop()

    def restore(self, trials: Sequence[Tried]) -> None:
        """Take over the trials of an earlier process."""
        self._trials = {trial.name: trial for trial in trials}
        self._redraw()

    def doing(self, what: str) -> None:
        """Show what the search is doing."""
        self._now.text = what

    def epoch(self, number: int, epoch: int, epochs: int, val: float | None) -> None:
        """Show the progress of a trial."""
        score = "" if val is None else f", {self.metric.title} {self.metric.text(val)}"
        self.doing(f"trial {number}, epoch {epoch}/{epochs}{score}")

    def ended(self, trial: Tried) -> None:
        """Show a trial or a baseline that has ended, or a trial that was paused."""
        self._trials[trial.name] = trial
        self._redraw()
        if not self.verbose:
            return
        parts = (None if trial.state == "complete" else trial.state, trial.reason)
        how = ": ".join(part for part in parts if part is not None)
        score = "–" if trial.val is None else self.metric.text(trial.val)
        best = ranked(list(self._trials.values()), self.metric.better)
        leader = (
            f"best {self.metric.text(best[0].val)} ({best[0].name})"
            if (best and best[0].val is not None)
            else "none yet"
        )
        which = trial.baseline or f"trial {trial.number:>3}"
        line = f"{which}  {score}  {leader}  {how + '; ' if how else ''}"
        if trial.baseline is None:
            line += f"{trial.epochs} epochs, "
        line += seconds_text(trial.seconds)
        if trial.values:
            line += f": {changes_text(trial, list(self._trials.values()))}"
        self._live.console.print(printable(line), highlight=False, markup=False, soft_wrap=True)

    def _redraw(self) -> None:
        if self._drawn and self._trials:
            self._now.table = board(list(self._trials.values()), self.metric, "Best so far")

    def finish(self, table: Table) -> None:
        """Print the final table."""
        if self.verbose:
            self.__exit__()
            self._drawn = False
            print_table(table)
            print(printable(summary(list(self._trials.values())), keep="\n"))
