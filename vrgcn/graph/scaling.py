"""Scaling of features, fitted on the training nodes and kept with the model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.mapped import Tell, zeros
from vrgcn.graph.sparse import CSR, full_precision, is_sparse, with_values

KINDS = ("none", "standard", "row")
_ROWS = 65_536  # at a time: no second table in memory on the way


@dataclass(frozen=True)
class Scaling:
    """kind: "none"; "standard", each column to mean 0 and deviation 1 over the training nodes; or
        "row", each node's features divided by the sum of their absolute values
    mean, deviation: (columns,), of "standard"
    """

    kind: str = "none"
    mean: Tensor | None = None
    deviation: Tensor | None = None

    @staticmethod
    def fit(kind: str, features: Tensor, nodes: Tensor) -> Scaling:
        """Learn what "standard" needs from the features (all nodes, columns) of some nodes."""
        if kind not in KINDS:
            raise ValueError(f"scaling {kind!r} is none of {', '.join(KINDS)}")
        if kind != "standard":
            return Scaling(kind)
        if is_sparse(features):
            raise ValueError(
                "scaling 'standard' would fill sparse features with non-zeros; use 'row' or 'none'"
            )
        if not len(nodes):
            raise ValueError("scaling 'standard' needs training nodes to learn from")
        total = torch.zeros(features.shape[1], dtype=torch.float64)
        squares = torch.zeros_like(total)
        # Around a first guess of the mean, so that squares of large offsets do not cancel.
        guess = features[nodes[0]].double()
        for part in nodes.split(_ROWS):
            x = features[part].double() - guess
            total += x.sum(0)
            squares += x.square().sum(0)
        mean = total / len(nodes)
        deviation = (squares / len(nodes) - mean.square()).clamp(min=0).sqrt()
        # A column that does not vary in training says nothing; leave its scale alone.
        constant = deviation <= 1e-7 * (guess + mean).abs().clamp(min=1e-30)
        deviation[constant] = 1.0
        dtype = full_precision(features.dtype)
        return Scaling(kind, (guess + mean).to(dtype), deviation.to(dtype))

    def apply(self, features: Tensor, file: Path | None = None) -> Tensor:
        """The scaled features, in a new tensor; in a memory-mapped file where one is named."""
        if self.kind == "none":
            return features
        self.check(features)
        if is_sparse(features):
            return _rows_to_one_sparse(features)
        out = zeros(tuple(features.shape), features.dtype, file)
        self._fill(out, features)
        return out

    def apply_to(self, graph: Graph, file: Path | None = None) -> Graph:
        """The graph with its features scaled, which it says of itself from then on."""
        if self.kind == "none":
            return graph
        if graph.scaling is not None:
            raise ValueError(
                f"the features of the graph are scaled already ({graph.scaling.kind}): give the "
                "graph as it was before"
            )
        if graph.derived is None or is_sparse(graph.features):
            return graph.with_features(self.apply(graph.features, file), self)
        features = graph.features
        self.check(features)
        derived = graph.derived.after(f"scaled {self.digest}")
        scaled = derived.table(
            "features",
            tuple(features.shape),
            features.dtype,
            lambda out, tell: self._fill(out, features, tell),
        )
        graph = graph.with_features(scaled, self)
        graph.derived = derived
        return graph

    @property
    def digest(self) -> str:
        """The same for scalings that do the same to any features."""
        digest = hashlib.sha256(self.kind.encode())
        for part in (self.mean, self.deviation):
            if part is not None:
                digest.update(f"{part.dtype}".encode() + part.cpu().numpy().tobytes())
        return digest.hexdigest()

    def same(self, other: Scaling) -> bool:
        """Whether the other does the same to any features."""
        pairs = ((self.mean, other.mean), (self.deviation, other.deviation))
        return self.kind == other.kind and all(
            a is b or (a is not None and b is not None and torch.equal(a.cpu(), b.cpu()))
            for a, b in pairs
        )

    def check(self, features: Tensor) -> None:
        """Refuse features that the scaling was not made for."""
        if self.mean is not None and len(self.mean) != features.shape[1]:
            raise ValueError(
                f"the scaling was fitted to {len(self.mean)} feature columns, and the graph has "
                f"{features.shape[1]}"
            )

    def _fill(self, out: Tensor, features: Tensor, tell: Tell = lambda done: None) -> None:
        for start, x in _parts(features):
            out[start : start + len(x)] = self._scale(x.to(full_precision(x.dtype)))
            tell((start + len(x)) / len(features))

    def _scale(self, x: Tensor) -> Tensor:
        if self.kind == "row":
            return x / _not_zero(x.abs().sum(1, keepdim=True))
        assert self.mean is not None
        assert self.deviation is not None
        return (x - self.mean) / self.deviation


def scale_graph(graph: Graph, kind: str) -> tuple[Graph, Scaling]:
    """The graph with its features scaled, and the scaling, learned from its training nodes."""
    scaling = Scaling.fit(kind, graph.features, graph.train)
    return scaling.apply_to(graph), scaling


def _rows_to_one_sparse(x: Tensor) -> Tensor:
    matrix, values = CSR.from_torch(x), x.values()
    rows = matrix.row_of_entry
    sums = torch.zeros(matrix.num_rows, dtype=x.dtype).index_add_(0, rows, values.abs())
    return with_values(x, values / _not_zero(sums)[rows])


def _not_zero(sums: Tensor) -> Tensor:
    return torch.where(sums > 0, sums, 1)


def _parts(features: Tensor) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, len(features), _ROWS):
        yield start, features[start : start + _ROWS]
