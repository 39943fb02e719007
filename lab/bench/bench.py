"""Input of all sections: the graph, the amount of work, and earlier results."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track

from lab.bench.scale import Scale
from lab.harness.algorithms import ALGORITHMS, TWO_WAY, Architecture
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph

T = TypeVar("T")
# The algorithms that are compared, in the order of the tables.
COMPARED = {
    name: ALGORITHMS[name]
    for name in (
        *("MLP", "history", TWO_WAY, "two-way-cv"),
        *("CV+PP", "CVD+PP", "NS+PP", "NS (10, 25)", "exact+PP"),
    )
}


@dataclass
class Bench:
    """Input of a section.

    graph: the graph to train on, features scaled
    folder: for files that live as long as the run
    results: of the sections that ran before, by name
    """

    graph: Graph
    scale: Scale
    threads: int
    console: Console
    folder: Path
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def architecture(self) -> Architecture:
        scale = self.scale
        return Architecture(
            hidden=scale.hidden, batch=scale.batch, history_dtype=scale.history_dtype
        )

    def steps(self, slow: bool) -> int:
        """Return the number of steps in a turn."""
        return self.scale.slow_steps if slow else self.scale.steps

    def track(self, items: Sequence[T], what: str) -> Iterator[T]:
        """Yield the items, with a progress bar on a terminal."""
        yield from track(
            items,
            what,
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )

    @cached_property
    def saved_graph(self) -> Path:
        """Save the graph to disk, for processes that map it into memory as training does."""
        return self.save(self.graph, "graph")

    def save(self, graph: Graph, name: str) -> Path:
        path = self.folder / name
        save_graph(graph, path)
        return path


@contextmanager
def scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vrgcn-bench-") as name:
        yield Path(name)
