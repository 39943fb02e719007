"""Progress: a bar on a terminal, and of training a plain line per epoch elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from vrgcn.pages.wording import seconds_text

if TYPE_CHECKING:  # an import of tables needs no torch
    from vrgcn.training.metrics import Metric
    from vrgcn.training.state import Epoch


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A bar that is seen on a terminal while it runs, and nowhere else.

    columns: what it shows, if not what rich shows by default
    """
    console = Console()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


class EpochProgress:
    """Shows each epoch's steps while it runs, and its numbers when it is done."""

    def __init__(self, epochs: int, metric: Metric) -> None:
        self.epochs = epochs
        self.metric = metric
        self.number = 1
        self._bar = progress_bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        )
        self._task = self._bar.add_task(self._title(), total=None)

    def __enter__(self) -> EpochProgress:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def step(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def epoch(self, point: Epoch) -> None:
        self._bar.console.print(self._line(point), highlight=False, markup=False, soft_wrap=True)
        self.number = point.epoch + 1
        if self.number <= self.epochs:
            self._bar.reset(self._task, description=self._title())

    def _title(self) -> str:
        return f"epoch {self.number}/{self.epochs}"

    def _line(self, point: Epoch) -> str:
        parts = [f"epoch {point.epoch:>{len(str(self.epochs))}}", f"loss {point.loss:.4f}"]
        if point.val is not None:
            parts.append(f"validation {self.metric.title} {self.metric.text(point.val)}")
        if point.age is not None:
            parts.append(f"history age {point.age:.1f} steps")
        if point.staleness is not None:
            parts.append(f"staleness {point.staleness:.3f}")
        if point.gradient_staleness is not None:
            parts.append(f"of gradients {point.gradient_staleness:.3f}")
        if point.gradient_noise is not None:
            parts.append(f"gradient noise {point.gradient_noise:.3g}")
        parts.append(seconds_text(point.seconds))
        return "  ".join(parts)
