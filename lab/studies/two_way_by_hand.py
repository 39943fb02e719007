"""The engine's share of a `two-way` step: the same step written by hand, and nothing else in it;
and what the moving frame of its tables costs.

    python -m lab.studies.two_way_by_hand

By hand, at fan-out 0 and in raw tables, rows are written and averaged in half precision by the
fewest calls of PyTorch that do it. No ages are kept, nothing can be undone, nothing is checked, no
neighbour is computed, and the model must be this one. Plans, model, loss and optimiser are the
engine's, and the losses are compared with the engine's first: it is the same step. Prints
milliseconds and ratios to
the MLP, all taking turns; `--turns`, `--threads`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from lab.bench.scale import FULL
from lab.harness.algorithms import ALGORITHMS, RAW_TWO_WAY, Algorithm, Architecture
from lab.harness.graphs import scaled_graph
from lab.harness.timing import Spread, ratio, take_turns
from vrgcn.data.synthetic import community_graph
from vrgcn.engine.batch import Batch
from vrgcn.engine.devices import use_threads
from vrgcn.engine.node_rows import GraphRows
from vrgcn.engine.plan import Relation
from vrgcn.engine.propagate import Propagate
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import zeros
from vrgcn.graph.sparse import CSR
from vrgcn.training.objective import loss_per_node

STEPS = 10
COMPARED, TOLERANCE = 60, 0.02  # steps, and the largest relative difference of their mean losses
HISTORIES_ALONE = replace(ALGORITHMS[RAW_TWO_WAY], fanout=(0,))


class Engine(Algorithm):
    """One of the algorithms, which records its losses."""

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self.losses: list[Tensor] = []

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        labels = batch.labels
        assert labels is not None
        if len(self.batches.nodes) > len(self.batches.graph.train):
            outputs, labels = outputs[batch.in_loss], labels[batch.in_loss]
        loss = batch.mean(loss_per_node(outputs, labels))
        self.losses.append(loss.detach())
        return loss

    def outputs(self, batch: Batch) -> Tensor:
        return batch.run(self.model)

    def step(self, batch: Batch) -> None:
        loss = self.loss(self.outputs(batch), batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.commit(batch)

    def commit(self, batch: Batch) -> None:
        batch.commit()


class ByHand(Engine):
    """`two-way` at fan-out 0: P h̄ forward and Pᵀ ḡ backward, for P = diag(left) A."""

    def __init__(self, graph: Graph, architecture: Architecture, *, inductive: bool) -> None:
        super().__init__(graph, HISTORIES_ALONE, architecture, inductive=inductive)
        shape, levels = (graph.num_nodes, architecture.hidden), range(1, architecture.layers)
        self.activations = {level: zeros(shape, torch.float16) for level in levels}
        self.gradients = {level: zeros(shape, torch.bfloat16) for level in levels}

    def outputs(self, batch: Batch) -> Tensor:
        plan, nodes = batch.plan, batch.nodes
        setup = self.batches.setup
        inputs = setup.inputs(plan.levels[0].nodes)
        at_hand = GraphRows([level.nodes for level in plan.levels], setup.P, setup.device)
        rows, back = plan.hops[-1].history, plan.back[None]
        assert rows is not None
        assert rows.scale is not None
        assert back.left is not None
        scale, size = rows.scale[:, None], len(nodes)
        per_node = (back.left * size)[:, None]

        def answer(level: int, over: Relation, h: Tensor) -> Tensor:
            if not plan.levels[level].hops:
                return inputs.answer(h, over)
            activations, gradients = self.activations[level], self.gradients[level]
            activations.index_copy_(0, nodes, h.detach().half())

            def way_back(g: Tensor) -> Tensor:
                gradients.index_copy_(0, nodes, (g * per_node).bfloat16())
                return sums(rows, gradients).float().div_(size)

            return _WithWayBack.apply(sums(rows, activations) * scale, h, way_back)

        return self.model(inputs.x, Propagate(plan.sizes, answer, at_hand, inputs.ready))

    def commit(self, batch: Batch) -> None:
        pass


class _WithWayBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, average: Tensor, h: Tensor, way_back: Callable[[Tensor], Tensor]) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.way_back = way_back
        return average.view_as(average)

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[None, Tensor, None]:  # type: ignore[no-untyped-def]
        return None, ctx.way_back(g), None


def sums(rows: CSR, table: Tensor) -> Tensor:
    return F.embedding_bag(rows.indices, table, rows.indptr, mode="sum", include_last_offset=True)


def check_same(by_hand: Engine, engine: Engine) -> None:
    """Compare the losses: the random numbers are the same, so losses differ only by rounding."""
    means = []
    for algorithm in (by_hand, engine):
        torch.manual_seed(0)
        algorithm.run(COMPARED)
        means.append(float(torch.stack(algorithm.losses).mean()))
    if abs(means[0] / means[1] - 1) > TOLERANCE:
        raise RuntimeError(f"by hand the mean loss is {means[0]:.4f}, by the engine {means[1]:.4f}")


def compare(name: str, graph: Graph, architecture: Architecture, turns: int, **more: bool) -> None:
    algorithms: dict[str, Algorithm] = {
        "MLP": Engine(graph, ALGORITHMS["MLP"], architecture, **more),
        "by hand": ByHand(graph, architecture, **more),
        "raw, fan-out 0": Engine(graph, HISTORIES_ALONE, architecture, **more),
        RAW_TWO_WAY: Engine(graph, ALGORITHMS[RAW_TWO_WAY], architecture, **more),
        "two-way": Engine(graph, ALGORITHMS["two-way"], architecture, **more),
    }
    check_same(algorithms["by hand"], algorithms["raw, fan-out 0"])  # type: ignore[arg-type]
    for algorithm in algorithms.values():  # rows that were never written lie in one page of zeros
        algorithm.run(algorithm.steps_per_epoch)
    timers = {
        what: lambda a=algorithm: a.milliseconds(STEPS) for what, algorithm in algorithms.items()
    }
    times = take_turns(timers, range(turns))
    for what, values in times.items():
        print(
            f"{name}, {what:18} {Spread.of(values).text(1):>19} ms a step, "
            f"{ratio(values, times['MLP']).text(2)} times the MLP"
        )
    paired = ratio(times["two-way"], times[RAW_TWO_WAY]).text(2)
    print(f"{name}, two-way in a moving frame: {paired} times {RAW_TWO_WAY}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    use_threads(options.threads)
    graph = scaled_graph("reddit-like")
    for layers in (2, 3, 4):
        architecture = Architecture(layers=layers)
        compare(f"{layers} layers", graph, architecture, options.turns, inductive=True)
    architecture = Architecture(layers=3, dense=1)
    small = community_graph(FULL.deep_graph)
    compare("communities, 3 layers", small, architecture, options.turns, inductive=False)


if __name__ == "__main__":
    main()
