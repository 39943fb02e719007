"""What takes back a change: the steps that restore what each part of it replaced."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


class Undo:
    """Steps that take a change back, the last first."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []

    def add(self, step: Callable[[], None]) -> None:
        self._steps.append(step)

    def write(self, table: Tensor, rows: Tensor, values: Tensor) -> None:
        """Write rows of a table, to be restored. rows: all different"""
        before = table.index_select(0, rows)
        self.add(lambda: _put(table, rows, before))
        _put(table, rows, values)

    def run(self) -> None:
        """Take everything back."""
        while self._steps:
            self._steps.pop()()


def _put(table: Tensor, rows: Tensor, values: Tensor) -> None:
    table.index_copy_(0, rows, values.to(table))
