"""The identity of a run: its graph, model and settings, which tell it apart from other runs.

Two runs of the same identity make the same steps. Settings that may change when a run resumes, such
as the number of epochs, are not part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vrgcn.files.tensors import pieces
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR, in_blocks, stored
from vrgcn.graph.validation import SPLITS
from vrgcn.targets.scored import scored_edges
from vrgcn.training.config import free_settings

if TYPE_CHECKING:
    from vrgcn.training.trainer import Trainer

PARTS = ("graph", "model", "config", "run")  # parts of an identity, each an object


def identity(trainer: Trainer, graph: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the identity by part, as JSON can hold it: tensors by their SHA-256. Reads the graph
    once.

    graph: its fingerprint, if the trainer has only a part of it
    """
    batches = trainer.minibatches
    free = free_settings(trainer.config.schedule)
    config = {k: v for k, v in asdict(trainer.config).items() if k not in free}
    return {
        "graph": fingerprint(trainer.graph) if graph is None else graph,
        "model": _model(trainer.model),
        "config": config | {"fanout": trainer.config.fanout and list(trainer.config.fanout)},
        "run": {
            "estimator": _estimator(batches.estimator),
            "objective": trainer.target.name,
            "propagation": _digest(
                part for P in batches.whole.P.values() for part in _matrix(P, trainer.graph)
            ),
        },
    }


def fingerprint(graph: Graph) -> dict[str, Any]:
    """Return the SHA-256 of each part of a graph, and its size."""
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        **_edges(graph),
        "features": _digest(_features(graph.features)),
        "labels": None if graph.labels is None else _digest([graph.labels]),
        **{f"split {name}": _digest([graph.split(name)]) for name in SPLITS},
        **_predicted(graph),
    }


def _predicted(graph: Graph) -> dict[str, Any]:
    """Return the SHA-256 of each split of edges that are predicted."""
    edges = scored_edges(graph)
    if edges is None:
        return {}
    digests = {f"{name} {edges.word}": _digest([edges.predicted.split(name)]) for name in SPLITS}
    relation = getattr(edges.predicted, "relation", None)
    return digests if relation is None else {"relation": relation, **digests}


def _edges(graph: Graph) -> dict[str, Any]:
    """Return the SHA-256 of the edges, of each relation by itself where there are several."""
    if not graph.kinds.named:
        return {"adjacency": _digest(_sparse(graph.adjacency))}
    return {
        "kinds": dict(graph.kinds.sizes),
        **{f"relation {name}": _digest(_sparse(A)) for name, A in graph.edges.items()},
    }


def _features(x: Tensor) -> list[Tensor]:
    if not in_blocks(x):
        return stored(x)
    return [torch.tensor([(block.row, block.column) for block in x.blocks]), *stored(x)]


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the differences of two identities as text, such as "learning_rate was 0.01 and is
    0.02"."""
    told = []
    for part, ours in now.items():
        theirs = before[part]
        for name in {**ours, **theirs}:
            was = theirs.get(name)
            if was != ours.get(name):
                told.append(_difference(part, name, was, ours.get(name)))
    return told


def _difference(part: str, name: str, was: Any, now: Any) -> str:
    subject = {"graph": f"the graph's {name}", "model": f"the model's {name}"}.get(part, name)
    if _is_digest(was) or _is_digest(now):
        return f"{subject} {'are' if name.endswith('s') else 'is'} not the same"
    return f"{subject} was {was!r} and is {now!r}"


def _model(model: nn.Module) -> dict[str, Any]:
    """Return the class, the settings, and the shape of every weight."""
    arguments = getattr(model, "arguments", None)
    settings = arguments if isinstance(arguments, dict) else {"structure": repr(model)}
    return {
        "class": type(model).__qualname__,
        **{name: value if _plain(value) else repr(value) for name, value in settings.items()},
        **{
            f"weight {name}": [str(value.dtype), *value.shape]
            for name, value in model.state_dict().items()
        },
    }


def _estimator(estimator: Any) -> str:
    sampler = estimator.sampler
    if not isinstance(sampler, str):  # the user's own, whose repr may contain a memory address
        sampler = type(sampler).__qualname__
    ways = {f.name: getattr(estimator, f.name) for f in fields(estimator) if f.name != "sampler"}
    return " ".join([sampler, *(f"{name}={way}" for name, way in ways.items())])


def _matrix(P: Propagation, graph: Graph) -> Iterator[Tensor]:
    for part in (P.own, P.left, P.right):
        if part is not None:
            yield torch.as_tensor(part)
    known = [part.adjacency for part in graph.relations.values()]
    if all(P.adjacency.indices is not A.indices for A in known):  # else it is in the fingerprint
        yield from _sparse(P.adjacency)


def _sparse(matrix: CSR) -> list[Tensor]:
    return [p for p in (matrix.indptr, matrix.indices, matrix.values) if p is not None]


def _digest(tensors: Any) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)};".encode())
        for piece in pieces(tensor):
            digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("sha256:")


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
