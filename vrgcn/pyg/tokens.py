"""What stands for the edges of a graph inside a PyG model: a model passes them on to its layers,
and the layers' adapters read what they mean."""

from __future__ import annotations

from typing import Any, NoReturn


class Edges:
    """In place of `edge_index`. relation: of a graph with kinds; reverse: flipped"""

    def __init__(self, relation: str | None = None, *, reverse: bool = False) -> None:
        self.relation = relation
        self.reverse = reverse

    def flip(self, *_: Any) -> Edges:
        """The edges in the other direction, as DirGNNConv asks for them."""
        return Edges(self.relation, reverse=not self.reverse)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        _refuse(f"edge_index.{name}")

    def __getitem__(self, _: Any) -> NoReturn:
        _refuse("edge_index[...]")

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> NoReturn:
        _refuse(f"{getattr(func, '__name__', func)}(edge_index)")


class EdgeWeights:
    """In place of `edge_weight`. relation: of a graph with kinds"""

    def __init__(self, relation: str | None = None) -> None:
        self.relation = relation

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        _refuse(f"edge_weight.{name}")

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> NoReturn:
        _refuse(f"{getattr(func, '__name__', func)}(edge_weight)")


class DataView:
    """In place of a `Data` that a model takes as its only argument."""

    edge_attr = None
    batch = None

    def __init__(self, x: Any, edges: Any, weights: Any) -> None:
        self.x = self.x_dict = x
        self.edge_index = self.edge_index_dict = self.adj_t = edges
        self.edge_weight = self.edge_weight_dict = weights

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"the model reads data.{name}; vrgcn gives it data.x, data.edge_index and "
            "data.edge_weight"
        )


def _refuse(asked: str) -> NoReturn:
    raise TypeError(
        f"the model computes with the edges ({asked}); vrgcn runs it on minibatches, whose edges "
        "are in its own matrices: hand edge_index and edge_weight to the layers as they are, and "
        "change the edges in the graph, before Graph.from_pyg(data)"
    )
