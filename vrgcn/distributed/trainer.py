"""Training by several processes, each with a part of the graph: the differences to one process.

Every process makes the same steps at the same time. The weights' gradients are summed over the
processes, each of which divides its loss by the size of the union of the minibatches: so the sum is
the gradient of the union's mean loss, and all processes make the same update.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from vrgcn import __version__
from vrgcn.distributed.config import DistributedConfig
from vrgcn.distributed.group import Group
from vrgcn.distributed.halo import Halo
from vrgcn.distributed.minibatches import PartMiniBatches
from vrgcn.distributed.parts import Part
from vrgcn.distributed.support import check_config, check_estimator, check_model
from vrgcn.distributed.sweeps import PartSweeps
from vrgcn.engine.batch import Batch
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.samplers import SETTINGS
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import AUTO
from vrgcn.files.tensors import pieces
from vrgcn.graph.graph import Graph
from vrgcn.graph.randomness import RandomNumbers
from vrgcn.targets.labels import Labels
from vrgcn.tasks import find_task
from vrgcn.training.components import Components, look_at, refreshed_nodes, visited_nodes
from vrgcn.training.config import TrainConfig
from vrgcn.training.listener import Listener
from vrgcn.training.monitor import Monitor, Reading
from vrgcn.training.objective import TaskObjective
from vrgcn.training.state import Epoch
from vrgcn.training.target import Target
from vrgcn.training.trainer import Trainer, note_training

TRAFFIC = ("rows", "slots", "counts", "gradients", "moves")  # purposes of the bytes that steps send


class PartTrainer(Trainer):
    """The trainer of one of several processes.

    part: the part of this process, one for each process of the group
    graph: the part's graph, its features scaled
    """

    minibatches: PartMiniBatches

    def __init__(
        self,
        model: nn.Module,
        part: Part,
        graph: Graph,
        config: TrainConfig,
        distributed: DistributedConfig,
        group: Group,
        *,
        estimator: Estimator | None = None,
        listener: Listener | None = None,
    ) -> None:
        if config.estimator == AUTO:  # exact training needs the whole graph
            config = replace(config, estimator="two-way")
        # First of all: processes that differ would not even exchange the same tensors.
        check_agreement(
            group,
            {
                "vrgcn": __version__,
                "PyTorch": torch.__version__,
                "parts": part.checksum,
                "settings": repr((config, distributed)),
                "weights": weights_digest(model.state_dict()),
            },
        )
        check_model(model)
        self.part = part
        self.group = group
        self.distributed = distributed
        self.halo = Halo(part, group)
        objective = part_objective(graph, config, part.shared)
        self._metric, target = objective.metric, Labels(objective, graph)
        check_config(config, graph, group, visited_nodes(config, target, estimator))
        self._splits = {
            name: int(count)
            for name, count in zip(
                ("train", "val", "test"),
                group.total(len(graph.train), len(graph.val), len(graph.test)),
                strict=True,
            )
        }
        note_training(model, graph, config)
        target.prepare(model)
        batches = self._minibatches(model, graph, config, target, estimator)
        self.sweeps = PartSweeps(model, batches.setup, self.halo)
        components = Components(
            batches,
            self._refreshed(batches, config),
            Monitor(model, batches, 0, config.seed, target),  # copies are measured instead
            self.sweeps,
            RandomNumbers(
                batches.seed, batches.setup.device, default=batches.setup.training.default_random
            ),
            self._splits["train"],
            batches.visited,
            self._splits["val"] > 0,
        )
        super().__init__(model, graph, config, target, components=components, listener=listener)
        self._check_metric()
        self._sent = 0

    def _minibatches(
        self,
        model: nn.Module,
        graph: Graph,
        config: TrainConfig,
        target: Target,
        estimator: Estimator | None,
    ) -> PartMiniBatches:
        setup = look_at(model, graph, config)
        setup.fill()
        batches = PartMiniBatches(
            model,
            graph,
            self.halo,
            self.distributed,
            estimator=estimator or config.estimator,
            fanout=config.fanout,
            nodes=visited_nodes(config, target, estimator),
            trained=target.trained,
            batch_size=config.batch_size,
            setup=setup,
            sampling={name: getattr(config, name) for name in SETTINGS},
            history_dtype=config.history_dtype,
            history_cap=config.history_cap,
            seed=config.seed,
        )
        check_estimator(batches, config.estimator)
        return batches

    @property
    def agreed(self) -> int:
        """The bits that any process set with `wish` when the last step began."""
        return self.minibatches.histories.agreed

    def wish(self, bits: int) -> None:
        """Set bits that all processes learn in the next step."""
        self.minibatches.histories.wishes = bits

    def _refreshed(self, batches: PartMiniBatches, config: TrainConfig) -> Tensor | None:
        """Return our nodes to refresh before each epoch; None if no process has any."""
        nodes = refreshed_nodes(batches, config.refresh)
        (count,) = self.group.total(0 if nodes is None else len(nodes))
        empty = torch.empty(0, dtype=torch.int64)
        return None if not count else empty if nodes is None else nodes

    def _step(self, batch: Batch) -> None:
        batches = self.minibatches
        batches.histories.begin(batch, batches.step)
        super()._step(batch)
        batches.histories.end(
            batch, gradients=batches.estimator.gradient_history, samples=batches.samples
        )

    def _measure_common(self, batch: Batch) -> dict[str, float]:
        return {}  # of one process's rows, it would differ between processes

    def _of_all(self, loss: float) -> float:
        weights = [p for group in self.optimizer.param_groups for p in group["params"]]
        grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
        # The loss is summed with the gradients: a step has one sum over the processes, and all see
        # a NaN loss.
        both = torch.cat([*(grad.reshape(-1) for grad in grads), grads[0].new_tensor([loss])])
        self.group.sum(both, "gradients")
        sizes = [weight.numel() for weight in weights]
        for weight, part in zip(weights, both[:-1].split(sizes), strict=True):
            weight.grad = part.view_as(weight)
        return float(both[-1])

    def _score(self, split: str) -> float | None:
        nodes = self.graph.split(split)
        (count,) = self.group.total(len(nodes))
        if not count:
            return None
        start = self.clock.now()
        outputs = self.group.gather(self.sweeps.outputs(nodes))
        assert self.graph.labels is not None
        labels = self.group.gather(self.graph.labels[nodes])
        value = None
        if self.group.first:
            value = self._metric.compute(torch.cat(outputs).cpu(), torch.cat(labels).cpu())
        value = self.group.broadcast(value)
        self.progress.evaluation_seconds += self.clock.now() - start
        return float(value)

    def _measure(self, reading: Reading, *, early: bool) -> Epoch:
        progress, batches = self.progress, self.minibatches
        sums = self.group.total(progress.sampled, progress.history_reads, self._traffic())
        progress.sampled, progress.history_reads = int(sums[0]), int(sums[1])
        self._sent = sum(self.group.sent.get(what, 0) for what in TRAFFIC)
        point = super()._measure(reading, early=early)
        return replace(
            point,
            halo_age=batches.halo_age(),
            halo_staleness=batches.histories.staleness(),
            exchanged=int(sums[2]),
        )

    def _traffic(self) -> int:
        return sum(self.group.sent.get(what, 0) for what in TRAFFIC) - self._sent

    def _check_metric(self) -> None:
        """Raise, before hours of training, if the metric cannot be computed on the nodes to be
        scored."""
        assert self.graph.labels is not None
        metric = self._metric
        for name in ("val", "test"):
            if not self._splits[name]:
                continue
            labels = self.group.gather(self.graph.labels[self.graph.split(name)])
            wrong = False
            if self.group.first:
                known = torch.cat(labels).cpu()
                zeros = torch.zeros(len(known), self.target.outputs)
                wrong = math.isnan(metric.compute(zeros, known))
            if self.group.broadcast(wrong):
                raise InputError(
                    f"{metric.title} of the {name} nodes does not exist: it needs "
                    f"{metric.needs}; choose another metric ({setting('metric')})"
                )


def part_objective(graph: Graph, config: TrainConfig, shared: dict[str, Tensor]) -> TaskObjective:
    """Return the objective of a part, with the facts about the labels of all training nodes."""
    if graph.labels is None:
        raise InputError("the graph has no labels to train on")
    # Scores cover the nodes of all processes together.
    unscored = graph.with_splits({"train": graph.train})
    needed = find_task(graph.task).needs(config)
    if set(needed) - shared.keys():
        raise InputError("the graph has no training nodes: give it a train split")
    return TaskObjective(unscored, config, shared)


def check_agreement(group: Group, facts: dict[str, str]) -> None:
    """Raise if processes differ in anything that has to be the same."""
    everybody = group.everybody(facts)
    for name, value in everybody[0].items():
        for rank, theirs in enumerate(everybody):
            if theirs[name] != value:
                raise InputError(
                    f"rank {rank} has other {name} than rank 0 ({theirs[name]} and {value}): start "
                    "all processes by one command, with one vrgcn and one partition, which nobody "
                    "replaces meanwhile"
                )


def weights_digest(weights: dict[str, Tensor]) -> str:
    """Return the SHA-256 of a model's weights, to compare them."""
    digest = hashlib.sha256()
    for tensor in weights.values():
        for piece in pieces(tensor):
            digest.update(piece)
    return digest.hexdigest()
