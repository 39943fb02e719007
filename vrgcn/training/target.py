"""What a training asks of what is predicted: `Target`. Its kinds are in vrgcn/targets/."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from vrgcn.engine.batch import Batch
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.graph import Graph
from vrgcn.tasks.metrics import Metric


class Target(Protocol):
    """What is predicted on a graph, and how it is learned and scored.

    name: a checkpoint stores it, so that another target cannot resume the run
    outputs: columns that the model must have; 0 for embeddings of any width
    visit: nodes that an epoch visits, as `MiniBatches` takes them: "train", "all" or node ids; or
        "auto", which lets the estimator decide between the first two
    trained: (nodes,) bool, the nodes that count in the loss
    metric: the score that is reported, and that decides which epoch is the best
    centre: the value around which good outputs lie; errors are reported relative to it
    warning: what the last evaluation found wrong with the outputs; None for nothing
    tested: False if the test split is not to be scored, as in the trials of a search
    """

    name: str
    outputs: int
    visit: Any
    trained: Tensor
    metric: Metric
    centre: float
    warning: str | None
    tested: bool

    def prepare(self, model: nn.Module) -> None:
        """Give the model what it has to know before training; check that it can learn this."""

    def minibatches(self, model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
        """Return the minibatches that compute the loss; settings: those of `MiniBatches`."""

    def check_outputs(self, outputs: Tensor) -> None:
        """Raise if outputs do not have the right shape."""

    def losses(self, batch: Batch, outputs: Tensor) -> Tensor:
        """Return the losses that `batch.mean` takes."""

    def has(self, split: str) -> bool:
        """Return True if a split has anything that may be scored."""

    def nodes(self, split: str) -> Tensor | None:
        """Return the nodes whose outputs `score_split` needs; None for all."""

    def score_split(self, model: nn.Module, outputs: Tensor, split: str) -> float:
        """Return the metric of a split, from a model's outputs for its `nodes`."""

    def better(self, score: float, other: float) -> bool:
        """Return True if a score is better than another."""

    def rules(self, model: nn.Module, graph: Graph) -> tuple[str, ...]:
        """Return what training does against leaks, a sentence each."""

    def simple_scores(
        self, splits: Sequence[str], width: int
    ) -> Iterator[tuple[str, Mapping[str, float]]]:
        """Yield simple rules to stand beside the model: their name and their score of each split.

        width: of the model's embeddings
        """

    def scoring_work(self, steps: int) -> float:
        """Return the work of scoring in an epoch of so many steps, in nodes that take as long."""
