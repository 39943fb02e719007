"""Minibatches of one of several processes: its share of minibatches that all make together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vrgcn.distributed.config import DistributedConfig
from vrgcn.distributed.halo import Halo
from vrgcn.distributed.histories import HaloHistories
from vrgcn.distributed.visits import grown, reached_visits
from vrgcn.engine.batch import Batch, Position
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.frame import Frames
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.samplers import Sample, Sampler
from vrgcn.engine.sweeps import fill_tables
from vrgcn.engine.visits import Visits, all_visits
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.relations import kept_entries


class PartBatch(Batch):
    """A process's share of a step.

    backward: True if any share updates the weights. Then all processes do, because gradients are
        summed over them, and a share without training nodes adds zero.
    """

    @property
    def needs_gradient(self) -> bool:
        return self.backward


class AtHome:
    """Wraps a sampler without noise (R = 1). Its neighbours that are copies are not computed, for
    copies lack the averaged features to compute them from, but read from the history, like
    neighbours that it did not choose.

    own: number of nodes of the local graph that are its own
    """

    draws_own = False

    def __init__(self, sampler: Sampler, own: int) -> None:
        self.sampler = sampler
        self.own = own
        self.random, self.shared = sampler.random, sampler.shared
        self.computes_of = getattr(sampler, "computes_of", None)

    def computes_neighbours(self, level: int) -> bool:
        return self.sampler.computes_neighbours(level)

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        drawn = self.sampler.sample(P, targets, level, generator)
        kept = kept_entries(drawn.edges, drawn.edges.indices < self.own)
        return Sample(drawn.own, kept, drawn.scale)


class PartMiniBatches(MiniBatches):
    """Minibatches of one of several processes.

    batch_size is that of all processes together, which make as many steps as one process would. In
    each step a process takes a share of its own nodes; either all shares of a step have a backward
    pass, or none has. Other settings are those of `MiniBatches`.
    """

    def __init__(
        self,
        model: nn.Module,
        graph: Graph,
        halo: Halo,
        distributed: DistributedConfig,
        *,
        nodes: str,
        seed: int,
        **settings: Any,
    ) -> None:
        self.halo = halo
        self.shared_seed = seed
        visited = torch.arange(halo.own) if nodes == "all" else graph.train
        # Each process draws its own plans and masks.
        own_seed = np.random.SeedSequence((seed, halo.group.rank)).generate_state(1)[0]
        super().__init__(model, graph, nodes=visited, seed=int(own_seed), **settings)
        trained = float(self.trained[self.nodes].sum())
        backward, forward = len(self.visits.backward), len(self.visits.forward)
        sums = halo.group.total(backward, forward, trained)
        self.visited = int(sums[0] + sums[1])
        self.share = sums[0] / max(sums[2], 1)
        # For each process, the number of nodes of either kind that it visits.
        self.shares: list[tuple[int, int]] = halo.group.everybody((backward, forward))
        self.histories: HaloHistories = HaloHistories(
            graph.num_nodes,
            settings.get("history_dtype", "float32"),
            self.setup.device,
            halo,
            exact=distributed.halo == "exact",
            every=distributed.halo_every,
        )
        self.histories.frames = self._frames()
        self._know_averages()

    def _start(self, estimator: Estimator, histories: Any) -> None:
        super()._start(estimator, histories)
        if self.tables > 1:  # a copy's activations at the second level cannot be computed here
            self.planner.sampler = AtHome(self.planner.sampler, self.halo.own)

    @property
    def tables(self) -> int:
        """Number of propagations that are estimated."""
        return sum(1 for level in self.setup.matrices if level)

    @property
    def samples(self) -> bool:
        """True if activations of neighbours are computed and written."""
        levels = range(len(self.setup.matrices))
        sampler = self.planner.sampler
        return any(self.setup.matrices[k] and sampler.computes_neighbours(k) for k in levels)

    def _know_averages(self) -> None:
        """Fetch the rows of P X of copies from their owners: not all of their neighbours are
        here."""
        if self.setup.preprocess and self.samples:
            for over in self.setup.training.levels[0]:
                self.halo.renew(self.setup.averages[over].table, "averages")

    def _visits(self) -> Visits:
        if not self.estimator.gradient_history:
            return all_visits(self.nodes)
        levels = [level.values() for level in self.setup.matrices if level]
        visits = reached_visits(self.nodes, self.trained, levels, self.halo)
        (count,) = self.halo.group.total(visits.count)
        return visits.fitted(self.batch_size, int(count))

    def _frames(self) -> Frames | None:
        """Also fetch the shares of copies from their owners: not all of their neighbours are
        here."""
        frames = super()._frames()
        if frames is None:
            return None
        for level, matrices in enumerate(self.setup.matrices):
            for number in range(len(matrices)):
                self.halo.renew(frames.share(level, number), "shares")
        return frames

    def steps(self) -> list[tuple[bool, int, list[int]]]:
        """Return for each step of an epoch, the same in all processes: whether it has a backward
        pass, its number among the steps of its kind, and how many nodes each process takes."""
        steps = []
        for kind, backward in enumerate((True, False)):
            nodes = [share[kind] for share in self.shares]
            count = -(-sum(nodes) // self.batch_size)
            for number in range(count):
                steps.append((backward, number, [_size(n, count, number) for n in nodes]))
        return steps

    def __len__(self) -> int:
        return len(self.steps())

    def rest_of_epoch(self) -> Iterator[Batch]:
        epoch, start = self.position.epoch, self.position.place
        steps = self._in_order(epoch)
        rank = self.halo.group.rank
        generator = self._generator(epoch, 0)
        parts = {}
        for backward, nodes in ((True, self.visits.backward), (False, self.visits.forward)):
            order = nodes[torch.randperm(len(nodes), generator=generator)]
            sizes = [sizes[rank] for kind, _, sizes in self.steps() if kind == backward]
            parts[backward] = order.split(sizes) if sizes else ()
        batches = [parts[backward][number] for backward, number, _ in steps]

        def generators(place: int, together: bool) -> torch.Generator:
            return self._generator(epoch, 1, place, together)

        # A process with few nodes has none in some steps, and takes part in them all the same.
        some = [nodes for nodes in batches if len(nodes)]
        first = sum(1 for nodes in batches[:start] if len(nodes))
        plans = self.planner.plans(some, generators, start=first)
        moves = self._moves(batches)
        for place in range(start, len(steps)):
            self.position = Position(epoch, place + 1, self.position.step)
            nodes = batches[place]
            plan = next(plans) if len(nodes) else self.planner.plan(nodes, self.generator)
            backward, _, sizes = steps[place]
            yield PartBatch(self, plan, backward=backward and moves[place], size=sum(sizes))

    def _moves(self, batches: list[Tensor]) -> list[bool]:
        """Return for each step whether any process's share updates the weights."""
        if self.estimator.gradient_history:
            return [True] * len(batches)
        group = self.halo.group
        trained = [int(self.trained.index_select(0, nodes).sum()) for nodes in batches]
        return [
            count > 0 for count in group.sum(torch.tensor(trained, device=group.device)).tolist()
        ]

    def _in_order(self, epoch: int) -> list[tuple[bool, int, list[int]]]:
        seed = np.random.SeedSequence((self.shared_seed, epoch)).generate_state(1)[0]
        generator = torch.Generator().manual_seed(int(seed))
        steps = self.steps()
        return [steps[place] for place in torch.randperm(len(steps), generator=generator).tolist()]

    def warm_start(self, model: nn.Module) -> None:
        own = torch.arange(self.halo.own)
        evaluation = self.setup.evaluation
        self._write_features(torch.arange(self.graph.num_nodes))
        fill_tables(
            model,
            self.setup,
            [own] * (evaluation.depth - evaluation.first_table),
            self.histories,
            step=self.step,
            on_table=lambda table: self.halo.renew(table.values),
        )
        self.histories.renew()

    def unvisited(self) -> Tensor:
        visited = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        visited[self.nodes] = True
        reached = self.nodes
        for _ in range(self.setup.training.depth - self.setup.training.first_table):
            reached = grown(reached, self.halo, list(self.setup.P.values()))
        return reached[~visited[reached]]

    def refresh(self, model: nn.Module, nodes: Tensor) -> None:
        self.histories.settle()
        if len(nodes):
            super().refresh(model, nodes)
        self._make_tables()
        self.histories.renew()

    def _make_tables(self) -> None:
        """Create the same tables as other processes, even if this process had nothing to
        refresh."""
        evaluation = self.setup.evaluation
        for level in range(evaluation.first_table, evaluation.depth):
            self.histories.table(level, evaluation.widths[level])
        if self.features_kept:
            self.histories.table(0, self.graph.num_features)

    def mean_age(self) -> float:
        own, _ = self.histories.ages(self.step)
        total, count = self.halo.group.total(*own.tolist())
        return total / count if count else float("nan")

    def halo_age(self) -> float | None:
        """Return the mean age of the copies, in steps, over all processes."""
        _, copies = self.histories.ages(self.step)
        total, count = self.halo.group.total(*copies.tolist())
        return total / count if count else None

    def sibling(self, estimator: str | Estimator) -> MiniBatches:
        raise NotImplementedError("one process of several compares no estimators")


def _size(nodes: int, steps: int, number: int) -> int:
    """Return the number of nodes in one of several shares that are as equal as possible, larger
    ones first."""
    return nodes // steps + (number < nodes % steps)
