"""PyG models over several kinds of nodes: `HeteroConv`, and models that `to_hetero` made.

All kinds share one numbering here, and one call of `propagate` takes the rows of all of them. So
the rows that a layer of several relations reads are put together first: those of `HeteroConv` are
its dict, those of a `to_hetero` model what its program gives to the relations of one layer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.modules.batchnorm import _NormBase

from vrgcn.files.mistakes import InputError
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.sparse import is_dense, select_columns, select_rows
from vrgcn.pyg.adapters import Pair
from vrgcn.pyg.forward import Pass
from vrgcn.pyg.matrices import LayerMatrix
from vrgcn.pyg.support import has_layers, is_layer
from vrgcn.pyg.tokens import Edges, EdgeWeights

Triple = tuple[str, str, str]


class KindsPass(Pass):
    """One forward pass of a PyG model on a graph of several kinds.

    given: x of each kind that has features, as the model sees it
    entered: the rows of each kind that the present layer reads
    """

    def __init__(self, model: nn.Module, x: Tensor, propagate: Any) -> None:
        super().__init__(model, x, propagate)
        self.kinds: Kinds = propagate.schema.kinds
        self.entered: dict[str, Tensor] = {}
        self.h = x
        self.counts: dict[str, list[int]] = {}
        self.places: dict[str, Tensor] = {}
        self.find_places()
        self.given = {
            kind: _of_kind(x, self.places[kind], self.kinds, kind)
            for kind in self.kinds.names
            if self.kinds.widths.get(kind)
        }

    def find_places(self) -> None:
        """Find the rows of each kind among the nodes at hand."""
        self.places = {kind: self.propagate.of_kind(kind)[0] for kind in self.kinds.names}
        for kind, places in self.places.items():
            earlier = self.counts.setdefault(kind, [])
            self.same.note(earlier, len(places))
            earlier.append(len(places))

    def tokens(self) -> tuple[Any, Any]:
        triples = {name: _triple(name, *ends) for name, ends in self.propagate.schema.ends.items()}
        weighted = self.propagate.schema.weighted
        edges = {triple: Edges(name) for name, triple in triples.items()}
        weights = {triples[name]: EdgeWeights(name) for name in triples if name in weighted}
        return edges, weights or None

    def outputs(self, outputs: Any) -> Tensor:
        target = self.kinds.target
        values = outputs
        if isinstance(outputs, Mapping):
            if target not in outputs:
                raise InputError(
                    f"the model returned {', '.join(map(str, outputs))}, and the labels are of "
                    f"{target!r}"
                )
            values = outputs[target]
        values = super().outputs(values)
        assert target is not None
        # Other kinds are visited too, and their outputs are asked for by nobody.
        places = self.places[target]
        rows = values.new_zeros((self.propagate.rows, *values.shape[1:]))
        return rows.index_copy(0, places, values[: len(places)])

    def replacement(self, module: nn.Module) -> Callable[..., Any] | None:
        if is_layer(module):
            return partial(self.layer, module)
        if type(module).__name__ == "HeteroConv":
            return partial(self.hetero_layer, module)
        if isinstance(module, fx.GraphModule) and has_layers(module):
            return partial(self.program, module)
        if isinstance(module, _NormBase):
            return partial(_norm, module)
        return None

    def hetero_layer(self, layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
        """`HeteroConv` as it is, its rows put together first."""
        dicts = [part for part in (*args, *kwargs.values()) if isinstance(part, Mapping)]
        rows = next((part for part in dicts if part and all(map(_is_kind, part))), {})
        self.enter(rows)
        return type(layer).forward(layer, *args, **kwargs)

    def program(self, module: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        """A model that `to_hetero` made, run one step of its program after the other."""
        bound = inspect.signature(type(module).forward).bind(module, *args, **kwargs)
        bound.apply_defaults()
        return _Program(module, self).run(*list(bound.arguments.values())[1:])

    def enter(self, rows: Mapping[str, Tensor]) -> None:
        """The next layer reads these rows of each kind."""
        self.entered = dict(rows)
        if all(rows.get(kind) is x for kind, x in self.given.items()) and self.given:
            self.h = self.x
            return
        width = max(h.shape[1] for h in rows.values())
        some = next(iter(rows.values()))
        together = some.new_zeros((self.propagate.rows, width))
        for kind, h in rows.items():
            places = self.places[kind]
            if len(h) != len(places):
                raise RuntimeError(
                    f"a layer reads {len(h)} rows of kind {kind!r} where {len(places)} nodes are "
                    "at hand: an earlier layer has gone a hop further"
                )
            wide = h if h.shape[1] == width else nn.functional.pad(h, (0, width - h.shape[1]))
            together = together.index_copy(0, places, wide)
        self.h = together

    def pair(self, name: str, x: Any) -> Pair:
        return (x, x) if isinstance(x, Tensor) else (x[0], x[1])

    def hop(self, name: str, matrix: LayerMatrix, edges: Edges) -> KindHop:  # type: ignore[override]
        assert edges.relation is not None
        ends = self.propagate.schema.ends[edges.relation]
        return KindHop(self, name, matrix, *(ends[::-1] if edges.reverse else ends))


class KindHop:
    """A layer's matrix in one pass, from one kind of nodes to one kind."""

    def __init__(
        self, run: KindsPass, name: str, matrix: LayerMatrix, source: str, target: str
    ) -> None:
        self.run = run
        self.name = name
        self.matrix = matrix
        self.source, self.target = source, target

    def __call__(self, h: Tensor) -> Tensor:
        run = self.run
        if run.entered.get(self.source) is not h:
            raise InputError(
                f"{self.name} between kinds {self.source!r} and {self.target!r} was given rows "
                "that are not those of a HeteroConv or of a to_hetero model's layer: write layers "
                "over several relations as torch_geometric.nn.HeteroConv, of layers of one hop"
            )
        before = run.propagate.level
        averaged: Tensor = run.propagate(run.h, over=self.matrix)
        if run.propagate.level != before:
            run.find_places()
        places = run.places[self.target]
        if run.h is run.x:
            return _of_kind(averaged, places, run.kinds, self.source)
        return averaged.index_select(0, places)[:, : h.shape[1]]

    def own(self, h: Tensor) -> Tensor:
        return h[: len(self.run.places[self.target])]

    def sums(self) -> Tensor:
        sums: Tensor = self.run.propagate.sums(self.matrix)
        return sums.index_select(0, self.run.places[self.target])[:, None]


class _Program(fx.Interpreter):
    """Runs a `to_hetero` model; before the first relation of a layer, all rows of the layer are
    put together."""

    def __init__(self, module: fx.GraphModule, run: KindsPass) -> None:
        super().__init__(module)
        self.pass_ = run
        self.groups = _layers_of(module)

    def run_node(self, n: fx.Node) -> Any:
        if n in self.groups:
            rows: dict[str, Tensor] = {}
            for node in self.groups[n]:
                x, edges = (self._value(part, node) for part in node.args[:2])
                source, target = self.pass_.propagate.schema.ends[edges.relation]
                pair = (x, x) if isinstance(x, Tensor) else x
                rows |= {source: pair[0], target: pair[1]}
            self.pass_.enter(rows)
        return super().run_node(n)

    def _value(self, argument: Any, node: fx.Node) -> Any:
        return self.map_nodes_to_values(argument, node)


def _layers_of(module: fx.GraphModule) -> dict[fx.Node, list[fx.Node]]:
    """The calls of each layer's relations, by the first of them."""
    groups: list[tuple[str, list[fx.Node]]] = []
    modules = dict(module.named_modules())
    for node in module.graph.nodes:
        if node.op != "call_module" or not is_layer(modules[node.target]):
            continue
        layer = str(node.target).rpartition(".")[0]
        there = groups[-1] if groups and groups[-1][0] == layer else None
        if there is None or node.target in [call.target for call in there[1]]:
            groups.append((layer, [node]))
        else:
            there[1].append(node)
    return {calls[0]: calls for _, calls in groups}


def _of_kind(x: Tensor, places: Tensor, kinds: Kinds, kind: str) -> Tensor:
    """The rows at some places, and the columns of a kind, dense."""
    columns = kinds.columns(kind)
    rows = select_rows(x, places)
    if is_dense(rows):
        return rows[:, columns.start : columns.stop]
    picked = select_columns(rows, torch.arange(columns.start, columns.stop, device=places.device))
    return picked if is_dense(picked) else picked.to_dense()


def _norm(norm: nn.Module, x: Tensor) -> Tensor:
    """A norm over the rows of a minibatch; of one row or none, which have no deviation, by what it
    has seen."""
    training = norm.training
    norm.training = training and len(x) > 1
    try:
        made: Tensor = type(norm).forward(norm, x)
        return made
    finally:
        norm.training = training


def _triple(name: str, source: str, target: str) -> Triple:
    """PyG's edge type of a relation's name."""
    return source, name[len(source) + 1 : len(name) - len(target) - 1], target


def _is_kind(key: Any) -> bool:
    return isinstance(key, str)
