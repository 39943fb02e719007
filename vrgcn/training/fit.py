"""Training: epochs of minibatches, exact evaluation, choice of the best weights."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.devices import find_device, use_threads
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.minibatches import Batch, MiniBatches
from vrgcn.engine.trace import set_mode
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike, build_propagation
from vrgcn.inference.predict import ExactSweeps, propagate_features, propagation_of
from vrgcn.training.config import TrainConfig
from vrgcn.training.monitor import Monitor
from vrgcn.training.objectives import Objective, build_objective
from vrgcn.training.optimizer import build_optimizer


@dataclass(frozen=True)
class Epoch:
    """One point of the curve.

    loss: mean training loss of the epoch's minibatches
    val: validation score after it; None where it was not evaluated
    seconds: training time since the start, evaluation not counted
    age: mean age of the histories in steps; None without histories
    sampled, history_reads: neighbours computed anew, and read from the history, per visited node
    staleness, gradient_noise: see diagnostics.monitor; None where they were not measured
    """

    epoch: int
    loss: float
    val: float | None
    seconds: float
    age: float | None
    sampled: float
    history_reads: float
    staleness: float | None = None
    gradient_noise: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class TrainResult:
    """curve: a point per epoch; epoch: the one whose weights were kept; val, test: their scores;
    seconds: training time, evaluation_seconds, diagnostics_seconds: that of evaluation and of
    diagnostics, not counted in it; weights: the kept weights."""

    curve: list[Epoch]
    epoch: int
    val: float | None
    test: float | None
    seconds: float
    evaluation_seconds: float
    diagnostics_seconds: float
    weights: dict[str, Tensor] = field(repr=False)


def fit(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig | None = None,
    *,
    estimator: Estimator | None = None,
    propagation: PropagationLike | None = None,
    objective: Objective | None = None,
    diagnostics: int | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_batch: Callable[[Batch], None] | None = None,
) -> TrainResult:
    """Train the model in place; it ends with the chosen weights, in evaluation mode.

    estimator, propagation: a composition, matrix or rule of one's own in place of the config's name
    objective: loss and score of one's own in place of those that the graph's labels stand for
    diagnostics: epochs between measurements of staleness and noise, in place of the config's
    on_epoch: called with each point of the curve; on_step: with (steps done, steps in the epoch);
    on_batch: with each minibatch before its step
    """
    config = config or TrainConfig()
    if diagnostics is not None:
        config = replace(config, diagnostics=diagnostics)
    use_threads(config.threads)
    device = find_device(config.device)
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(config.seed)
        objective = objective or build_objective(graph, config)
        training = _Training(model.to(device), graph, config, objective, estimator, propagation)
        training.on_step, training.on_batch = on_step, on_batch
        return training.run(on_epoch)


def build_minibatches(
    model: nn.Module,
    graph: Graph,
    config: TrainConfig,
    *,
    estimator: Estimator | None = None,
    propagation: PropagationLike | None = None,
    objective: Objective | None = None,
) -> MiniBatches:
    """The minibatches that `fit` trains on."""
    objective = objective or build_objective(graph, config)
    return MiniBatches(
        model,
        graph,
        estimator=estimator or config.estimator,
        fanout=config.fanout,
        nodes=objective.visit,
        batch_size=config.batch_size,
        propagation=config.propagation if propagation is None else propagation,
        preprocess=config.preprocess,
        inductive=config.inductive,
        sample_size=config.sample_size,
        history_dtype=config.history_dtype,
        history_cap=config.history_cap,
        seed=config.seed,
    )


class _Training:
    on_step: Callable[[int, int], None] | None = None
    on_batch: Callable[[Batch], None] | None = None

    def __init__(
        self,
        model: nn.Module,
        graph: Graph,
        config: TrainConfig,
        objective: Objective,
        estimator: Estimator | None,
        propagation: PropagationLike | None,
    ) -> None:
        rule = config.propagation or propagation_of(model) if propagation is None else propagation
        self.model = model
        self.graph = graph
        self.config = config
        self.objective = objective
        self.objective.prepare(model)
        self.trained = int(self.objective.trained.sum())
        self.minibatches = build_minibatches(
            model, graph, config, estimator=estimator, propagation=rule, objective=self.objective
        )
        self.refreshed = refreshed_nodes(self.minibatches, config.refresh)
        self.monitor = Monitor(
            model, self.minibatches, config.diagnostics, config.seed, self.objective
        )
        self.optimizer = build_optimizer(model, config)
        self.evaluation = self._evaluation(rule)
        self.seconds = 0.0
        self.evaluation_seconds = 0.0

    def run(self, on_epoch: Callable[[Epoch], None] | None) -> TrainResult:
        curve: list[Epoch] = []
        best, best_weights, behind = None, None, 0
        if self.config.warm_start and self.minibatches.estimator.history:
            start = time.perf_counter()
            self.minibatches.warm_start(self.model)
            self.seconds += time.perf_counter() - start
        for number in range(1, self.config.epochs + 1):
            point = self._epoch(number)
            curve.append(point)
            if on_epoch is not None:
                on_epoch(point)
            if point.val is None:
                continue
            if best is None or best.val is None or self.objective.better(point.val, best.val):
                best, best_weights, behind = point, _copy(self.model), 0
            else:
                behind += 1
            if self.config.patience is not None and behind >= self.config.patience:
                break
        chosen = curve[-1]
        if self.config.select == "best" and best is not None and best_weights is not None:
            chosen = best
            self.model.load_state_dict(best_weights)
        self.model.eval()
        return TrainResult(
            curve,
            chosen.epoch,
            chosen.val,
            self._score(self.graph.test),
            self.seconds,
            self.evaluation_seconds,
            self.monitor.seconds,
            _copy(self.model),
        )

    def _epoch(self, number: int) -> Epoch:
        start = time.perf_counter()
        batches = self.minibatches
        self.model.train()
        if self.refreshed is not None:
            batches.refresh(self.model, self.refreshed)
        total, sampled, reads = 0.0, 0, 0
        for step, batch in enumerate(batches, start=1):
            if self.on_batch is not None:
                self.on_batch(batch)
            total += self._step(batch, number, step)
            sampled += batch.plan.sampled_edges
            reads += batch.plan.history_reads
            if self.on_step is not None:
                self.on_step(step, len(batches))
        self.seconds += time.perf_counter() - start
        reading = self.monitor.after_epoch(number)
        last = number == self.config.epochs
        evaluate = last or number % self.config.evaluate_every == 0
        age = batches.mean_age()
        visited = len(batches.nodes)
        return Epoch(
            epoch=number,
            loss=total / self.trained,
            val=self._score(self.graph.val) if evaluate else None,
            seconds=self.seconds,
            age=None if math.isnan(age) else age,
            sampled=sampled / visited,
            history_reads=reads / visited,
            staleness=reading.staleness,
            gradient_noise=reading.gradient_noise,
        )

    def _step(self, batch: Batch, epoch: int, step: int) -> float:
        """One update; the sum of the loss over the batch's training nodes."""
        in_loss = self.objective.trained[batch.nodes]
        if not in_loss.any():  # the batch only refreshes histories
            # Those of cvd come from its first pass, without dropout: the second is not needed.
            dropout = not self.minibatches.estimator.dropout_residual
            with torch.no_grad(), set_mode(self.model, training=dropout):
                batch.run(self.model)
            batch.commit()
            return 0.0
        outputs = batch.run(self.model)
        self.objective.check_outputs(outputs)
        losses = self.objective.loss(outputs[in_loss], batch.nodes[in_loss]).sum()
        # The expected number of training nodes in a batch, not the number in this one: dividing
        # by the latter would bias the gradient when all nodes are visited. Visiting the training
        # nodes alone, the two are the same.
        visited = len(self.minibatches.nodes)
        loss = losses * (visited / (self.trained * len(batch.nodes)))
        value = losses.item()
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the training loss became {value} at epoch {epoch}, step {step}; lower the "
                f"learning rate (now {self.config.learning_rate:g}) or look at the features' scale"
            )
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        batch.commit()
        return value

    def _evaluation(self, rule: PropagationLike) -> ExactSweeps:
        """Exact evaluation on all edges; it shares what training has already."""
        batches = self.minibatches
        P, preprocessed = batches.P, batches.preprocessed
        if self.config.inductive:
            P = build_propagation(rule, self.graph)
            preprocessed = (
                propagate_features(P, self.graph.features) if batches.preprocess else None
            )
        return ExactSweeps(self.model, self.graph.features, P, preprocessed=preprocessed)

    def _score(self, nodes: Tensor) -> float | None:
        if not len(nodes):
            return None
        start = time.perf_counter()
        value = self.objective.score(self.evaluation.outputs(nodes), nodes)
        self.evaluation_seconds += time.perf_counter() - start
        return value


def refreshed_nodes(batches: MiniBatches, refresh: str) -> Tensor | None:
    """Nodes whose histories to refresh before each epoch (TrainConfig.refresh); None for none."""
    if refresh == "never" or not batches.estimator.history:
        return None
    if refresh == "auto" and batches.samples_neighbours:
        return None
    nodes = batches.unvisited()
    return nodes if len(nodes) else None


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
