"""The leaderboard: trials, best first, as a growing table on a terminal, as lines elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from vrgcn.files.wording import printable, seconds_text
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.tasks.metrics import Metric
from vrgcn.tuning.study import Tried

SHOWN = 10  # trials on a terminal
_SHORT = {
    "hidden": "width", "layer_norm": "norm", "learning_rate": "rate", "weight_decay": "decay",
}  # fmt: skip
Better = Callable[[float, float], bool]


def ranked(trials: Sequence[Tried], better: Better, *, pruned: bool = False) -> list[Tried]:
    """Return the finished trials, best first; of equal scores the earlier first.

    pruned: with those that were pruned
    """
    states = ("complete", "pruned") if pruned else ("complete",)
    order: list[Tried] = []
    for trial in trials:
        if trial.state in states and trial.val is not None:
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
    """Return a line such as 23 trials: 9 to their end, 13 pruned, 1 failed (1 because …)."""
    fitted = [trial for trial in trials if trial.baseline is not None]
    trials = [trial for trial in trials if trial.baseline is None]
    states = Counter(trial.state for trial in trials)
    parts = [f"{states['complete']} to their end"]
    parts += [f"{states[s]} {s}" for s in ("pruned", "failed", "running") if states[s]]
    text = f"{len(trials)} trials: {', '.join(parts)}"
    if fitted:
        text = f"{len(fitted)} baselines; {text}"
    reasons = Counter(trial.reason for trial in (*fitted, *trials) if trial.state == "failed")
    return text + "".join(f"\n  {count} failed: {reason}" for reason, count in reasons.items())


def settings_text(values: dict[str, Any]) -> str:
    """Return settings as text, such as model graphsage, layers 3, width 256."""
    return ", ".join(f"{_SHORT.get(name, name)} {value_text(v)}" for name, v in values.items())


def value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


class Leaderboard:
    """The leaderboard that is shown while a search runs.

    verbose: False shows nothing
    """

    def __init__(self, metric: Metric, verbose: bool) -> None:
        self.metric = metric
        self.verbose = verbose
        console = Console()
        self._live = Live(console=console, transient=True, refresh_per_second=4)
        self._drawn = verbose and console.is_terminal
        self._trials: list[Tried] = []

    def __enter__(self) -> Leaderboard:
        if self._drawn:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._drawn:
            self._live.stop()

    def restore(self, trials: Sequence[Tried]) -> None:
        """Take over the trials of an earlier process."""
        self._trials = list(trials)

    def epoch(self, number: int, epoch: int, epochs: int, val: float | None, used: float) -> None:
        """Show the progress of a trial."""
        if self._drawn:
            score = "" if val is None else f", {self.metric.title} {self.metric.text(val)}"
            now = f"trial {number}, epoch {epoch}/{epochs}{score}; {seconds_text(used)} so far"
            table = board(self._trials, self.metric, "Best so far")
            self._live.update(Group(table, Text(now)) if self._trials else Text(now))

    def ended(self, trial: Tried) -> None:
        self._trials.append(trial)
        if not self.verbose:
            return
        parts = (None if trial.state == "complete" else trial.state, trial.reason)
        how = ": ".join(part for part in parts if part is not None)
        score = "–" if trial.val is None else self.metric.text(trial.val)
        best = ranked(self._trials, self.metric.better)
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
            line += f": {settings_text(trial.values)}"
        self._live.console.print(printable(line), highlight=False, markup=False, soft_wrap=True)

    def finish(self, table: Table) -> None:
        """Print the final table."""
        if self.verbose:
            self.__exit__()
            self._drawn = False
            print_table(table)
            print(printable(summary(self._trials), keep="\n"))
