"""Flags that `vrgcn train` and `vrgcn tune` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from vrgcn.cli.command import Options
from vrgcn.cli.shared_flags import GraphOrDataset, with_graph
from vrgcn.files.settings import declared
from vrgcn.runs.run_settings import RunSettings


@dataclass(frozen=True)
class RunOptions(RunSettings, Options):
    """The settings of a run, and a graph by one word."""

    """Group graph."""
    graph_or_dataset: GraphOrDataset = declared(None, of_command=True)

    # True if the command also accepts a graph in parts.
    takes_parts: ClassVar[bool] = False

    def checked(self) -> Self:
        """Resolve the graph; raise if the folder could not be written or holds another run."""
        return super(RunOptions, with_graph(self, parts=self.takes_parts)).checked()
