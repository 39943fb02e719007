"""`vrgcn train`: loads a graph, trains, writes the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

from vrgcn.cli.early_checks import check_tracker
from vrgcn.cli.run_options import RunOptions
from vrgcn.data.sources import has_parts
from vrgcn.distributed.config import DistributedConfig
from vrgcn.files.settings import at_least


@dataclass(frozen=True)
class TrainOptions(RunOptions):
    """Flags of `vrgcn train`."""

    """Group run."""
    seeds: int | None = None
    """Number of runs that differ only in the seed.

    The first one has --seed. Each run gets a folder inside the run's folder, and a table shows
    their means and standard deviations. --time-limit applies to each run."""
    log: Literal["none", "tensorboard"] = "none"
    """Also write the curve as TensorBoard events, to `tensorboard` in the run's folder."""
    wandb: str | None = None
    """Also send the curve, the settings and the scores to Weights & Biases, as a run of this
    project. WANDB_MODE=offline keeps them in the run's folder."""
    mlflow: str | None = None
    """Also send the curve, the settings and the scores to MLflow, as a run of this experiment,
    where MLFLOW_TRACKING_URI says."""

    """Group evaluation."""
    baseline: bool = True
    """Fit a linear baseline after the training, if that takes a few seconds at most, and print its
    score."""
    distributed: DistributedConfig = field(default_factory=DistributedConfig)

    takes_parts: ClassVar[bool] = True
    beside: ClassVar[tuple[str, ...]] = (*RunOptions.beside, "baseline")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(2, seeds=self.seeds)

    def checked(self) -> Self:
        """Raise if the package of a tracker is missing."""
        for name in ("wandb", "mlflow"):
            if getattr(self, name) is not None:
                check_tracker(name)
        return super().checked()


def run(options: TrainOptions) -> None:
    """Train on a graph in one process, or on one part as one of several processes."""
    if has_parts(options.graph):
        from vrgcn.cli.train_parts import run_train_parts

        run_train_parts(options)
    else:
        from vrgcn.cli.train_graph import run_train_graph

        run_train_graph(options)
