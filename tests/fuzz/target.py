"""Targets of fuzzing: each can write valid files, damage them, and read them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import torch

from tests.fuzz.mutations import bytes_changed
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names


class Target(NamedTuple):
    """make: writes right files into an empty folder
    damage: changes them by chance
    read: reads and uses them
    sealed: whether any change at all must be refused, for there are checksums
    each: whether `make` makes a folder for each of several cases, one of which is tried at a time
    """

    make: Callable[[Path], None]
    damage: Callable[[Path, random.Random], None]
    read: Callable[[Path], None]
    sealed: bool = False
    each: bool = False


def some_graph(kind: str) -> Graph:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(12, 5, generator=generator)
    edges = torch.randint(12, (2, 40), generator=generator)
    splits = {"train": range(6), "val": range(6, 9), "test": range(9, 12)}
    labels = torch.arange(12) % 3
    names = Names(pa.array([f"n{i}" for i in range(12)]), ["a", "b", "c"], list("vwxyz"))
    if kind == "sparse":
        rare = (features * (features > 0.5)).to_sparse_csr()
        return Graph(edges, rare, labels, edge_weight=torch.rand(40), **splits)
    if kind == "multilabel":
        return Graph(edges, features.double(), torch.nn.functional.one_hot(labels), **splits)
    if kind == "numbers":
        return Graph(edges, features, labels * 1.5, task="regression", **splits)
    if kind == "kinds":
        bought = ("user", "bought", "item")
        words = {"word": ["ab"[i % 2] for i in range(40)], "part": ["train", "val"] * 20}
        return Graph.from_kinds(
            {"user": features[:7], "item": features[7:, :2].contiguous(), "shop": 3},
            {
                bought: (edges % 5, torch.rand(40, generator=generator)),
                ("user", "follows", "user"): edges % 7,
                ("item", "sold_by", "shop"): edges % 3,
            },
            {"user": labels[:7]},
            train=range(4),
            val=range(4, 6),
            test=range(6, 7),
            ids={"user": [f"u{i}" for i in range(7)], "shop": [5, 6, 7]},
            classes=["a", "b", "c"],
            edge_columns={bought: {"rating": torch.rand(40).tolist(), **words}},
            node_columns={"item": {"size": [1.0, 2.0, float("nan"), 4.0, 5.0]}},
        )
    return Graph(edges, features, labels, undirected=True, names=names, **splits)


def damage_any(folder: Path, draw: random.Random) -> None:
    file = draw.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    file.write_bytes(bytes_changed(file.read_bytes(), draw))
