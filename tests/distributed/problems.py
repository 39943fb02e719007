"""Small graphs in parts, and training on them step by step, by one process and by several."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tests.theory.problems import CLASSES, FEATURES, MODELS
from vrgcn.distributed.config import DistributedConfig
from vrgcn.distributed.group import Group
from vrgcn.distributed.partitioning import write_parts
from vrgcn.distributed.parts import load_part
from vrgcn.distributed.trainer import PartTrainer
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.samplers import Sample
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import offsets
from vrgcn.training.config import TrainConfig
from vrgcn.training.listener import Callbacks
from vrgcn.training.objective import loss_per_node

NODES, BATCH, STEPS, RATE = 72, 18, 8, 0.05


def graph_of(*, directed: bool, trained: int = NODES) -> Graph:
    """Random, of mean degree 4 or so, weighted where it is directed; a loop and lonely nodes."""
    generator = torch.Generator().manual_seed(3)
    edges = torch.randint(NODES - 2, (2, NODES * (3 if directed else 2)), generator=generator)
    edges[:, 0] = 7
    order = torch.randperm(NODES, generator=generator)
    return Graph(
        edges,
        torch.randn(NODES, FEATURES, generator=generator, dtype=torch.float64),
        torch.randint(CLASSES, (NODES,), generator=generator),
        edge_weight=torch.rand(edges.shape[1], generator=generator) if directed else None,
        undirected=not directed,
        train=order[:trained],
        val=order[trained:] if trained < NODES else None,
    )


def write(graph: Graph, folder: Path, parts: int) -> Path:
    generator = torch.Generator().manual_seed(parts)
    assignment = torch.randint(parts, (graph.num_nodes,), generator=generator)
    write_parts(graph, assignment, folder, parts=parts, scaling="none")
    return folder


class ByHash:
    """One neighbour of each node, R = degree, drawn by the nodes' numbers in the whole graph: the
    same whatever the graph's parts. nodes: (local nodes,) those numbers"""

    random, shared, draws_own = True, False, False

    def __init__(self, nodes: Tensor) -> None:
        self.nodes = nodes

    def computes_neighbours(self, level: int) -> bool:
        return True

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        indptr, entries = P.adjacency.entries(targets)
        u = torch.repeat_interleave(self.nodes[targets], indptr.diff())
        v = self.nodes[P.adjacency.indices[entries]]
        key = (u * 7919 + v * 104729 + 13) * 2654435761 % 1000003
        chosen = [
            entries[a + key[a:b].argmin()]
            for a, b in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
            if b > a
        ]
        degree = P.degrees(targets)
        taken = torch.stack(chosen) if chosen else entries[:0]
        edges = P.take(targets, offsets((degree > 0).long()), taken)
        return Sample(P.own_rows(targets), edges, degree.to(P.dtype).clamp(min=1))


@dataclass(frozen=True)
class Case:
    """model: a name of tests.theory.problems; estimator: a name, or cv by `ByHash`"""

    name: str
    model: str
    layers: int
    estimator: str
    directed: bool
    trained: int = NODES
    settings: dict[str, Any] = field(default_factory=dict)

    def config(self) -> TrainConfig:
        named = "cv" if self.estimator == "cv by hash" else self.estimator
        return TrainConfig(
            estimator=named,
            epochs=2,
            batch_size=BATCH,
            optimizer="sgd",
            learning_rate=RATE,
            **{"visit": "all", **self.settings},
        )

    def own_estimator(self, nodes: Tensor) -> Estimator | None:
        if self.estimator != "cv by hash":
            return None
        return Estimator(ByHash(nodes), "corrected")

    def build(self) -> nn.Module:
        return MODELS[self.model](self.layers)


@dataclass
class Steps:
    """The steps of a run: for each the minibatch in numbers of the whole graph, whether gradients
    were computed, and the weights' gradients."""

    nodes: list[Tensor] = field(default_factory=list)
    backward: list[bool] = field(default_factory=list)
    gradients: list[list[Tensor]] = field(default_factory=list)
    outputs: Tensor | None = None
    own: Tensor | None = None


def trainer_of(group: Group, folder: Path, case: Case, **distributed: Any) -> PartTrainer:
    part = load_part(folder, group.rank)
    trainer = PartTrainer(
        case.build(),
        part,
        part.graph,
        case.config(),
        DistributedConfig(**distributed),
        group,
        estimator=case.own_estimator(part.nodes),
    )
    trainer.minibatches.histories.dtype = torch.float64
    return trainer


def train_parts(group: Group, folder: Path, case: Case) -> Steps:
    """A process's share of STEPS exact steps, and its exact outputs afterwards."""
    trainer = trainer_of(group, folder, case, halo="exact")
    steps = Steps()
    trainer.listener = Callbacks(
        on_batch=lambda batch: (
            steps.nodes.append(trainer.part.nodes[batch.nodes]),
            steps.backward.append(batch.needs_gradient),
        )
    )
    for _ in range(STEPS):
        trainer.model.zero_grad()
        assert trainer.advance()
        steps.gradients.append(_gradients(trainer.model))
    steps.outputs = trainer.sweeps.outputs()
    steps.own = trainer.part.nodes[: trainer.part.own].clone()
    return steps


def train_whole(graph: Graph, case: Case, ranks: list[Steps]) -> Steps:
    """One process's steps of the unions of the minibatches that several made."""
    model, config = case.build(), case.config()
    trained = torch.zeros(graph.num_nodes, dtype=torch.bool)
    trained[graph.train] = True
    batches = MiniBatches(
        model,
        graph,
        estimator=case.own_estimator(torch.arange(graph.num_nodes)) or config.estimator,
        fanout=config.fanout,
        nodes="all",
        trained=trained,
        batch_size=BATCH,
        history_dtype="float64",
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    assert graph.labels is not None
    steps = Steps()
    for place in range(STEPS):
        nodes = torch.cat([rank.nodes[place] for rank in ranks])
        batch = batches.batch(nodes)
        optimizer.zero_grad()
        if ranks[0].backward[place]:
            outputs = batch.run(model)
            losses = loss_per_node(outputs[batch.in_loss], graph.labels[nodes[batch.in_loss]])
            batch.mean(losses).backward()
        else:
            batch.renew(model)
        steps.gradients.append(_gradients(model))
        optimizer.step()
        batch.commit()
    return steps


def _gradients(model: nn.Module) -> list[Tensor]:
    return [
        torch.zeros_like(p) if p.grad is None else p.grad.detach().clone()
        for p in model.parameters()
    ]
