"""The algorithms that are compared: one table for the paper's tables and for the bench, and one of
them in training, a few steps at a time.

`Algorithm` trains the paper's architecture for Reddit: GraphSAGE, two graph layers of two dense
layers each, LayerNorm, dropout .2, Adam at .01 unless said otherwise, inductive. The MLP has the
same widths, batches and dropout: it is the same model under P = I, which reads each node's features
twice and no neighbour.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch

from vrgcn.engine.batch import Batch
from vrgcn.engine.estimators import find_estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_dense
from vrgcn.models.models import GraphSAGE
from vrgcn.training.objective import loss_per_node
from vrgcn.training.weight_average import WeightAverage


@dataclass(frozen=True)
class Recipe:
    """A way to train.

    preprocess: PP, the features are averaged once
    propagation: None: the model's own matrix; "identity": P = I, which makes an MLP of the same
        dense layers, the limit of speed
    order: of dropout and propagation: "before" is the paper's M0, "after" its M1
    fanout: from the input up; None: as the estimator or the paper's setting has it
    slow: it computes so many neighbours that it takes fewer steps in a turn
    rates: learning rates to choose from for time to accuracy
    """

    estimator: str
    preprocess: bool = True
    propagation: str | None = None
    order: Literal["after", "before"] = "after"
    fanout: tuple[int, ...] | None = None
    slow: bool = False
    rates: tuple[float, ...] = (0.01,)


RATES = (0.003, 0.005, 0.01)
EXACT = Recipe("exact", slow=True, rates=RATES)

# Ours, beside the paper's algorithms; the second without a moving frame.
TWO_WAY, RAW_TWO_WAY = "two-way", "two-way, raw"

# By the names that records, bench.json and pages have.
ALGORITHMS = {
    "MLP": Recipe("exact", propagation="identity"),
    "M0": Recipe("exact", preprocess=False, order="before", slow=True),
    "M1": Recipe("exact", preprocess=False, slow=True),
    "M1+PP": EXACT,
    "Exact": Recipe("exact", preprocess=False, slow=True),
    "Exact+PP": EXACT,
    "exact+PP": EXACT,  # the bench's name of it
    "NS": Recipe("ns", preprocess=False),
    "NS+PP": Recipe("ns"),
    # GraphSAGE's 25 neighbours of a node and 10 of each of them.
    "NS (10, 25)": Recipe("ns", preprocess=False, fanout=(10, 25), slow=True),
    "IS+PP": Recipe("is"),
    "CV+PP": Recipe("cv"),
    "CVD+PP": Recipe("cvd", rates=RATES),
    "history": Recipe("history"),
    TWO_WAY: Recipe("two-way", rates=RATES),
    RAW_TWO_WAY: Recipe("few/corrected/corrected/raw", rates=RATES),
    "two-way-cv": Recipe("two-way-cv", rates=RATES),
}


@dataclass(frozen=True)
class Architecture:
    """Widths and depth of the model, nodes in a minibatch, precision of the histories."""

    hidden: int = 128
    layers: int = 2
    dense: int = 2
    batch: int = 512
    dropout: float = 0.2
    history_dtype: str = "float16"
    transform_first: bool = False

    def model(self, graph: Graph, seed: int = 0, order: str = "after") -> GraphSAGE:
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            return GraphSAGE(
                graph.num_features,
                self.hidden,
                graph.num_classes,
                layers=self.layers,
                dense=self.dense,
                dropout=self.dropout,
                order=order,
                layer_norm=True,
                transform_first=self.transform_first,
                sparse_features=not is_dense(graph.features),
            )


class Algorithm:
    """A model in training by one recipe."""

    diverged: str | None = None  # not checked here

    def __init__(
        self,
        graph: Graph,
        recipe: Recipe,
        architecture: Architecture,
        *,
        inductive: bool = True,
        seed: int = 0,
        learning_rate: float = 0.01,
        average_weights: bool = False,
    ) -> None:
        """average_weights: score an average of the weights, as training does by default"""
        self.recipe, self.average_weights = recipe, average_weights
        model = architecture.model(graph, seed, recipe.order)
        # Gradients with a history pass through unlabelled nodes too.
        through = find_estimator(recipe.estimator).gradient_history and not inductive
        batches = MiniBatches(
            model,
            graph,
            nodes="all" if through else "train",
            estimator=recipe.estimator,
            propagation=recipe.propagation,
            fanout=recipe.fanout,
            preprocess=recipe.preprocess,
            batch_size=architecture.batch,
            inductive=inductive,
            history_dtype=architecture.history_dtype,
            seed=seed,
        )
        self._start(model, batches, learning_rate)

    def _start(self, model: GraphSAGE, batches: MiniBatches, learning_rate: float) -> None:
        self.model, self.batches = model, batches
        self.optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
        self.average = WeightAverage(model, len(batches)) if self.average_weights else None
        self._stream = self._endless()

    def sibling(self, learning_rate: float) -> Algorithm:
        """Return the same algorithm before its first step, at another learning rate; P and P X are
        shared."""
        assert not self.batches.step, "its model has been trained already"
        other = copy.copy(self)
        batches = self.batches.sibling(self.recipe.estimator)
        other._start(copy.deepcopy(self.model), batches, learning_rate)
        return other

    @property
    def propagation(self) -> str | None:
        return self.recipe.propagation

    @property
    def steps_per_epoch(self) -> int:
        return len(self.batches)

    def run(self, steps: int) -> float:
        """Run some steps; return their seconds, from drawing plans to writing histories."""
        start = time.perf_counter()
        for _ in range(steps):
            self.step(self.batch())
        return time.perf_counter() - start

    def batch(self) -> Batch:
        """Return the next minibatch, epoch after epoch."""
        return next(self._stream)

    def step(self, batch: Batch) -> None:
        if not batch.needs_gradient:
            batch.renew(self.model)
            batch.commit()
            return
        assert batch.labels is not None
        outputs, labels = batch.run(self.model), batch.labels
        if len(self.batches.nodes) > len(self.batches.graph.train):
            outputs, labels = outputs[batch.in_loss], labels[batch.in_loss]
        loss = batch.mean(loss_per_node(outputs, labels))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.average is not None:
            self.average.stepped(self.batches.step + 1)
        batch.commit()

    def evaluated(self) -> AbstractContextManager[None]:
        """Give the model the averaged weights inside this context if they are averaged."""
        return nullcontext() if self.average is None else self.average.applied()

    def milliseconds(self, steps: int) -> float:
        """Return the mean time of a step in a turn.

        One more step comes first and is not counted: it brings this algorithm's tables back into
        the caches, and pays for a batch that was planned ahead in the turn before.
        """
        self.run(1)
        return self.run(steps) / steps * 1e3

    def _endless(self) -> Iterator[Batch]:
        while True:
            yield from self.batches
