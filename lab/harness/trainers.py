"""`Trainer`, some steps at a time, for callers that decide when it ends."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from torch import nn

from vrgcn.graph.graph import Graph
from vrgcn.targets.opening import find_target
from vrgcn.training.config import TrainConfig
from vrgcn.training.trainer import Trainer

_NEVER = 1_000_000  # epochs


class EndlessTrainer:
    """A trainer that never ends, never validates and measures only its seconds.

    diverged: the error's text, once the loss became infinite
    """

    def __init__(self, model: nn.Module, graph: Graph, config: TrainConfig) -> None:
        endless = replace(config, epochs=_NEVER, evaluate_every=_NEVER, diagnostics=0)
        self.trainer = Trainer(model, graph, endless, find_target(graph, endless))
        self.diverged: str | None = None

    @property
    def model(self) -> nn.Module:
        return self.trainer.model

    @property
    def propagation(self) -> str | None:
        return self.trainer.config.propagation

    @property
    def steps_per_epoch(self) -> int:
        return len(self.trainer.minibatches)

    @property
    def seconds(self) -> float:
        """Seconds of all steps so far."""
        return self.trainer.progress.seconds

    @property
    def epochs(self) -> float:
        """Epochs so far, including the part of the current one."""
        return self.trainer.minibatches.step / self.steps_per_epoch

    def evaluated(self) -> AbstractContextManager[None]:
        """Give the model the averaged weights inside this context if the config averages them."""
        average = self.trainer.average
        return nullcontext() if average is None else average.applied()

    def run(self, steps: int) -> float:
        """Make this many steps, or fewer if it diverges; return their seconds."""
        before = self.seconds
        try:
            for _ in range(steps):
                self.trainer.advance()
        except FloatingPointError as error:  # a result too: it does not converge
            self.diverged = str(error)
        return self.seconds - before
