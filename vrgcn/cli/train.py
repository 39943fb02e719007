"""`vrgcn train`: loads a graph, trains, writes the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from vrgcn.cli import STARTED
from vrgcn.cli.command import Options
from vrgcn.cli.shared_flags import GraphOrDataset, with_graph
from vrgcn.data.sources import has_parts
from vrgcn.distributed.config import DistributedConfig
from vrgcn.files.settings import declared
from vrgcn.runs.config_file import flatten
from vrgcn.runs.run_settings import RunSettings, TrainSettings


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


@dataclass(frozen=True)
class TrainOptions(TrainSettings, RunOptions):
    """Flags of `vrgcn train`."""

    distributed: DistributedConfig = field(default_factory=DistributedConfig)

    takes_parts: ClassVar[bool] = True

    def as_dict(self) -> dict[str, Any]:
        """Return every setting by name; those of several processes only for a graph in parts."""
        left_out = () if has_parts(self.graph) else (*flatten(self.distributed),)
        return {k: v for k, v in super().as_dict().items() if k not in left_out}


def run(options: TrainOptions) -> None:
    """Train on a graph in one process, or on one part as one of several processes."""
    if has_parts(options.graph):
        from vrgcn.cli.train_parts import run_train_parts

        run_train_parts(options)
        return
    from vrgcn.training.progress import working

    with working("loading PyTorch"):
        from vrgcn.pages.runs.seeds import print_seeds
        from vrgcn.runs.training import run_training

    folder = run_training(options, verbose=True, begun=STARTED)
    if options.seeds is not None:
        print_seeds(folder)
