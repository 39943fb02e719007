"""A model on a graph, inspected once: the starting point of minibatches, exact sweeps and
diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.averages import AveragedFeatures
from vrgcn.engine.forward import find_adapter
from vrgcn.engine.plan import Relation
from vrgcn.engine.trace import Trace, device_of, trace
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import read_ahead
from vrgcn.graph.propagation import (
    Propagation,
    PropagationLike,
    Rule,
    build_propagation,
    of_relation,
)
from vrgcn.graph.relations import Schema
from vrgcn.graph.scaling import check_scaled, find_trained_on
from vrgcn.graph.sparse import for_rows, is_dense, select_rows


@dataclass(frozen=True, eq=False)
class Setup:
    """graph: whose nodes these are, with their features
    rule: where P comes from; P: the matrices by relation, None if there is one
    training, evaluation: what the model asks for in each mode
    preprocess: whether minibatches answer level 0 from P X
    averages: P X by relation
    inductive: whether P has only the edges among the training nodes
    device: of the model
    directory: where P X lies instead of in memory, if it is not kept beside the graph

    It stands for the model as it was: one whose dropout is changed needs another.
    """

    graph: Graph
    rule: PropagationLike
    P: Mapping[Relation, Propagation]
    training: Trace
    evaluation: Trace
    preprocess: bool
    averages: Mapping[Relation, AveragedFeatures]
    inductive: bool
    device: torch.device
    directory: Path | None = None

    @cached_property
    def features(self) -> Tensor:
        """The graph's features, to select rows of."""
        return for_rows(self.graph.features)

    def feature_rows(self, nodes: Tensor) -> Tensor:
        """The features of some nodes as the model takes them, on its device."""
        return select_rows(self.features, nodes).to(self.device, self.graph.dtype)

    @cached_property  # every minibatch asks for it
    def schema(self) -> Schema:
        """The kinds and relations of the graph."""
        return self.graph.schema

    @property
    def matrices(self) -> list[dict[Relation, Propagation]]:
        """For each level, what minibatches propagate it over; nothing where P X answers."""
        return [
            {} if self.preprocess and level == 0 else {over: self.P[over] for over in relations}
            for level, relations in enumerate(self.training.levels)
        ]

    @property
    def features_dropped(self) -> bool:
        """Whether dropout comes before the first propagation: it is of the features as they are
        in evaluation alone."""
        return self.evaluation.features_first and not self.training.features_first

    def inputs(self, nodes: Tensor) -> Inputs:
        """The tensors that the passes of a minibatch start from. nodes: of level 0."""
        features = self.features
        relations = self.training.levels[0] if self.preprocess else ()
        if self.inductive:  # rows of nodes that are not visited may be unknown
            for over in relations:
                self.averages[over].know(nodes)
        tables = [self.averages[over].table for over in relations]
        plain = is_dense(features) and all(map(is_dense, tables))
        if len(tables) != 1 or not plain or features.requires_grad:
            asked = (self.P[over].reached(nodes) for over in relations)
            wanted = [nodes, *(nodes if rows is None else nodes[rows] for rows in asked)]
            x, *averaged = (
                select_rows(table, some).to(self.device, self.graph.dtype)
                for table, some in zip((features, *tables), wanted, strict=True)
            )
            return Inputs(x, self.graph.features, dict(zip(relations, averaged, strict=True)))
        width = features.shape[1]
        both = features.new_empty((len(nodes), 2 * width))
        for table, half in ((features, both[:, :width]), (tables[0], both[:, width:])):
            with read_ahead(table, nodes):
                torch.index_select(table, 0, nodes, out=half)
        both = both.to(self.device, self.graph.dtype)
        # Not views to autograd: a change of one in place must not count as one of the other.
        x, averages = both[:, :width].data, both[:, width:].data
        return Inputs(x, features, {relations[0]: averages}, both)

    def fill(self, visited: Tensor | None = None) -> None:
        """Compute P X, where minibatches answer level 0 from it.

        visited: nodes that minibatches visit, of an inductive model; None: the training nodes
        """
        if not self.preprocess:
            return
        reached = None
        if self.inductive:
            train = self.graph.seen
            reached = train if visited is None else torch.cat([train, visited]).unique()
        for over in self.training.levels[0]:
            self.averages[over].fill(reached)

    def kept_in(self, directory: Path | None) -> Setup:
        """The same setup with P X in a file of `directory`; None: in memory."""
        if directory == self.directory:
            return self
        rule = None if self.inductive else self.rule
        averages = _averages(self.P, rule, self.graph, directory)
        return replace(self, averages=averages, directory=directory)

    def sharing(self, other: Setup) -> Setup:
        """The same setup with P and P X of another one, if they are the same."""
        parts = [
            (each.rule, tuple(each.P), each.inductive, each.directory) for each in (self, other)
        ]
        alike = isinstance(self.rule, str) and parts[0] == parts[1]
        if not alike or self.graph is not other.graph:
            return self
        return replace(self, P=other.P, averages=other.averages)

    def on_edges_of(self, graph: Graph) -> Setup:
        """The same model with P of another graph of the same nodes; P X is the caller's to fill."""
        P = _matrices(self.rule, graph, self.P)
        return replace(self, P=P, averages=_averages(P, None, self.graph, self.directory))

    def on_all_edges(self) -> Setup:
        """The same model for evaluation: of an inductive one, P has the edges of all nodes."""
        if not self.inductive:
            return self
        P = _matrices(self.rule, self.graph, self.P)
        averages = _averages(P, self.rule, self.graph, self.directory)
        return replace(self, P=P, averages=averages, inductive=False)


@dataclass(frozen=True)
class Inputs:
    """The tensors that a plan's passes start from.

    x: (level 0, features), what the model is given
    features: (nodes, features), to know the neighbours of level 0 exactly
    averaged: (level 1, features) rows of P X by relation, where level 0 is preprocessed
    both: (level 1, 2 features), x and P X side by side, where there is one relation
    """

    x: Tensor
    features: Tensor
    averaged: Mapping[Relation, Tensor]
    both: Tensor | None = None

    @property
    def ready(self) -> tuple[Tensor, Tensor] | None:
        """For `Propagate.beside`."""
        return None if self.both is None else (self.x, self.both)

    def answer(self, h: Tensor, over: Relation) -> Tensor:
        """P h for the preprocessed level, whose h must be the features."""
        if h is not self.x:
            raise RuntimeError(NOT_THE_FEATURES)
        return self.averaged[over]


_PROPAGATION = "propagation"  # the attribute by which a model says what it is meant for
NOT_THE_FEATURES = (
    "preprocess=True needs a model whose first propagate is of the features as they "
    "are; this one changes them first (by dropout or a layer): use preprocess=False"
)


def set_up(
    model: nn.Module, graph: Graph, *, visited: Tensor | None = None, **settings: Any
) -> Setup:
    """Look at a model on a graph, and compute P X where minibatches need it.

    visited: nodes that minibatches visit, of an inductive model; None: the training nodes
    settings: those of `look`
    """
    setup = look(model, graph, **settings)
    setup.fill(visited)
    return setup


def look(
    model: nn.Module,
    graph: Graph,
    *,
    propagation: PropagationLike | None = None,
    preprocess: bool | None = False,
    inductive: bool = False,
    directory: Path | None = None,
) -> Setup:
    """Look at a model on a graph; P X, which takes long, is left to `Setup.fill`.

    propagation: a name, a matrix or a rule, or a dict of these by relation; None: the model's own
    preprocess: answer level 0 of minibatches from P X; None: if the model allows it
    inductive: use only the edges among the training nodes
    directory: keep P X there instead of in memory
    """
    check_scaled(model, graph)
    rule = propagation_of(model) if propagation is None else propagation
    _check_inductive(rule, inductive)
    adapter = find_adapter(model)
    if adapter is not None:
        adapter.check_model(model)
        _check_no_rule(propagation)
    training, evaluation = (
        trace(model, graph.features, training=mode, schema=graph.schema) for mode in (True, False)
    )
    visible = graph.in_training() if inductive else graph
    asked = asked_relations(training, evaluation)
    if adapter is not None:  # layers of its library name matrices that make themselves
        rule = {over: over for over in asked if over and callable(over)}
    P = _matrices(rule, visible, asked)
    _check_relations(training, P)
    if preprocess and training.depth and not training.features_first:
        raise InputError(NOT_THE_FEATURES)
    preprocess = training.features_first if preprocess is None else preprocess
    averages = _averages(P, None if inductive else rule, graph, directory)
    return Setup(
        graph,
        rule,
        P,
        training,
        evaluation,
        preprocess and training.depth > 0,
        averages,
        inductive,
        device_of(model),
        directory,
    )


def propagation_of(model: nn.Module) -> PropagationLike:
    """The propagation that a model names by an attribute `propagation`; "gcn" if it names none. A
    model that was trained by a matrix of the user's has to be given that matrix again."""
    trained_on = find_trained_on(model)
    if trained_on is not None and trained_on.own_matrix:
        raise InputError(
            "the model was trained by a propagation that you gave: give it again, propagation=..."
        )
    if find_adapter(model) is not None:
        return {}  # its layers name their matrices when they run
    rule: PropagationLike = getattr(model, _PROPAGATION, "gcn")
    return rule


def note_propagation(model: nn.Module, name: str) -> None:
    """The model says from now on that it is meant for this matrix, whatever its class says."""
    setattr(model, _PROPAGATION, name)


def _check_no_rule(propagation: PropagationLike | None) -> None:
    if propagation is not None:
        raise InputError(
            "the layers of a PyG model bring their own matrices: leave "
            f"{setting('propagation')} out"
        )


def asked_relations(*traces: Trace) -> list[Relation]:
    """The relations that a model averages something over."""
    found = [over for one in traces for level in one.levels for over in level]
    tables = [over for one in traces for over in one.tables]
    return list(dict.fromkeys([*found, *sorted(tables, key=str)]))


def _matrices(
    rule: PropagationLike, graph: Graph, asked: Iterable[Relation]
) -> dict[Relation, Propagation]:
    """The matrices by relation. asked: in a graph with relations, those that the model names"""
    if graph.kinds.named and not isinstance(rule, Mapping):
        return {over: _of_kinds(rule, graph, over) for over in asked}
    if not isinstance(rule, Mapping):
        return {None: build_propagation(rule, graph)}
    if not rule:
        raise InputError("propagation names no relation: give a matrix for each")
    return {over: build_propagation(part, graph) for over, part in rule.items()}


def _of_kinds(rule: Rule, graph: Graph, over: Relation) -> Propagation:
    """The matrix of a relation; without a name, that of all edges."""
    if over is None:
        return build_propagation(rule, graph)
    if over not in graph.relations:
        raise InputError(
            f"the model propagates over {over!r}, which is no relation of this graph; it has "
            f"{', '.join(graph.relations) or 'none'}"
        )
    if not isinstance(rule, str):
        raise InputError(
            "one matrix cannot stand for several relations: give the name of a rule, or a dict "
            "with a matrix for each relation"
        )
    return of_relation(rule, graph, graph.relations[over])


def _averages(
    P: Mapping[Relation, Propagation],
    rule: PropagationLike | None,
    graph: Graph,
    directory: Path | None,
) -> dict[Relation, AveragedFeatures]:
    """rule: where P comes from, if it is of all edges of the graph"""
    rules: Mapping[Any, object] = rule if isinstance(rule, Mapping) else dict.fromkeys(P, rule)
    return {
        over: AveragedFeatures(
            p,
            graph.features,
            None if directory is None else directory / f"averages-{number}.bin",
            derived=graph.derived,
            rule=rules[over],
        )
        for number, (over, p) in enumerate(P.items())
    }


def _check_inductive(rule: PropagationLike, inductive: bool) -> None:
    parts = list(rule.values()) if isinstance(rule, Mapping) else [rule]
    if inductive and any(not isinstance(part, str) and not callable(part) for part in parts):
        raise InputError(
            "inductive training has a propagation matrix of its own: give a function from a "
            "graph to a Propagation instead of one matrix"
        )


def _check_relations(trace: Trace, P: Mapping[Relation, Propagation]) -> None:
    for over in (over for level in trace.levels for over in level):
        if over in P:
            continue
        if over is None:
            names = ", ".join(map(repr, P))
            raise InputError(f"propagation has the relations {names}: call propagate(h, over=...)")
        known = [repr(name) for name in P if name is not None]
        raise InputError(
            f"the model propagates over {over!r}, and propagation has "
            f"{', '.join(known) or 'one matrix without a name'}; give a dict with a matrix for each"
        )
