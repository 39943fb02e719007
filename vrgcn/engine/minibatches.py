"""Minibatches: plan, run and commit, for training loops of one's own and for `fit`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.estimators import ESTIMATORS, Estimator, find_estimator
from vrgcn.engine.history import Histories
from vrgcn.engine.parts import FirstPassInParts, targets_again
from vrgcn.engine.plan import Plan
from vrgcn.engine.planner import Planner
from vrgcn.engine.propagate import FirstPass, Inputs, PassEnded, Propagate, ResidualPass
from vrgcn.engine.trace import device_of, is_row_wise, set_mode, trace
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import PropagationLike, build_propagation
from vrgcn.graph.sparse import is_sparse, select_rows, select_rows_beside
from vrgcn.graph.validation import check_nodes
from vrgcn.inference.predict import (
    ExactSweeps,
    chunks,
    propagate_features,
    propagation_of,
    with_neighbours,
)


class MiniBatches:
    """Iterating gives the minibatches of one epoch, in a new random order each time:

        for batch in MiniBatches(model, graph, estimator="cvd", fanout=1):
            loss = cross_entropy(batch.run(model), batch.labels)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            batch.commit()

    nodes: "train", "all", or node ids: what an epoch visits
    propagation: a name, a matrix or a rule; if None, the model's own
    preprocess: answer the model's first call from P X, computed once; None: whenever the model
        propagates the features as they are
    inductive: use only the edges among the training nodes
    fanout: neighbours to sample per node for each call of propagate, from the input up; a node's
        own edge is not counted, so the paper's D = 2 is fanout 1
    sample_size: nodes that the estimator `is` draws per layer
    history_dtype, history_cap, history_directory: see history.Histories and planner.Planner
    """

    def __init__(
        self,
        model: nn.Module,
        graph: Graph,
        *,
        estimator: str | Estimator = "cvd",
        fanout: int | Sequence[int] = 1,
        nodes: Any = "train",
        batch_size: int = 512,
        propagation: PropagationLike | None = None,
        preprocess: bool | None = None,
        inductive: bool = False,
        sample_size: int = 512,
        history_dtype: str = "float32",
        history_cap: int | None = None,
        history_directory: Path | None = None,
        seed: int = 0,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        rule = propagation_of(model) if propagation is None else propagation
        if inductive and not isinstance(rule, str) and not callable(rule):
            raise ValueError(
                "inductive training has a propagation matrix of its own: give a function from a "
                "graph to a Propagation instead of one matrix"
            )
        self.graph = graph
        self.estimator = find_estimator(estimator)
        self.batch_size = batch_size
        self.inductive = inductive
        self.device = device_of(model)
        self.nodes = _visited(graph, nodes, inductive)
        self.P = build_propagation(rule, graph.among(graph.train) if inductive else graph)
        self.trace = trace(model, graph.features, training=True)
        # Dropout before the first call: what it is given is the features only in evaluation.
        self.features_dropped = (
            not self.trace.features_first
            and trace(model, graph.features, training=False).features_first
        )
        if preprocess and self.trace.calls and not self.trace.features_first:
            raise ValueError(
                "preprocess=True needs a model whose first propagate is of the features as they "
                "are; this one changes them first (by dropout or a layer): use preprocess=False"
            )
        self.preprocess = self.trace.features_first if preprocess is None else preprocess
        self.preprocess = self.preprocess and self.trace.calls > 0
        reached = torch.unique(torch.cat([graph.train, self.nodes])) if inductive else None
        self.preprocessed = (
            propagate_features(self.P, graph.features, reached) if self.preprocess else None
        )
        self.planner = Planner(
            self.P,
            self.trace.calls,
            self.estimator.sampler,
            fanout=fanout,
            sample_size=sample_size,
            preprocess=self.preprocess,
            history=self.estimator.history,
            history_cap=history_cap,
        )
        self.histories = Histories(graph.num_nodes, history_dtype, self.device, history_directory)
        self.in_parts = (
            self.estimator.dropout_residual
            and self.estimator.sampler == "uniform"
            and self.preprocess
            and self.trace.calls == 2
            and is_row_wise(model, graph.features)
        )
        self.generator = torch.Generator().manual_seed(seed)
        self.step = 0
        self.drops = False  # whether the latest batch had something dropped before a propagation
        self._loss_nodes = torch.zeros(graph.num_nodes, dtype=torch.bool)
        self._loss_nodes[graph.train if isinstance(nodes, str) else self.nodes] = True
        self._loss_nodes &= graph.labelled

    def __len__(self) -> int:
        """Minibatches in an epoch."""
        return math.ceil(len(self.nodes) / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        order = torch.randperm(len(self.nodes), generator=self.generator)
        for plan in self.planner.plans(self.nodes[order], self.batch_size, self.generator):
            yield Batch(self, plan, self.estimator)

    def batch(self, nodes: Tensor) -> Batch:
        """The minibatch of chosen nodes."""
        return Batch(self, self.planner.plan(nodes, self.generator), self.estimator)

    @property
    def samples_neighbours(self) -> bool:
        """Whether nodes that are not visited themselves are ever computed, as neighbours."""
        # Only what the last call samples enters every table.
        planner = self.planner
        return planner.sampler in ("full", "importance") or (
            planner.sampler == "uniform" and planner.calls > 0 and planner.fanouts[-1] > 0
        )

    def warm_start(self, model: nn.Module) -> None:
        """Fill the histories by an exact pass, so that the first epoch does not read zeros."""
        sweeps = ExactSweeps(
            model,
            self.graph.features,
            self.P,
            preprocessed=self.preprocessed,
            histories=self.histories,
        )
        self._write_features(torch.arange(self.graph.num_nodes))
        sweeps.fill_tables(self.step)

    def unvisited(self) -> Tensor:
        """Nodes that epochs do not visit but whose histories the visited ones read."""
        visited = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        visited[self.nodes] = True
        reached = self.nodes
        for _ in range(self.trace.calls - self.trace.first_table):
            reached = with_neighbours(self.P, reached)
        return reached[~visited[reached]]

    def refresh(self, model: nn.Module, nodes: Tensor) -> None:
        """Write the histories of `nodes` in one forward-only sweep, without dropout."""
        self._write_features(nodes)
        with torch.no_grad(), set_mode(model, training=False, norms=False):
            for chunk in chunks(self.P, nodes):
                plan = self._history_planner.plan(chunk, self.generator)
                batch = Batch(self, plan, ESTIMATORS["history"])
                batch.run(model)
                batch.write_histories()

    def _write_features(self, nodes: Tensor) -> None:
        """Where dropout comes before the first call, training keeps a history of its input, and
        without dropout that is the features. (cvd knows them exactly.)"""
        features = self.graph.features
        sparse = is_sparse(features)  # then training refuses before it reads
        if self.features_dropped and not self.estimator.dropout_residual and not sparse:
            rows = select_rows(features, nodes).to(self.device)
            self.histories.table(0, rows.shape[1]).write(nodes.to(self.device), rows, self.step)

    def mean_age(self) -> float:
        """Mean age of the histories, in steps."""
        return self.histories.mean_age(self.step)

    @cached_property
    def _history_planner(self) -> Planner:
        return Planner(
            self.P,
            self.trace.calls,
            "none",
            preprocess=self.preprocess,
            history=True,
            history_cap=self.planner.history_cap,
        )


class Batch:
    """One minibatch.

    plan: the nodes and edges it uses
    nodes: (batch,) node ids
    labels: (batch,) or (batch, classes), on the model's device; None in a graph without labels
    in_loss: (batch,) bool, the nodes that are trained on; the rest only refresh histories
    """

    def __init__(self, source: MiniBatches, plan: Plan, estimator: Estimator) -> None:
        self._source = source
        self._estimator = estimator
        self._pass: FirstPass | None = None
        self.plan = plan
        self.nodes = plan.nodes
        labels = source.graph.labels
        self.labels = None if labels is None else labels.index_select(0, plan.nodes)
        self.in_loss = source._loss_nodes.index_select(0, plan.nodes).to(source.device)
        if self.labels is not None:
            self.labels = self.labels.to(source.device)

    def run(self, model: nn.Module) -> Tensor:
        """The model's outputs for the nodes of the batch: (batch, classes)."""
        plan = self.plan.to(self._source.device)
        propagates = any(hop is not None for hop in plan.hops)  # else dropout meets no estimate
        if not (self._estimator.dropout_residual and model.training and propagates):
            return self._one_pass(model, plan, self._inputs())
        return self._two_passes(model, plan)

    def _one_pass(self, model: nn.Module, plan: Plan, inputs: Inputs) -> Tensor:
        first = FirstPass(plan, self._estimator, self._source.histories, inputs)
        self._pass = first
        output = _forward(model, inputs.x, Propagate(plan.sizes, first))
        first.check_unchanged()
        return output

    def _two_passes(self, model: nn.Module, plan: Plan) -> Tensor:
        source = self._source
        mean = None
        with set_mode(model, training=False):
            if not source.drops:
                mean = self._one_pass(model, plan, self._inputs())
            else:  # only the propagations of the first pass are wanted
                self._pass = self._first_pass(model, plan)
        assert self._pass is not None
        self._pass.check_answers_unchanged()
        inputs = self._pass.inputs
        residual = ResidualPass(self._pass)
        output = _forward(model, inputs.x, Propagate(plan.sizes, residual))
        source.drops = not residual.nothing_dropped
        if source.drops:
            return output
        # Without any dropout the first pass is the whole of cv, its gradient too.
        if mean is None:
            with set_mode(model, training=False):
                mean = self._one_pass(model, plan, inputs)
        return mean if torch.equal(mean, output) else output

    def _first_pass(self, model: nn.Module, plan: Plan) -> FirstPass:
        """The pass without dropout of two, as far as its last propagation."""
        histories = self._source.histories
        if self._source.in_parts and (again := targets_again(self.plan)) is not None:
            parts = FirstPassInParts(plan, self._estimator, histories, self._inputs(again))
            parts.run(model)
            return parts
        inputs = self._inputs()
        first = FirstPass(plan, self._estimator, histories, inputs, stop=True)
        with suppress(PassEnded):
            model(inputs.x, Propagate(plan.sizes, first))
        first.check_unchanged()
        return first

    def _inputs(self, more: Tensor | None = None) -> Inputs:
        """more: nodes whose rows follow those of level 0"""
        source = self._source
        nodes = self.plan.levels[0] if more is None else torch.cat([self.plan.levels[0], more])
        features = source.graph.features
        if source.preprocessed is None:
            return Inputs(select_rows(features, nodes).to(source.device), features, None)
        # Level 0 and level 1 are the same nodes here.
        x, preprocessed = select_rows_beside(features, source.preprocessed, nodes)
        return Inputs(x.to(source.device), features, preprocessed.to(source.device))

    @property
    def activations(self) -> dict[int, Tensor]:
        """What `commit` is to write: by call with a history, the rows of plan.levels[call]."""
        if self._pass is None:
            raise RuntimeError("a batch has activations between batch.run(model) and its commit")
        return self._pass.activations if self._estimator.history else {}

    def commit(self) -> None:
        """Write the activations of `run` into the histories: once, after the optimiser's step."""
        self.write_histories()
        self._source.step += 1

    def write_histories(self) -> None:
        """What `commit` does, without counting a step."""
        if self._pass is None:
            raise RuntimeError("batch.commit() comes after batch.run(model), once")
        if self._estimator.history:
            self._pass.commit(self._source.step)
        self._pass = None


def _forward(model: nn.Module, x: Tensor, propagate: Propagate) -> Tensor:
    output: Tensor = model(x, propagate)
    propagate.check_finished()
    return output


def _visited(graph: Graph, nodes: Any, inductive: bool) -> Tensor:
    if isinstance(nodes, str):
        if nodes not in ("train", "all"):
            raise ValueError(f"nodes must be 'train', 'all' or node ids, not {nodes!r}")
        if nodes == "all" and not inductive:
            return torch.arange(graph.num_nodes)
        if not len(graph.train):
            raise ValueError("the graph has no training nodes: give it a train split")
        return graph.train
    ids = check_nodes(nodes, graph.num_nodes)
    if len(torch.unique(ids)) != len(ids):
        raise ValueError("nodes names some node more than once")
    return ids
