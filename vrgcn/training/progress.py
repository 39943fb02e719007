"""Progress: a bar on a terminal and in a notebook, and of training a line per epoch anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, ParamSpec

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from vrgcn.files.sizes import bytes_text
from vrgcn.training.callbacks import StopTraining
from vrgcn.training.wording import seconds_text

if TYPE_CHECKING:  # an import of tables needs no torch
    from vrgcn.training.callbacks import Callbacks
    from vrgcn.training.metrics import Metric
    from vrgcn.training.state import Epoch


P = ParamSpec("P")


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A bar that is seen on a terminal or in a notebook while it runs, and nowhere else.

    columns: what it shows, if not what rich shows by default
    """
    console = Console()
    # rich draws in a notebook by ipywidgets, and complains where they are not installed.
    drawn = console.is_jupyter and find_spec("ipywidgets") is not None
    hidden = not (console.is_terminal or drawn)
    return Progress(*columns, console=console, transient=True, disable=hidden)


class EpochProgress:
    """Shows each epoch's steps while it runs, and its numbers when it is done."""

    def __init__(self, epochs: int, metric: Metric) -> None:
        self.epochs = epochs
        self.metric = metric
        self.number = 1
        self._bar = progress_bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),  # of the epoch, by the steps of the last half minute
        )
        self._task = self._bar.add_task(self._title(), total=None)

    def __enter__(self) -> EpochProgress:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def beside(self, callbacks: Callbacks) -> Callbacks:
        """The same callbacks, the progress told after them."""
        return replace(
            callbacks,
            on_epoch=_both(callbacks.on_epoch, self.epoch),
            on_step=_both(callbacks.on_step, self.step),
            on_restore=_both(callbacks.on_restore, self.restore),
        )

    def step(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def epoch(self, point: Epoch) -> None:
        console, line = self._bar.console, self._line(point)
        if console.is_jupyter:  # one output that grows, where rich would make one of each line
            print(line)
        else:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._begin(point.epoch + 1)

    def restore(self, curve: list[Epoch]) -> None:
        self._begin(len(curve) + 1)

    def _begin(self, epoch: int) -> None:
        self.number = epoch
        if epoch <= self.epochs:
            self._bar.reset(self._task, description=self._title())

    def _title(self) -> str:
        return f"epoch {self.number}/{self.epochs}"

    def _line(self, point: Epoch) -> str:
        parts = [f"epoch {point.epoch:>{len(str(self.epochs))}}", f"loss {point.loss:.4f}"]
        if point.val is not None:
            parts.append(f"validation {self.metric.title} {self.metric.text(point.val)}")
        if point.age is not None:
            parts.append(f"history age {point.age:.1f} steps")
        if point.halo_age is not None:
            parts.append(f"of copies {point.halo_age:.1f}")
        if point.exchanged is not None:
            parts.append(f"sent {bytes_text(point.exchanged)}")
        if point.staleness is not None:
            parts.append(f"staleness {point.staleness:.3f}")
        if point.gradient_staleness is not None:
            parts.append(f"of gradients {point.gradient_staleness:.3f}")
        if point.gradient_noise is not None:
            parts.append(f"gradient noise {point.gradient_noise:.3g}")
        parts.append(seconds_text(point.seconds))
        return "  ".join(parts)


def _both(first: Callable[P, None] | None, second: Callable[P, None]) -> Callable[P, None]:
    """Calls both, one after the other."""
    if first is None:
        return second
    called = first

    def both(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            called(*args, **kwargs)
        except StopTraining:  # the last epoch is shown like the others
            second(*args, **kwargs)
            raise
        second(*args, **kwargs)

    return both
