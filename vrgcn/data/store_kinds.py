"""Kinds and relations in the folder of a graph: what `meta.json` says of them, and their files.

    relation-0/ relation-1/ ...     adjacency of a relation over the numbering of all nodes: indptr,
                                    indices, weights, and the same of the reversed edges
    ids_0.arrow  ids_1.arrow ...    the user's own ids of the nodes of a kind

Kinds and relations may have any name; their files are numbered in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from vrgcn.files.kinds import is_count
from vrgcn.files.mistakes import InputError
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.relations import Relation, with_reverses
from vrgcn.graph.sparse import CSR

RELATION = "relation-"  # what the names of relations' folders begin with
_PARTS = ("indptr", "indices", "weights")


@dataclass(frozen=True)
class RelationPlace:
    """A relation as `meta.json` describes it, without its reverse.

    edges: entries of its adjacency
    undirected: every edge is there in both directions, and there is no reverse
    """

    source: str
    name: str
    target: str
    edges: int
    weighted: bool
    undirected: bool = False

    @property
    def triple(self) -> tuple[str, str, str]:
        return self.source, self.name, self.target

    def files(self, number: int) -> list[tuple[str, ...]]:
        """Names of the arrays of relation `number`: of its matrix, and of the reverse."""
        prefixes = ("",) if self.undirected else ("", "reverse_")
        return [tuple(f"{RELATION}{number}/{p}{part}" for part in _PARTS) for p in prefixes]


def relation_folder(folder: Path, number: int) -> Path:
    return folder / f"{RELATION}{number}"


def ids_name(number: int) -> str:
    """The file of the ids of kind `number`."""
    return f"ids_{number}.arrow"


def kinds_of(meta: dict[str, Any]) -> Kinds:
    """The kinds of nodes of a graph."""
    if "kinds" not in meta:
        return Kinds.one(meta["nodes"], meta["width"])
    sizes = {kind["name"]: kind["nodes"] for kind in meta["kinds"]}
    widths = {kind["name"]: kind["width"] for kind in meta["kinds"]}
    return Kinds(sizes, meta["target"], widths)


def relations_of(meta: dict[str, Any]) -> list[RelationPlace]:
    return [RelationPlace(**relation) for relation in meta.get("relations", ())]


def described_kinds(
    kinds: Kinds, with_ids: Sequence[str], relations: Sequence[RelationPlace]
) -> dict[str, Any]:
    """The entries of `meta.json` about kinds and relations.

    with_ids: the kinds that have ids of their own
    """
    return {
        "kinds": [
            {
                "name": name,
                "nodes": size,
                "width": kinds.widths.get(name, 0),
                "ids": name in with_ids,
            }
            for name, size in kinds.sizes.items()
        ],
        "target": kinds.target,
        "relations": [asdict(relation) for relation in relations],
    }


def place_of(relation: Relation) -> RelationPlace:
    size = relation.num_edges, relation.weighted
    return RelationPlace(*relation.triple, *size, relation.undirected)


def relation_arrays(relations: Sequence[Relation]) -> dict[str, Tensor]:
    """The arrays of relations by the names of their files."""
    arrays: dict[str, Tensor] = {}
    for number, relation in enumerate(relations):
        A = relation.adjacency
        matrices = (A,) if relation.undirected else (A, A.transposed)
        for names, matrix in zip(place_of(relation).files(number), matrices, strict=True):
            parts = (matrix.indptr, matrix.indices, matrix.values)
            arrays |= {n: part for n, part in zip(names, parts, strict=True) if part is not None}
    return arrays


def relations_from(arrays: dict[str, Tensor], meta: dict[str, Any]) -> dict[str, Relation]:
    """All relations with their reverses, which are the stored matrices of the reversed edges."""
    found = []
    for number, place in enumerate(relations_of(meta)):
        given, *reverse = (
            CSR(arrays[indptr], arrays[indices], arrays.get(weights), meta["nodes"])
            for indptr, indices, weights in place.files(number)
        )
        A = given.with_transposed(reverse[0]) if reverse else given
        found.append(Relation(place.triple, A, undirected=place.undirected))
    return with_reverses(found)


def check_described(file: Path, meta: dict[str, Any]) -> None:
    """Refuse kinds and relations that do not agree with each other and with the counts."""
    kinds, relations = meta.get("kinds"), meta.get("relations")
    if not (isinstance(kinds, list) and kinds and all(map(_is_kind, kinds))):
        raise InputError(f"{file}: kinds must be objects of a name, nodes, width and ids")
    if not (isinstance(relations, list) and all(map(_is_relation, relations))):
        raise InputError(f"{file}: relations must be objects of two kinds, a name and edges")
    names = [kind["name"] for kind in kinds]
    triples = [relation.triple for relation in relations_of(meta)]
    wrong = {
        "two kinds have the same name": len(set(names)) < len(names),
        "two relations have the same name": len(set(triples)) < len(triples),
        "a relation is called as a kind": any("-".join(triple) in names for triple in triples),
        "kinds have another number of nodes": sum(k["nodes"] for k in kinds) != meta["nodes"],
        "kinds have another number of features": sum(k["width"] for k in kinds) != meta["width"],
        "target is no kind": meta.get("target") not in (None, *names),
        "a relation joins kinds that are not there": any(
            kind not in names for source, _, target in triples for kind in (source, target)
        ),
        "relations have another number of edges": sum(r.edges for r in relations_of(meta))
        != meta["edges"],
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise InputError(f"{file}: {text}")


def _is_kind(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"name", "nodes", "width", "ids"}
        and isinstance(value["name"], str)
        and bool(value["name"])
        and is_count(value["nodes"])
        and value["nodes"] > 0
        and is_count(value["width"])
        and isinstance(value["ids"], bool)
    )


def _is_relation(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == set(RelationPlace.__dataclass_fields__)
        and all(isinstance(value[name], str) for name in ("source", "name", "target"))
        and is_count(value["edges"])
        and all(isinstance(value[name], bool) for name in ("weighted", "undirected"))
    )
