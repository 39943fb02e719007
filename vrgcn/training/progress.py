"""Progress: a bar on a terminal and in a notebook. Elsewhere, as in the log of a job, a line every
ten seconds. Training prints a line per epoch everywhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from vrgcn.files.wording import bytes_text, seconds_text
from vrgcn.training.listener import Listener

if TYPE_CHECKING:  # importing tables needs no torch
    from vrgcn.tasks.metrics import Metric
    from vrgcn.training.state import Epoch


_EVERY = 10.0  # seconds between two lines where there is no bar
_SPEED = 300.0  # seconds over which speed is measured for the time left: a disk's speed changes


class _Told(Progress):
    """Prints progress as lines if there is no bar."""

    _told: float | None = None

    def update(self, task_id: TaskID, **changes: Any) -> None:
        super().update(task_id, **changes)
        self._tell(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._tell(task_id)

    def heard(self) -> None:
        """Count from now on: something else was printed."""
        self._told = self.get_time()

    def _tell(self, task_id: TaskID) -> None:
        now = self.get_time()
        if self._told is None:
            self._told = now
        if not self.disable or now - self._told < _EVERY:
            return
        self._told = now
        task = self._tasks[task_id]
        taken, left = task.elapsed or 0.0, _left(task)
        done = "" if task.total is None else f"{task.percentage:.0f}% after "
        line = f"{task.description}: {done}{_clock(taken)}"
        line = line if left is None else f"{line}, about {_clock(left)} left"
        print(line, file=sys.stderr, flush=True)


class TimeLeftColumn(ProgressColumn):
    """Column with the remaining time, also for tasks that advance in large pieces."""

    def render(self, task: Task) -> Text:
        left = _left(task)
        return Text("-:--:--" if left is None else _clock(left), style="progress.remaining")


def _left(task: Task) -> float | None:
    """Return the remaining seconds at the speed of the last minutes, or at the mean speed for tasks
    that advance in large pieces."""
    if task.time_remaining is not None or not task.completed or task.remaining is None:
        return task.time_remaining
    return (task.elapsed or 0.0) / task.completed * task.remaining


def _clock(seconds: float) -> str:
    """Format seconds as 0:02:03."""
    return str(timedelta(seconds=round(seconds)))


def progress_bar(*columns: ProgressColumn) -> _Told:
    """Return a bar for a terminal or a notebook; elsewhere it prints a line every minute.

    columns: the columns of the bar; None: rich's defaults
    """
    console = Console()
    # rich draws with ipywidgets in a notebook, and complains if they are not installed.
    drawn = console.is_jupyter and find_spec("ipywidgets") is not None
    hidden = not (console.is_terminal or drawn)
    usual = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeLeftColumn())
    return _Told(
        *(columns or usual),
        console=console,
        transient=True,
        disable=hidden,
        speed_estimate_period=_SPEED,
    )


@contextmanager
def counting_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that advances a bar by some work, of the total that its first call gives."""
    with progress_bar() as progress:

        def advance(done: int, total: int) -> None:
            if not progress.tasks:
                progress.add_task(what, total=total)
            progress.advance(progress.task_ids[0], done)

        yield advance


@contextmanager
def working(what: str, *, shown: bool = True) -> Iterator[None]:
    """Show that something of unknown length is done, and since when: on a terminal from the first
    moment, elsewhere a line every so many seconds.

    shown: False: show nothing
    """
    if not shown:
        yield
        return
    bar = progress_bar(TextColumn("{task.description} ..."), TimeElapsedColumn())
    task = bar.add_task(what, total=None)
    bar.update(task)
    over = Event()

    def tell() -> None:
        while not over.wait(_EVERY):
            bar.update(task)

    with bar:
        teller = Thread(target=tell, daemon=True)
        if bar.disable:
            teller.start()
        try:
            yield
        finally:
            over.set()
            if bar.disable:
                teller.join()


_FILLED = {"features": "scaling the features", "averages": "averaging over neighbours"}


def filling_bars() -> Callable[[str, float], None]:
    """Return an `on_fill` function for `open_graph` that shows progress while tables beside a graph
    are filled."""
    running: dict[str, tuple[_Told, TaskID]] = {}

    def tell(what: str, done: float) -> None:
        if what not in running:
            bar = progress_bar()
            name = _FILLED[what.partition(" ")[0]]
            running[what] = bar, bar.add_task(f"{name}, once", total=1.0)
            bar.start()
        bar, task = running[what]
        bar.update(task, completed=done)
        if done >= 1:
            bar.stop()

    return tell


class EpochProgress(Listener):
    """Shows each epoch's steps while it runs, and its numbers when it is done."""

    def __init__(self, epochs: int, metric: Metric, name: str = "") -> None:
        """name: of the training, while several take turns"""
        self.epochs = epochs
        self.metric = metric
        self.name = name
        self.number = 1
        self._bar = progress_bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeLeftColumn(),  # of the epoch, from the steps of the last half minute
        )
        self._task = self._bar.add_task(self._title(), total=None)
        self._evaluating = self._bar.add_task("", total=None, visible=False)

    def __enter__(self) -> EpochProgress:
        self._bar.heard()
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def alone(self) -> None:
        """Leave the name out from now on: no other training takes turns any more."""
        self.name = ""
        self._begin(self.number)

    def step(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def begin_evaluation(self, nodes: int) -> None:
        """Start the bar of an evaluation whose sweeps cover this many nodes in total."""
        self._bar.reset(
            self._evaluating, total=nodes, visible=True, description=f"{self._title()}, evaluating"
        )

    def evaluated(self, nodes: int) -> None:
        """Advance the bar of the evaluation by this many nodes."""
        self._bar.advance(self._evaluating, nodes)
        if self._bar.tasks[self._evaluating].finished:
            self._bar.update(self._evaluating, visible=False)

    def epoch(self, point: Epoch) -> None:
        console, line = self._bar.console, self._line(point)
        if console.is_jupyter:  # one output that grows; rich would make one for each line
            print(line)
        else:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._bar.heard()
        self._begin(point.epoch + 1)

    def restore(self, curve: list[Epoch]) -> None:
        self._begin(len(curve) + 1)

    def _begin(self, epoch: int) -> None:
        self.number = epoch
        if epoch <= self.epochs:
            self._bar.reset(self._task, description=self._title())

    def _title(self) -> str:
        return f"{self._named}epoch {min(self.number, self.epochs)}/{self.epochs}"

    @property
    def _named(self) -> str:
        return f"{self.name}: " if self.name else ""

    def _line(self, point: Epoch) -> str:
        epoch = f"{self._named}epoch {point.epoch:>{len(str(self.epochs))}}"
        parts = [epoch, f"loss {point.loss:.4f}"]
        if point.val is not None:
            parts.append(f"validation {self.metric.title} {self.metric.text(point.val)}")
        measured = {
            "history age {:.1f} steps": point.age,
            "of copies {:.1f}": point.halo_age,
            "sent {}": None if point.exchanged is None else bytes_text(point.exchanged),
            "staleness {:.3f}": point.staleness,
            "of gradients {:.3f}": point.gradient_staleness,
            "gradient noise {:.3g}": point.gradient_noise,
        }
        parts += [text.format(value) for text, value in measured.items() if value is not None]
        parts.append(seconds_text(point.seconds))
        return "  ".join(parts)
