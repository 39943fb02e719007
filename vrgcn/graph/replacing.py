"""Parts of a graph that change, and the parts that become wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.relations import with_reverses
from vrgcn.graph.sparse import CSR
from vrgcn.graph.validation import SPLITS, check_labels, check_split_labels, check_splits

if TYPE_CHECKING:
    from vrgcn.graph.graph import Graph

Parts = dict[str, Any]
_FREE = (
    *("names", "num_classes", "task"),
    *("kept", "scaling", "dated", "derived", "sums", "visible"),
)


def changed(graph: Graph, given: Mapping[str, Any]) -> Graph:
    """See `Graph.replace`."""
    for name in given:
        if name not in (*_RULES, *SPLITS, *_FREE):
            known = ", ".join((*_RULES, *SPLITS, *_FREE))
            raise TypeError(f"a graph has no part {name!r} to replace; it has {known}")
    for name, rule in _RULES.items():
        if name in given:
            graph = _with(graph, rule(graph, given))
    splits = {name: given[name] for name in SPLITS if name in given}
    splits = {name: part for name, part in splits.items() if part is not graph.split(name)}
    graph = _with(graph, _checked(graph, splits) if splits else {})
    graph = _with(graph, {name: part for name, part in given.items() if name in _FREE})
    if graph.labels is not None and given.keys() & {"labels", *SPLITS}:
        check_split_labels(graph)
    graph.names.check(graph.num_nodes, graph.num_classes, graph.num_features)
    return graph


def _with(graph: Graph, parts: Parts) -> Graph:
    other = object.__new__(type(graph))
    vars(other).update(vars(graph) | parts)
    if "relations" in parts:
        vars(other).pop("adjacency", None)  # made of the relations when it is asked for
    return other


def _checked(graph: Graph, splits: Mapping[str, Any]) -> Parts:
    """Splits that were given, as sorted ids: as in `Graph`, and any may be empty."""
    every = {name: splits.get(name, graph.split(name)) for name in SPLITS}
    ids = {name: None if part is None or not len(part) else part for name, part in every.items()}
    checked = zip(SPLITS, check_splits(ids, graph.num_nodes), strict=True)
    return {name: part for name, part in checked if name in splits}


def _features(graph: Graph, given: Mapping[str, Any]) -> Parts:
    features: Tensor = given["features"]
    if features.shape[0] != graph.num_nodes:
        raise InputError(f"{features.shape[0]} rows of features for {graph.num_nodes} nodes")
    parts: Parts = {"features": features.cpu(), "scaling": None, "derived": None}
    if features.shape[1] == graph.num_features:
        return parts
    if graph.kinds.named:
        raise InputError(
            f"the kinds of the graph have {graph.num_features} feature columns, and the new "
            f"features {features.shape[1]}: make the graph anew, Graph.from_kinds(...)"
        )
    names, kinds = replace(graph.names, features=None), Kinds.one(*features.shape)
    return parts | {"names": names, "kinds": kinds}


def _edges(graph: Graph, given: Mapping[str, Any]) -> Parts:
    edges: Mapping[str, CSR] = given["edges"]
    for name, A in edges.items():
        if name not in graph.edges:
            raise InputError(f"the graph has no edges {name!r}; it has {', '.join(graph.edges)}")
        nodes, shape = graph.num_nodes, (A.num_rows, A.columns)
        if shape != (nodes, nodes):
            raise InputError(f"edges {name!r}: a matrix of shape {shape} for {nodes} nodes")
    kept = {owner: columns for owner, columns in graph.kept.items() if owner not in edges}
    relations = with_reverses(
        replace(part, adjacency=edges.get(name, part.adjacency))
        for name, part in graph.given.items()
    )
    none = dict.fromkeys(("visible", "derived", "sums"))
    return {"relations": relations, "kept": kept, **none}


def _labels(graph: Graph, given: Mapping[str, Any]) -> Parts:
    labels, classes, task = check_labels(
        given["labels"], given.get("num_classes"), graph.num_nodes, given.get("task")
    )
    parts: Parts = {"labels": labels, "num_classes": classes, "task": task}
    if classes != graph.num_classes:
        parts["names"] = replace(graph.names, classes=None)
    return parts


def _pairs(graph: Graph, given: Mapping[str, Any]) -> Parts:
    return {"pairs": given["pairs"], "triples": None}


def _triples(graph: Graph, given: Mapping[str, Any]) -> Parts:
    return {"triples": given["triples"], "pairs": None}


_RULES: dict[str, Callable[[Graph, Mapping[str, Any]], Parts]] = {
    "features": _features,
    "edges": _edges,
    "labels": _labels,
    "pairs": _pairs,
    "triples": _triples,
}
