"""NetworkX's multigraphs whose nodes have an attribute `kind`: tables of kinds and relations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vrgcn.data.frames import ColumnTable, distinct_ids, table_column
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
        nodes = [node for node in G.nodes if kind[node] == name]
        own = distinct_ids(nodes)
        ids |= zip(nodes, own, strict=True)
        tables[name] = _node_table(G, name, nodes, own)
    kinds = list(tables)
    for triple, ends in _relations(G, kind, kinds).items():
        title = "-".join(triple)
        columns = {
            "source": table_column([ids[source] for source, _, _ in ends]),
            "target": table_column([ids[target] for _, target, _ in ends]),
        }
        key = weight or "weight"
        if any(key in held for _, _, held in ends):
            columns["weight"] = table_column([held.get(key, 1.0) for _, _, held in ends])
        tables[title] = ColumnTable(title, columns, [(s, t) for s, t, _ in ends])
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


def _node_table(G: Any, name: str, nodes: Sequence[Any], ids: Sequence[Any]) -> ColumnTable:
    held = [G.nodes[node] for node in nodes]
    keys = [key for key in dict.fromkeys(key for one in held for key in one) if key != KIND]
    id_column = "id"
    while id_column in map(str, keys):
        id_column = f"node {id_column}"
    columns = {id_column: table_column(ids)}
    for key in keys:
        columns[str(key)] = table_column([one.get(key) for one in held])
    return ColumnTable(name, columns, nodes)


def _relations(
    G: Any, kind: dict[Any, str], kinds: Sequence[str]
) -> dict[Triple, list[tuple[Any, Any, dict[str, Any]]]]:
    """Edges by relation: source, target, attributes."""
    found: dict[Triple, list[tuple[Any, Any, dict[str, Any]]]] = {}
    for source, target, key, held in G.edges(keys=True, data=True):
        name = held.get(_RELATION, key if isinstance(key, str) else _UNNAMED)
        ends = [source, target]
        if not G.is_directed():
            ends.sort(key=lambda node: kinds.index(kind[node]))
        triple = (kind[ends[0]], str(name), kind[ends[1]])
        found.setdefault(triple, []).append((*ends, held))
    return found
