"""NetworkX's multigraphs whose nodes have an attribute `kind`: tables of kinds and relations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from vrgcn.data.frames import ColumnTable, End, distinct_ids, edge_table, node_table
from vrgcn.files.mistakes import InputError

KIND = "kind"
_RELATION = "relation"  # the attribute of an edge that names its relation
_UNNAMED = "to"

Triple = tuple[str, str, str]


def has_kinds(G: Any) -> bool:
    """Whether a graph is a multigraph of several kinds: some of its nodes have the attribute."""
    return bool(G.is_multigraph()) and any(KIND in held for _, held in G.nodes(data=True))


def tables_of_kinds(G: Any, weight: str | None) -> tuple[dict[str, ColumnTable], dict[str, Any]]:
    """Tables by kind and relation, and the spec of an import that names them.

    An edge's relation is its attribute `relation`, or else its key where that is a text. Where the
    graph is undirected, an edge leads from the kind whose nodes come first.

    weight: the attribute with the weights of edges; None: `weight`, where one has it
    """
    kind = _kinds(G)
    tables: dict[str, ColumnTable] = {}
    ids: dict[Any, Any] = {}
    for name in dict.fromkeys(kind.values()):
        held = {node: attributes for node, attributes in G.nodes(data=True) if kind[node] == name}
        keys = [key for key in dict.fromkeys(chain(*held.values())) if key != KIND]
        ids |= zip(held, distinct_ids(list(held)), strict=True)
        tables[name] = node_table(name, held, keys, ids)
    kinds = list(tables)
    for triple, ends in _relations(G, kind, kinds).items():
        title = "-".join(triple)
        key = weight or "weight"
        weighted = any(key in held for _, _, held in ends)
        tables[title] = edge_table(title, ends, ids, key if weighted else None)
    relations = [title for title in tables if title not in kinds]
    spec = {
        "nodes": tuple(f"{name}={name}" for name in kinds),
        "edges": tuple(f"{title}={title}" for title in relations),
        "id": tuple(f"{name}.{tables[name].columns[0]}" for name in kinds),
    }
    return tables, spec


def _kinds(G: Any) -> dict[Any, str]:
    kind = {node: held.get(KIND) for node, held in G.nodes(data=True)}
    without = [node for node, name in kind.items() if not isinstance(name, str)]
    if without:
        raise InputError(
            f"{len(without)} nodes of the graph have no text as their {KIND!r}, first: "
            f"{without[0]!r}; give every node a kind, or none"
        )
    return kind


def _relations(G: Any, kind: dict[Any, str], kinds: Sequence[str]) -> dict[Triple, list[End]]:
    """Edges by relation: source, target, attributes."""
    relations: dict[Triple, list[End]] = {}
    for source, target, key, held in G.edges(keys=True, data=True):
        name = held.get(_RELATION, key if isinstance(key, str) else _UNNAMED)
        ends = [source, target]
        if not G.is_directed():
            ends.sort(key=lambda node: kinds.index(kind[node]))
        triple = (kind[ends[0]], str(name), kind[ends[1]])
        relations.setdefault(triple, []).append((*ends, held))
    return relations
