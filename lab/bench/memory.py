"""Peak memory of training, each time in a process of its own.

The peak resident size of a process (`ru_maxrss`) never falls, so one process cannot tell its
algorithms apart. A child maps the saved graph, trains a few steps and reports its peak less what it
was after the imports and a step on a tiny graph. Children are forked from a server that has
imported everything and computed nothing: they start at once and with no thread of PyTorch's.

What must be there is added up from the sizes of tensors: the graph (adjacency, labels, splits), the
features, and the tables (P, P X and the histories). Features mapped from a file count on both
sides: pages of the file are resident once they were read, and training reads them all. A mapped
adjacency is read once to make P and may stay resident as well.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lab.harness.algorithms import Algorithm, Architecture, Recipe
from vrgcn.data.store import load_graph
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_sparse
from vrgcn.graph.validation import SPLITS

# PyTorch imports it with the first optimiser: more than 100 MB that are no memory of training.
_LATE_IMPORTS = ("torch._dynamo",)


@dataclass(frozen=True)
class Memory:
    """Bytes: the peak less the imports, and what must be held at least."""

    peak: int
    graph: int
    features: int
    tables: int

    @property
    def held(self) -> int:
        return self.graph + self.features + self.tables

    @property
    def excess(self) -> int:
        """Peak beyond graph, features and tables: minibatches, and temporary memory of building
        P."""
        return self.peak - self.held

    def as_dict(self) -> dict[str, int]:
        return asdict(self) | {"excess": self.excess}


def training_memory(
    folder: Path,
    recipe: Recipe,
    architecture: Architecture,
    *,
    steps: int,
    threads: int,
    inductive: bool = True,
) -> Memory:
    """Measure the peak of building the minibatches of the saved graph and training this many
    steps."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_LATE_IMPORTS])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_train, folder, recipe, architecture, steps, threads, inductive).result()


def _train(
    folder: Path,
    recipe: Recipe,
    architecture: Architecture,
    steps: int,
    threads: int,
    inductive: bool,
) -> Memory:
    torch.set_num_threads(threads)
    _warm_up(recipe, architecture)
    before = _peak()
    graph = load_graph(folder)
    algorithm = Algorithm(graph, recipe, architecture, inductive=inductive)
    algorithm.run(steps)
    peak = _peak() - before
    return Memory(
        peak, graph_bytes(graph), size_of(graph.features), tables_bytes(algorithm.batches)
    )


def _warm_up(recipe: Recipe, architecture: Architecture) -> None:
    """Run a step on a tiny graph: libraries allocate their own memory, some tens of megabytes that
    vary, when they first compute."""
    ring = torch.arange(64)
    graph = Graph(
        torch.stack([ring, ring.roll(1)]), torch.ones(64, 4), ring % 2, train=ring, undirected=True
    )
    Algorithm(graph, recipe, architecture, inductive=False).run(1)


def graph_bytes(graph: Graph) -> int:
    return size_of(graph.adjacency, graph.labels, *(graph.split(name) for name in SPLITS))


def tables_bytes(batches: MiniBatches) -> int:
    """Return the bytes of P, P X and the histories."""
    setup = batches.setup
    averages = [averages.values for averages in setup.averages.values()]
    return size_of(dict(setup.P), averages, batches.histories)


def size_of(*things: Any) -> int:
    """Return the bytes of all tensors in the objects and in their attributes; shared storage counts
    once."""
    sizes: dict[int, int] = {}
    for thing in things:
        for tensor in _tensors(thing):
            place, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
            sizes[place] = max(size, sizes.get(place, 0))
    return sum(sizes.values())


def _tensors(thing: Any) -> Iterator[Tensor]:
    if isinstance(thing, Tensor):
        if is_sparse(thing):
            yield from (thing.crow_indices(), thing.col_indices(), thing.values())
        else:
            yield thing
    elif isinstance(thing, dict):
        for part in thing.values():
            yield from _tensors(part)
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from _tensors(part)
    elif is_dataclass(thing):  # only its fields: cached values do not count
        for part in fields(thing):
            yield from _tensors(getattr(thing, part.name))
    elif type(thing).__module__.startswith("vrgcn."):
        yield from _tensors(vars(thing))


def _peak() -> int:
    """Return the peak in bytes: macOS reports bytes, Linux kilobytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
