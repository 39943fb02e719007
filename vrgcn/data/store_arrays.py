"""Parts of a graph between memory and the arrays of its folder, whose names store_format.py has,
and the user's own node ids: Arrow files, read back without a copy."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import torch
from torch import Tensor

from vrgcn.data.sources import META
from vrgcn.data.store_format import BlockPlace, KeptPlace, Meta, RelationPlace, ids_file, kept_file
from vrgcn.files.folder import OpenFolder
from vrgcn.files.mistakes import InputError
from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import Column, Kept
from vrgcn.graph.kinds import ONE, Kinds
from vrgcn.graph.names import Names
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
    relations = []
    for number, place in enumerate(meta.relations):
        given, *reverse = (
            CSR(arrays[indptr], arrays[indices], arrays.get(weights), meta.nodes)
            for indptr, indices, weights in place.files(number)
        )
        A = given.with_transposed(reverse[0]) if reverse else given
        relation = Relation(place.triple, A, undirected=place.undirected, one_way=place.one_way)
        # The relation of a graph of one table has no reverse, whichever way its edges lead.
        relations.append(replace(relation, undirected=False) if place.source == ONE else relation)
    return with_reverses(relations)


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
    columns: dict[str, dict[str, Column]] = {}
    for number, place in enumerate(meta.kept):
        column = Column(place.kind, arrays[kept_file(number)], place.classes)
        columns.setdefault(place.owner, {})[place.name] = column
    return columns


def names_from(folder: OpenFolder, meta: Meta) -> Names:
    """The names of nodes, classes and features of a graph."""
    ids = {
        kind: read_ids(folder, meta.kinds.sizes[kind], file)
        for kind, file in meta.id_files().items()
    }
    if not meta.kinds.named:
        return Names(ids.get(ONE), meta.classes, meta.features)
    return Names(None, meta.classes, meta.features, meta.kinds, ids)


def write_all_ids(names: Names, kinds: Kinds, folder: Path) -> list[str]:
    """Write the ids of the nodes of each kind; return the kinds that have some."""
    given = {} if names.nodes is None else {ONE: names.nodes}
    given |= names.by_kind
    for number, kind in enumerate(kinds.names):
        if kind in given:
            write_ids(given[kind], folder / ids_file(number))
    return [kind for kind in kinds.names if kind in given]


def write_ids(ids: pa.Array, file: Path) -> None:
    """The user's node ids as an Arrow file, which is read back without a copy."""
    table = pa.table({"id": ids})
    with open(file, "wb") as sink:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        sink.flush()
        os.fsync(sink.fileno())


def read_ids(folder: OpenFolder, count: int, name: str) -> pa.Array:
    """The ids of `count` nodes that `write_ids` wrote to a file of a folder."""
    file = folder.path / name
    if not folder.is_file(name):
        raise FileNotFoundError(f"{file} is missing; {META} says that the graph has it")
    try:
        with folder.open(name) as opened:
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        table = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped))).read_all()
        # Arrow reads offsets as they are, and a wrong one leads anywhere.
        table.validate(full=True)
        ids = table.column("id").combine_chunks()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise InputError(f"{file} cannot be read as node ids: {_first_line(error)}") from None
    if ids.type not in (pa.string(), pa.large_string(), pa.int64()) or ids.null_count:
        raise InputError(f"{file} must hold a text or a whole number for each node, not {ids.type}")
    if len(ids) != count:
        raise InputError(f"{file} has {len(ids)} ids where {META} says {count} nodes")
    return ids


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
