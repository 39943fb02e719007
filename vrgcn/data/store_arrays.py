"""Parts of a graph between memory and the arrays of its folder, whose names store_format.py has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from vrgcn.data.store_format import BlockPlace, KeptPlace, Meta, RelationPlace, kept_file
from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import Column, Kept
from vrgcn.graph.kinds import ONE
from vrgcn.graph.propagation import is_symmetric
from vrgcn.graph.relations import Relation, with_reverses
from vrgcn.graph.sparse import CSR, stored
from vrgcn.graph.validation import SPLITS

Arrays = Mapping[str, Tensor]


def graph_arrays(graph: Graph, relations: Sequence[RelationPlace]) -> dict[str, Tensor]:
    """File name without its ending -> what is in it. relations: see `relation_places`"""
    arrays = relation_arrays(relations, graph.edges.values())
    places = block_places(graph.features)
    files = [name for number, place in enumerate(places) for name in place.files(number)]
    arrays |= zip(files, stored(graph.features) if files else (), strict=True)
    if graph.labels is not None:
        arrays["labels"] = graph.labels
    columns = [column for columns in graph.kept.values() for column in columns.values()]
    arrays |= {kept_file(number): column.values for number, column in enumerate(columns)}
    return arrays | {name: graph.split(name) for name in SPLITS}


def relation_arrays(
    relations: Iterable[RelationPlace], matrices: Iterable[CSR]
) -> dict[str, Tensor]:
    """The arrays of relations with these adjacencies, by the names of their files."""
    arrays: dict[str, Tensor] = {}
    for number, (place, A) in enumerate(zip(relations, matrices, strict=True)):
        both = (A,) if place.undirected else (A, A.transposed)
        for names, matrix in zip(place.files(number), both, strict=True):
            parts = (matrix.indptr, matrix.indices, matrix.values)
            arrays |= {n: part for n, part in zip(names, parts, strict=True) if part is not None}
    return arrays


def relation_places(graph: Graph) -> list[RelationPlace]:
    """The relations that were given, in the order of their files."""
    return [
        RelationPlace(
            *(*relation.triple, relation.num_edges, relation.weighted),
            relation.undirected or (not graph.kinds.named and is_symmetric(relation.adjacency)),
            relation.one_way,
        )
        for relation in graph.given.values()
    ]


def block_places(features: Tensor) -> list[BlockPlace]:
    """The blocks of the features, in the order of their files; none without columns."""
    return [
        BlockPlace(b.row, b.column, b.num_rows, b.width, b.matrix.num_entries if b.sparse else None)
        for b in (Blocks.of(features).blocks if features.shape[1] else ())
    ]


def kept_places(kept: Kept) -> list[KeptPlace]:
    """The kept columns, in the order of their files."""
    return [
        KeptPlace(owner, name, column.kind, column.classes)
        for owner, columns in kept.items()
        for name, column in columns.items()
    ]


def relations_from(arrays: Arrays, meta: Meta) -> dict[str, Relation]:
    """All relations with their reverses, which are the stored matrices of the reversed edges; those
    of one-way relations are kept for gradients only."""
    found = []
    for number, place in enumerate(meta.relations):
        given, *reverse = (
            CSR(arrays[indptr], arrays[indices], arrays.get(weights), meta.nodes)
            for indptr, indices, weights in place.files(number)
        )
        A = given.with_transposed(reverse[0]) if reverse else given
        relation = Relation(place.triple, A, undirected=place.undirected, one_way=place.one_way)
        # The relation of a graph of one table has no reverse, whichever way its edges lead.
        found.append(replace(relation, undirected=False) if place.source == ONE else relation)
    return with_reverses(found)


def features_from(arrays: Arrays, meta: Meta) -> Tensor:
    """The features: a plain matrix if one block has all of them."""
    shape = meta.nodes, meta.width
    blocks = []
    for number, place in enumerate(meta.blocks):
        parts = [arrays[name] for name in place.files(number)]
        sparse = len(parts) > 1
        matrix = CSR(parts[0], parts[1], parts[2], place.width).to_torch() if sparse else parts[0]
        blocks.append(Block(matrix, place.column, place.row))
    if not blocks:
        return torch.zeros(shape)
    whole = len(blocks) == 1 and blocks[0].values.shape == shape
    return blocks[0].values if whole else Blocks(shape, blocks)


def kept_from(arrays: Arrays, meta: Meta) -> Kept:
    """The kept columns, by owner and name."""
    found: dict[str, dict[str, Column]] = {}
    for number, place in enumerate(meta.kept):
        column = Column(place.kind, arrays[kept_file(number)], place.classes)
        found.setdefault(place.owner, {})[place.name] = column
    return found
