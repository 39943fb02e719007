"""Runs a PyG model in place of `model(x, propagate)`.

The model's own `forward` runs, with tokens in place of its edges. For the time of the call each of
its layers has the `forward` of its adapter, which averages by `propagate`. Nothing of it remains on
the model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from vrgcn.graph.sparse import is_dense
from vrgcn.pyg.adapters import Pair
from vrgcn.pyg.matrices import LayerMatrix, Wires
from vrgcn.pyg.same_nodes import SameNodes
from vrgcn.pyg.support import check_model, find_adapter, has_layers, is_layer
from vrgcn.pyg.tokens import DataView, Edges, EdgeWeights

__all__ = ["check_model", "has_layers", "run_model"]  # the engine's `ModelAdapter`

_EDGES = ("edge_index", "adj_t", "adj", "edge_index_dict", "adj_t_dict")
_WEIGHTS = ("edge_weight", "edge_weight_dict", "edge_attr", "edge_attr_dict", "edge_weights")


def run_model(model: nn.Module, x: Tensor, propagate: Any) -> Tensor:
    """The outputs of a PyG model for the minibatch."""
    if propagate.schema.kinds.named:
        from vrgcn.pyg.kinds import KindsPass

        return KindsPass(model, x, propagate).run()
    return Pass(model, x, propagate).run()


class Pass:
    """One forward pass of a PyG model on a graph of one kind of nodes.

    given: x as the model sees it, dense
    """

    def __init__(self, model: nn.Module, x: Tensor, propagate: Any) -> None:
        self.model = model
        self.x = x
        self.propagate = propagate
        self.given: Any = x if is_dense(x) else x.to_dense()
        self.same = SameNodes()

    def run(self) -> Tensor:
        edges, weights = self.tokens()
        args, kwargs = _arguments(self.model, self.given, edges, weights)
        with self.replaced(), self.same:
            outputs = self.model(*args, **kwargs)
        return self.outputs(outputs)

    def tokens(self) -> tuple[Any, Any]:
        """What stands for the edges and for their weights; None if they have none."""
        return Edges(), EdgeWeights() if None in self.propagate.schema.weighted else None

    def outputs(self, outputs: Any) -> Tensor:
        """The model's outputs for the nodes of the minibatch."""
        if not isinstance(outputs, Tensor):
            raise TypeError(
                f"the model returned {type(outputs).__name__}; vrgcn takes one tensor, (nodes, "
                "classes)"
            )
        return outputs[: self.propagate.rows]

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """The layers have the `forward` of their adapters, and afterwards their own."""
        changed: list[tuple[nn.Module, Any]] = []
        try:
            for module in self.model.modules():
                forward = self.replacement(module)
                if forward is not None:
                    changed.append((module, vars(module).get("forward")))
                    vars(module)["forward"] = forward
            yield
        finally:
            for module, before in reversed(changed):
                if before is None:
                    del vars(module)["forward"]
                else:
                    vars(module)["forward"] = before

    def replacement(self, module: nn.Module) -> Callable[..., Any] | None:
        """What a module's `forward` is replaced by; None if it stays."""
        return partial(self.layer, module) if is_layer(module) else None

    def layer(self, layer: Any, *args: Any, **kwargs: Any) -> Tensor:
        """A layer's outputs, for fewer nodes than its inputs are of."""
        given = inspect.signature(type(layer).forward).bind(layer, *args, **kwargs).arguments
        name = type(layer).__name__
        edges, weights = given.get("edge_index"), given.get("edge_weight")
        if not isinstance(edges, Edges) or not isinstance(weights, EdgeWeights | None):
            raise TypeError(
                f"{name} was given edges that vrgcn does not know: hand edge_index and edge_weight "
                "of forward to the layers as they are"
            )
        if given.get("edge_attr") is not None or given.get("size") is not None:
            raise TypeError(f"{name}: vrgcn gives layers no edge_attr and no size")
        reverse = edges.reverse != (layer.flow == "target_to_source")
        adapter = find_adapter(layer)
        wires = Wires(edges.relation, weights is not None, reverse)
        return adapter.forward(
            layer,
            self.hop(name, adapter.matrix(layer, wires, given), edges),
            self.pair(name, given["x"]),
            given,
        )

    def pair(self, name: str, x: Any) -> Pair:
        """The rows of the nodes that send and that receive."""
        if isinstance(x, Tensor):
            return x, x
        if isinstance(x, Sequence) and len(x) == 2 and x[0] is x[1]:
            return x[0], x[0]
        raise TypeError(
            f"{name} was given two tables of nodes, and the graph has one kind: give it x alone"
        )

    def hop(self, name: str, matrix: LayerMatrix, edges: Edges) -> NodeHop:
        return NodeHop(self, name, matrix)


class NodeHop:
    """A layer's matrix in one pass over a graph of one kind of nodes."""

    def __init__(self, run: Pass, name: str, matrix: LayerMatrix) -> None:
        self.run = run
        self.name = name
        self.matrix = matrix

    def __call__(self, h: Tensor) -> Tensor:
        propagate = self.run.propagate
        source = self.run.x if h is self.run.given else h
        if not propagate.is_current(source):
            raise RuntimeError(
                f"{self.name} was given {h.shape[0]} rows where {propagate.rows} nodes are at "
                "hand: an earlier layer has gone a hop further. Layers side by side must be given "
                "the same tensor: h = relu(x); conv1(h, edge_index) + conv2(h, edge_index)"
            )
        averaged: Tensor = propagate(source, over=self.matrix)
        self.run.same.note(propagate.earlier, propagate.rows)
        return averaged if is_dense(averaged) else averaged.to_dense()

    def own(self, h: Tensor) -> Tensor:
        return h[: self.run.propagate.rows]

    def sums(self) -> Tensor:
        sums: Tensor = self.run.propagate.sums(self.matrix)
        return sums[:, None]


def _parameters(model: nn.Module) -> dict[str, bool]:
    """Names of the arguments that a model's `forward` takes, and whether each must be given."""
    described: Any = getattr(model, "signature", None)  # PyG's Sequential
    if hasattr(described, "param_dict"):
        return dict.fromkeys(described.param_dict, True)
    parameters = {}
    for name, one in inspect.signature(model.forward).parameters.items():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        parameters[name] = one.default is one.empty
    return parameters


def _arguments(
    model: nn.Module, x: Any, edges: Any, weights: Any
) -> tuple[list[Any], dict[str, Any]]:
    """What a model's `forward` is called with: by position what it must be given, the rest by
    name."""
    wanted = _parameters(model)
    needed = [name for name, must in wanted.items() if must]
    named = [name for name in wanted if name in _EDGES]
    if len(needed) == 1 and not named:
        return [DataView(x, edges, weights)], {}
    edge_name = named[0] if named else (needed[1] if len(needed) > 1 else None)
    weight_name = next((name for name in _WEIGHTS if name in wanted), None)
    rows = next((name for name in wanted if name not in (edge_name, weight_name)), None)
    if edge_name is None or rows is None:
        raise TypeError(
            f"{type(model).__name__}.forward takes {', '.join(wanted) or 'nothing'}; vrgcn calls a "
            "PyG model as forward(x, edge_index), forward(x, edge_index, edge_weight) or "
            "forward(data)"
        )
    values: dict[str, Any] = {rows: x, edge_name: edges}
    if weight_name is not None and (weights is not None or wanted[weight_name]):
        values[weight_name] = weights
    missing = [name for name in needed if name not in values]
    if missing:
        raise TypeError(
            f"{type(model).__name__}.forward needs {', '.join(missing)}; vrgcn gives a PyG model "
            "x, edge_index and edge_weight: give the others a default, or keep them in the model"
        )
    return [values.pop(name) for name in needed], values
