"""Minibatches: plan, run and commit, for custom training loops and for `fit`."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vrgcn.engine.batch import Batch, Position
from vrgcn.engine.estimators import Estimator, find_estimator
from vrgcn.engine.frame import Frames
from vrgcn.engine.history import Histories
from vrgcn.engine.plan import Plan, Relation
from vrgcn.engine.planner import Planner
from vrgcn.engine.samplers import (
    build_sampler,
    fanout_per_level,
    passes_over,
    usual_fanout,
)
from vrgcn.engine.setup import Setup, set_up
from vrgcn.engine.sweeps import fill_tables, refresh_tables
from vrgcn.engine.thinning import history_rows
from vrgcn.engine.visits import Visits, all_visits, reached_visits, sizes
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike, with_neighbours
from vrgcn.graph.sparse import is_dense, select_rows
from vrgcn.graph.validation import check_nodes

_MOST_RELATIONS = 100  # with tables of gradients for each
_ROWS = 65_536  # rows of features that are copied at a time


class MiniBatches:
    """Iterating gives the minibatches of one epoch, in a new random order each time:

        for batch in MiniBatches(model, graph, estimator="cvd", fanout=1):
            loss = cross_entropy(batch.run(model), batch.labels)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            batch.commit()

    nodes: "train", "all", or node ids: what an epoch visits
    trained: (nodes,) bool, the nodes whose loss is minimised; None: the training nodes, or those of
        `nodes` that have labels where these are ids
    run: minibatches are made of runs of so many nodes that follow each other; 1: of single nodes
    propagation: a name, a matrix or a rule, or a dict of these by relation; None: the model's own
    preprocess: answer the model's first call from P X, computed once; None: if the model propagates
        unchanged features
    inductive: use only the edges among the training nodes
    fanout: neighbours to sample per node for each level that is propagated, from the input up; a
        node's own edge is not counted, so the paper's D = 2 is fanout 1; None: what the estimator's
        sampler is usually given
    sample_size: nodes that the estimator `is` draws per layer
    sampling: settings of samplers by name, in place of `sample_size`; see samplers.SETTINGS
    history_dtype, history_cap: see history.Histories and planner.Planner
    directory: keep histories and P X in memory-mapped files there instead of in memory
    setup: the model on the graph as `setup.look` found it, in place of propagation, preprocess and
        inductive; P X is then the caller's to fill

    share: visited nodes with a backward pass for each training node, by which `Batch.mean` scales

    The order of an epoch and its plans depend only on the seed and their place, so `position`,
    `histories` and `generator`, which draws for `batch`, are the whole state.
    """

    def __init__(
        self,
        model: nn.Module,
        graph: Graph,
        *,
        estimator: str | Estimator = "cvd",
        fanout: int | Sequence[int] | None = None,
        nodes: Any = "train",
        trained: Tensor | None = None,
        batch_size: int = 512,
        run: int = 1,
        propagation: PropagationLike | None = None,
        preprocess: bool | None = None,
        inductive: bool = False,
        sample_size: int = 512,
        history_dtype: str = "float32",
        history_cap: int | None = None,
        directory: Path | None = None,
        seed: int = 0,
        setup: Setup | None = None,
        sampling: Mapping[str, Any] | None = None,
    ) -> None:
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {batch_size}")
        if not 1 <= run <= batch_size:
            raise InputError(f"run must be from 1 to batch_size, {batch_size}, not {run}")
        if sample_size < 1:
            raise InputError(f"sample_size must be at least 1, not {sample_size}")
        self.graph = graph
        self.batch_size = batch_size
        self.run = run
        self.nodes = _visited(graph, nodes, inductive if setup is None else setup.inductive)
        self.setup = setup or set_up(
            model,
            graph,
            propagation=propagation,
            preprocess=preprocess,
            inductive=inductive,
            visited=self.nodes,
            directory=directory,
        )
        self.whole = self.setup  # with all edges, whatever `use_edges` is given
        self.fanout = fanout
        self.sampling = {"sample_size": sample_size, **(sampling or {})}
        self.history_cap = history_cap
        self.seed = seed
        if trained is None:
            trained = torch.zeros(graph.num_nodes, dtype=torch.bool)
            trained[graph.train if isinstance(nodes, str) else self.nodes] = True
            trained &= graph.labelled
        self.trained = trained.cpu()  # beside the graph, where minibatches are planned
        histories = Histories(graph.num_nodes, history_dtype, self.setup.device, directory)
        self._start(find_estimator(estimator), histories)

    def _start(self, estimator: Estimator, histories: Histories) -> None:
        self.estimator = estimator
        fanout = usual_fanout(estimator.sampler) if self.fanout is None else self.fanout
        fanouts = fanout_per_level(fanout, self.setup.training.depth)
        sampler = build_sampler(estimator.sampler, fanouts, self.sampling)
        if sampler.draws_own and estimator.keeps:
            raise InputError(
                f"the sampler {estimator.sampler} draws a node's own edge like any other, and the "
                "history is of the others alone: use it with forward 'sampled'"
            )
        if estimator.gradient_history:
            check_relations(self.setup.matrices)
        self._sampler = sampler
        self.planner = self._build_planner()
        self.visits = self._visits()
        self.share = len(self.visits.backward) / max(int(self.trained[self.nodes].sum()), 1)
        self.histories = histories
        self.histories.frames = self._frames()
        self.position = Position()
        self.generator = torch.Generator().manual_seed(self.seed)

    def _build_planner(self) -> Planner:
        return Planner(
            self.setup.matrices,
            self._sampler,
            history=self.estimator.history,
            gradients=self.estimator.gradient_history,
            history_cap=self.history_cap,
        )

    def _frames(self) -> Frames | None:
        if not self.estimator.moves:
            return None
        corrected = self.estimator.backward == "corrected"
        device = self.histories.device
        return Frames(
            self.setup.matrices,
            self.planner.sampler,
            self.graph.kinds,
            corrected=corrected,
            device=device,
        )

    def use_edges(self, setup: Setup) -> None:
        """Plan minibatches on other edges from now on. setup: the same model with another P; the
        first one stays `whole`."""
        self.setup = setup
        self.planner = self._build_planner()
        self.histories.frames = self._frames()

    def _visits(self) -> Visits:
        if not self.estimator.gradient_history:
            return all_visits(self.nodes)
        if not self.trained[self.nodes].any():
            raise InputError(
                "an estimator with a history of gradients needs nodes with a loss among those it "
                "visits, and there are none: give the graph a train split, or `trained`"
            )
        levels = [level.values() for level in self.setup.matrices if level]
        found = reached_visits(self.nodes, self.trained, levels, self.graph.num_nodes)
        return found.fitted(self.batch_size)

    def sibling(self, estimator: str | Estimator) -> MiniBatches:
        """The same minibatches by another estimator, its histories empty; P and P X are shared.

        `fanout` 0 is meant only for histories: another sampler has its usual number then.
        """
        other = copy.copy(self)
        none = self.fanout is not None and not np.any(self.fanout)
        if none and find_estimator(estimator).sampler != self.estimator.sampler:
            other.fanout = None
        dtype = str(self.histories.dtype).removeprefix("torch.")
        tables = Histories(self.graph.num_nodes, dtype, self.setup.device)
        other._start(find_estimator(estimator), tables)
        return other

    def __len__(self) -> int:
        """Minibatches in an epoch."""
        visits = self.visits
        return sum(
            len(sizes(len(nodes), self.batch_size)) for nodes in (visits.backward, visits.forward)
        )

    def __iter__(self) -> Iterator[Batch]:
        self.position = Position(self.position.epoch + 1, 0, self.position.step)
        return self.rest_of_epoch()

    def rest_of_epoch(self) -> Iterator[Batch]:
        """The minibatches of the present epoch that were not given out yet."""
        epoch = self.position.epoch
        batches = self.visits.batches(self.batch_size, self._generator(epoch, 0), self.run)

        def generators(place: int, together: bool) -> torch.Generator:
            return self._generator(epoch, 1, place, together)

        start = self.position.place
        plans = self.planner.plans([nodes for nodes, _ in batches], generators, start=start)
        for place, plan in enumerate(plans, start=start):
            self.position = Position(epoch, place + 1, self.position.step)
            yield self.make(plan, backward=batches[place][1])

    def batch(self, nodes: Tensor, generator: torch.Generator | None = None) -> Batch:
        """The minibatch of chosen nodes, its neighbours drawn by `generator`, or by our own."""
        return self.make(self.planner.plan(nodes.cpu(), generator or self.generator))

    def outputs_of(self, nodes: Tensor, generator: torch.Generator) -> Batch:
        """The minibatch of chosen nodes that has outputs and no loss of its own: that of pairs
        needs more than these nodes."""
        return Batch(self, self.planner.plan(nodes.cpu(), generator))

    def make(self, plan: Plan, *, backward: bool = True) -> Batch:
        """The minibatch of a plan."""
        return Batch(self, plan, backward=backward)

    def epoch_of(self, plans: Sequence[Plan]) -> float:
        """How many times the work of some plans is that of an epoch."""
        return self.visits.count / sum(len(plan.nodes) for plan in plans)

    @property
    def counted(self) -> int:
        """How many losses an epoch adds up: one for each visited node that is trained on."""
        return int(self.trained[self.nodes].sum())

    @property
    def step(self) -> int:
        """Minibatches that were committed."""
        return self.position.step

    @property
    def samples_neighbours(self) -> bool:
        """Whether every neighbour that is not visited itself is computed now and then."""
        # Only what the last level samples enters every table.
        last = self.setup.training.depth - 1
        computed = last >= 0 and self.planner.sampler.computes_neighbours(last)
        return computed and not passes_over(self.estimator.sampler)

    def warm_start(self, model: nn.Module) -> None:
        """Fill the histories by an exact pass, so that the first epoch does not read zeros."""
        nodes = torch.arange(self.graph.num_nodes)
        evaluation = self.setup.evaluation
        self._write_features(nodes)
        fill_tables(
            model,
            self.setup,
            [nodes] * (evaluation.depth - evaluation.first_table),
            self.histories,
            step=self.step,
        )

    def unvisited(self) -> Tensor:
        """Nodes that epochs do not visit but whose histories the visited ones read."""
        visited = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        visited[self.nodes] = True
        reached = self.nodes
        for _ in range(self.setup.training.depth - self.setup.training.first_table):
            reached = with_neighbours(reached, *self.setup.P.values())
        return reached[~visited[reached]]

    def refresh(self, model: nn.Module, nodes: Tensor) -> None:
        """Write the histories of `nodes` in one forward-only sweep, without dropout."""
        self._write_features(nodes)
        generator = self._generator(self.position.epoch, 2)
        refresh_tables(
            model,
            self.setup,
            nodes,
            self.histories,
            step=self.step,
            rows=lambda P, chunk: history_rows(P, chunk, self.history_cap, generator),
        )

    def mean_age(self) -> float:
        """Mean age of the histories, in steps."""
        return self.histories.mean_age(self.step)

    @property
    def features_kept(self) -> bool:
        """Whether there is a table of the input. Of sparse features training refuses to read it."""
        dropped = self.setup.features_dropped and not self.estimator.dropout_residual
        return dropped and is_dense(self.graph.features)

    def _write_features(self, nodes: Tensor) -> None:
        """Write the features into the history of the input, which training keeps where dropout
        comes before the first propagation. (cvd knows them exactly.)"""
        features, device = self.graph.features, self.setup.device
        if self.features_kept:
            table = self.histories.table(0, features.shape[1])
            for part in nodes.split(_ROWS):  # all nodes at once may not fit in memory
                rows = select_rows(features, part).to(device, self.graph.dtype)
                table.write(part.to(device), rows, self.step)

    def _generator(self, *key: int) -> torch.Generator:
        """The random numbers of one purpose, independent of those of any other."""
        seed = np.random.SeedSequence((self.seed, *key)).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(seed))


def check_relations(matrices: Sequence[Mapping[Relation, Any]]) -> None:
    """Refuse so many relations that tables of gradients of each would fill the memory."""
    most = max(map(len, matrices), default=0)
    if most > _MOST_RELATIONS:
        raise InputError(
            f"an estimator with a history of gradients keeps a table for each level and relation, "
            f"and the model has {most} relations at a level, more than {_MOST_RELATIONS}: use the "
            f"estimator exact, ns, cv or cvd"
        )


def _visited(graph: Graph, nodes: Any, inductive: bool) -> Tensor:
    if isinstance(nodes, str):
        if nodes not in ("train", "all"):
            raise InputError(f"nodes must be 'train', 'all' or node ids, not {nodes!r}")
        if nodes == "all" and not inductive:
            return torch.arange(graph.num_nodes)
        if not len(graph.train):
            raise InputError("the graph has no training nodes: give it a train split")
        return graph.train
    ids = check_nodes(nodes, graph.num_nodes)
    if len(torch.unique(ids)) != len(ids):
        raise InputError("nodes names some node more than once")
    return ids
