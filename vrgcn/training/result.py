"""The result of a training run: scores, the curve, the kept weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import seconds_text
from vrgcn.tasks.metrics import Metric
from vrgcn.training.state import Epoch

Stopped = Literal["epochs", "patience", "time", "callback"]


@dataclass
class TrainResult:
    """The result of a training run.

    curve: a point per epoch
    epoch: the epoch whose weights were kept; val, test: their scores
    seconds: training time; evaluation_seconds, diagnostics_seconds, checkpoint_seconds: time of
        evaluation, of diagnostics and of writing checkpoints, which are not part of it
    weights: the kept weights
    metric: the metric of val and test
    unsmoothed: if the model's predictions are corrected and smoothed, the validation score without
        that; None if they are not
    race_seconds: what a race took that chose this training among others, beside it; compared: their
        validation scores by name
    stopped: the reason why training ended: its epochs, patience, its time limit, or a callback that
        raised StopTraining
    """

    curve: list[Epoch]
    epoch: int
    val: float | None
    test: float | None
    seconds: float
    evaluation_seconds: float
    diagnostics_seconds: float
    weights: dict[str, Tensor] = field(repr=False)
    metric: Metric = field(repr=False)
    checkpoint_seconds: float = 0.0
    stopped: Stopped = "epochs"
    unsmoothed: float | None = None
    race_seconds: float = 0.0
    compared: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return three lines: the scores, the loss, the time."""
        test = "no test nodes"
        if self.test is not None:
            test = f"test {self.metric.title} {self.metric.text(self.test)}"
        kept = f"kept epoch {self.epoch} of {len(self.curve)}"
        if self.val is not None:
            kept += f", validation {self.metric.title} {self.metric.text(self.val)}"
        if self.unsmoothed is not None:
            kept += f", before smoothing {self.metric.text(self.unsmoothed)}"
        first, last = self.curve[0], self.curve[-1]
        race = f", {seconds_text(self.race_seconds)} of other candidates" * bool(self.compared)
        return (
            f"{test} ({kept})\n"
            f"training loss {first.loss:.4f} in the first epoch, {last.loss:.4f} in the last\n"
            f"{seconds_text(self.seconds)} of training, "
            f"{seconds_text(self.evaluation_seconds)} of exact evaluation{race}"
        )

    def plot(self) -> Any:
        """Draw the training loss and, if there are validation nodes, their score over the epochs,
        one panel each; return matplotlib's axes. A notebook shows them; a script calls
        `matplotlib.pyplot.show()`, or `result.plot()[0].figure.savefig(path)`."""
        check_drawing()
        from matplotlib import pyplot

        scored = [point for point in self.curve if point.val is not None]
        panels = 2 if scored else 1
        _, grid = pyplot.subplots(
            1, panels, figsize=(5 * panels, 3.5), layout="constrained", squeeze=False
        )
        axes = grid[0]
        axes[0].plot([point.epoch for point in self.curve], [point.loss for point in self.curve])
        axes[0].set(xlabel="epoch", ylabel="training loss")
        if scored:
            axes[1].plot([point.epoch for point in scored], [point.val for point in scored])
            axes[1].axvline(self.epoch, color="grey", linestyle=":", label="kept")
            axes[1].set(xlabel="epoch", ylabel=f"validation {self.metric.title}")
            axes[1].legend()
        for panel in axes:
            panel.xaxis.get_major_locator().set_params(integer=True)
            panel.grid(alpha=0.3)
        return axes


def check_drawing() -> None:
    """Raise if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError("drawing needs matplotlib: pip install 'vrgcn[plots]'") from None
