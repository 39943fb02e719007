"""`vrgcn train`: load a graph, train, write the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from vrgcn.cli.run_options import RunOptions
from vrgcn.data.sources import has_parts
from vrgcn.distributed.config import DistributedConfig
from vrgcn.training.config import at_least


@dataclass(frozen=True)
class TrainOptions(RunOptions):
    """Flags of `vrgcn train`."""

    seeds: int | None = None
    """So many runs that differ in the seed alone, --seed being the first, each a folder in that of
    the run, and a table of their means and deviations. --time-limit is that of each."""
    log: Literal["none", "tensorboard"] = "none"
    """Write the curve as events of TensorBoard too, to `tensorboard` in the run's folder."""
    baseline: bool = True
    """Fit a linear baseline after the training, where that takes some seconds at most, and print
    what it scores."""
    distributed: DistributedConfig = field(default_factory=DistributedConfig)

    takes_parts: ClassVar[bool] = True
    beside: ClassVar[tuple[str, ...]] = (*RunOptions.beside, "baseline")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(2, seeds=self.seeds)


def run(options: TrainOptions) -> None:
    """Train on a graph in one process, or on one of its parts as one of several."""
    if has_parts(options.graph):
        from vrgcn.cli.train_parts import run_train_parts

        run_train_parts(options)
    else:
        from vrgcn.cli.train_graph import run_train_graph

        run_train_graph(options)
