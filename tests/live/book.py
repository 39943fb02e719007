"""A graph kept as plain lists beside a live one: rows of nodes and edges as people would have them
in their tables, from which the graph is built anew after every change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from vrgcn import Graph, predict
from vrgcn.graph.names import Names
from vrgcn.inference.saved import SavedModel
from vrgcn.live.live import Live

WIDTH = 4


@dataclass
class Book:
    """nodes: features by id; edges: weights by (source, target)
    undirected, weighted: of the edges
    """

    undirected: bool
    weighted: bool
    dtype: torch.dtype = torch.float64
    sparse: bool = False
    nodes: dict[str, list[float]] = field(default_factory=dict)
    edges: dict[tuple[str, str], float] = field(default_factory=dict)

    def key(self, source: str, target: str) -> tuple[str, str]:
        """An edge, by its name in the list."""
        return (min(source, target), max(source, target)) if self.undirected else (source, target)

    def graph(self) -> Graph:
        """The graph of the lists, its nodes in the order of their ids."""
        ids = sorted(self.nodes)
        place = {node: number for number, node in enumerate(ids)}
        ends = [[place[s], place[t]] for s, t in self.edges]
        features: Tensor = torch.tensor([self.nodes[node] for node in ids], dtype=self.dtype)
        return Graph(
            torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).t(),
            features.to_sparse_csr() if self.sparse else features,
            edge_weight=torch.tensor(list(self.edges.values())) if self.weighted else None,
            undirected=self.undirected,
            names=Names(pa.array(ids)),
            num_classes=3,
            labels=torch.zeros(len(ids), dtype=torch.int64),
            train=torch.arange(len(ids)),
        )

    def check(self, live: Live, saved: SavedModel, most: float) -> None:
        """The live model answers what `predict` answers on the graph of the lists."""
        graph = self.graph()
        wanted = predict(saved, graph)
        found = live.predict(graph.names.nodes.to_pylist()).outputs
        assert live.num_nodes == len(self.nodes)
        assert float((found - wanted).abs().max()) < most


def a_book(rng: np.random.Generator, nodes: int = 12, **settings: Any) -> Book:
    """A small graph with a hub, isolated nodes, self-loops, and features that are often zero."""
    book = Book(**settings)
    for number in range(nodes):
        book.nodes[f"n{number}"] = features(rng)
    names = sorted(book.nodes)
    for _ in range(2 * nodes):
        source, target = rng.choice(names[:-2], 2)
        book.edges[book.key(source, target)] = float(rng.integers(1, 4)) / 2
    for other in names[1:8]:
        book.edges[book.key(names[0], other)] = 1.0
    return book


def features(rng: np.random.Generator) -> list[float]:
    return [float(x) for x in rng.normal(size=WIDTH).round(3) * rng.integers(0, 2, WIDTH)]


def change(book: Book, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Change the lists at random, and return the same changes as plain values."""
    steps = {
        "add_nodes": _add_node,
        "set_features": _set_features,
        "remove_nodes": _remove_node,
        "add_edges": _add_edges,
        "remove_edges": _remove_edges,
    }
    weights = np.array([3, 2, 1, 4, 3])
    count = int(rng.integers(1, 4))
    names = rng.choice(list(steps), count, p=weights / weights.sum())
    return [made for name in names for made in steps[name](book, rng)]


def _add_node(book: Book, rng: np.random.Generator) -> list[dict[str, Any]]:
    node = f"n{int(rng.integers(0, 40))}"
    if node in book.nodes:
        return []
    others = list(rng.choice(sorted(book.nodes), 3))
    book.nodes[node] = features(rng)
    rows = [{"id": node, "features": book.nodes[node]}]
    added: list[dict[str, Any]] = [{"change": "add_nodes", "rows": rows, "kind": None}]
    if rng.random() < 0.3:
        return added
    return added + _edges(book, rng, [(node, other) for other in others])


def _set_features(book: Book, rng: np.random.Generator) -> list[dict[str, Any]]:
    node = str(rng.choice(sorted(book.nodes)))
    book.nodes[node] = features(rng)
    rows = [{"id": node, "features": book.nodes[node]}]
    return [{"change": "set_features", "rows": rows, "kind": None}]


def _remove_node(book: Book, rng: np.random.Generator) -> list[dict[str, Any]]:
    if len(book.nodes) < 6:
        return []
    node = str(rng.choice(sorted(book.nodes)))
    del book.nodes[node]
    book.edges = {ends: w for ends, w in book.edges.items() if node not in ends}
    return [{"change": "remove_nodes", "ids": [node], "kind": None}]


def _add_edges(book: Book, rng: np.random.Generator) -> list[dict[str, Any]]:
    names = sorted(book.nodes)
    count = int(rng.integers(1, 4))
    return _edges(book, rng, [tuple(rng.choice(names, 2)) for _ in range(count)])  # type: ignore[misc]


def _edges(
    book: Book, rng: np.random.Generator, ends: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for source, target in ends:
        key, weight = book.key(str(source), str(target)), float(rng.integers(1, 4)) / 2
        row: dict[str, Any] = {"source": str(source), "target": str(target)}
        if book.weighted:
            row["weight"] = weight
            book.edges[key] = book.edges.get(key, 0.0) + weight
        else:
            book.edges[key] = 1.0
        rows.append(row)
    return [{"change": "add_edges", "rows": rows, "relation": None}]


def _remove_edges(book: Book, rng: np.random.Generator) -> list[dict[str, Any]]:
    if not book.edges:
        return []
    keys = sorted(book.edges)
    source, target = keys[int(rng.integers(len(keys)))]
    del book.edges[source, target]
    rows = [{"source": source, "target": target}]
    return [{"change": "remove_edges", "rows": rows, "relation": None}]
