"""A graph on disk: a folder of `.npy` arrays beside a small `meta.json`.

Loading maps the arrays into memory, looks at every place of the adjacency once and at no feature,
so a graph with features larger than memory opens at once. A folder appears under its name only
when it is complete.

    meta.json                                         format, version, counts, dtypes, checksums
    indptr.npy  indices.npy  [weights.npy]            adjacency as CSR, weights if there are any
    [reverse_indptr.npy  reverse_indices.npy          the adjacency of the reversed edges, in a
     reverse_weights.npy]                             graph that is not symmetric
    features.npy                                      dense features, (nodes, width); or sparse:
    feature_indptr.npy  feature_indices.npy  feature_values.npy
                                                      in blocks, the same names with a number: _0
    [labels.npy]                                      (nodes,) or (nodes, classes); of regression
                                                      (nodes,) float64, NaN where unknown
    train.npy  val.npy  test.npy                      node numbers, ascending
    [ids.arrow]                                       the user's own node ids, column `id`
    [relation-0/ ...  ids_0.arrow ...]                of several kinds of nodes: store_kinds.py
    [kept_0.npy  kept_1.npy ...]                      kept columns of edges, nodes: store_kept.py
    [derived/]                                        what was computed from it: store_derived.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.data.sources import META
from vrgcn.data.store_checks import check_arrays, check_different, check_finite
from vrgcn.data.store_derived import as_tensor, derived_tables, verify_derived
from vrgcn.data.store_features import block_places, feature_arrays, features_from
from vrgcn.data.store_format import (
    FORMAT,
    VERSION,
    BlockPlace,
    Meta,
    Source,
    array_names,
    opened_store,
    read_meta,
    shapes_and_kinds,
    signed,
)
from vrgcn.data.store_ids import id_files, names_from, read_ids, write_names
from vrgcn.data.store_kept import KeptPlace, described_kept, kept_arrays, kept_from, places_of
from vrgcn.data.store_kinds import (
    RelationPlace,
    described_kinds,
    place_of,
    relation_arrays,
    relation_folder,
    relations_from,
)
from vrgcn.files.checksums import file_checksum, stream_checksum
from vrgcn.files.folder import OpenFolder
from vrgcn.files.mistakes import InputError
from vrgcn.files.npy import map_array, map_opened
from vrgcn.files.writing import new_folder
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.propagation import is_symmetric
from vrgcn.graph.sparse import CSR
from vrgcn.graph.validation import SPLITS


def save_graph(graph: Graph, path: str | Path) -> None:
    """Write `graph` to the new folder `path`; parent folders are made."""
    if graph.scaling is not None:
        raise InputError(
            f"the features of the graph are scaled ({graph.scaling.kind}), which a saved graph "
            "would not say, so that a model would scale it again: save it as it was before, "
            "models scale it themselves; or, to keep these numbers as features like any others, "
            "save graph.with_features(graph.features)"
        )
    with new_folder(path) as folder:
        given = list(graph.given.values()) if graph.kinds.named else []
        for number in range(len(given)):
            relation_folder(folder, number).mkdir()
        for name, tensor in _arrays(graph).items():
            write_array(folder, name, tensor.numpy())
        write_meta(
            folder,
            graph.num_features,
            graph.num_classes,
            graph.names,
            graph.task,
            block_places(graph.features),
            [place_of(relation) for relation in given],
            places_of(graph.kept),
        )


def write_array(folder: Path, name: str, array: NDArray[Any]) -> None:
    """One of `array_names`, durable when this returns."""
    with open(folder / f"{name}.npy", "wb") as file:
        np.save(file, array)
        file.flush()
        os.fsync(file.fileno())


def write_meta(
    folder: Path,
    width: int,
    num_classes: int,
    names: Names,
    task: str,
    blocks: Sequence[BlockPlace] | None = None,
    relations: Sequence[RelationPlace] = (),
    kept: Sequence[KeptPlace] = (),
) -> None:
    """The last step: the user's ids, then `meta.json` about the arrays that are in the folder.

    width: feature columns, which the arrays of sparse features do not tell
    blocks: of the features; None if they are one matrix
    relations: of a graph of several kinds, which `names` has
    kept: columns of edges and nodes, in the order of their files
    """
    ids = write_names(names, folder)
    with open(folder / META, "w", encoding="utf-8") as file:
        described = _describe(folder, width, num_classes, names, task, blocks, relations, ids, kept)
        json.dump(signed(described), file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def load_graph(path: Source, *, memory: Literal["ram", "disk"] = "ram") -> Graph:
    """The graph in the folder `path`, its arrays memory-mapped.

    The mapping is copy-on-write: changing a tensor of the graph does not change the file. All
    files are those of one folder, also where another takes its name meanwhile.

    memory: "disk" for a graph that may be larger than memory: its arrays cannot be changed, and
        scaled and averaged features are made once, as files in its folder `derived`
    """
    if memory not in ("ram", "disk"):
        raise InputError(f"memory {memory!r} is none of ram, disk")
    with opened_store(path) as folder:
        meta = read_meta(folder)
        arrays = _map_arrays(folder, meta, read_only=memory == "disk")
        names = names_from(folder, meta)
        path = folder.path
    check_arrays(path, meta, arrays)
    graph = Graph.from_parts(
        None if names.kinds.named else _adjacency(arrays, meta),
        features_from(arrays, meta),
        arrays.get("labels"),
        {name: arrays[name] for name in SPLITS},
        meta["num_classes"],
        names,
        meta["task"],
        names.kinds,
        relations_from(arrays, meta),
    )
    derived = derived_tables(path, meta) if memory == "disk" else None
    return graph.replace(kept=kept_from(arrays, meta), derived=derived)


def _adjacency(arrays: dict[str, Tensor], meta: Meta) -> CSR:
    """A, and where the folder has it the matrix of the reversed edges as its transpose."""
    nodes = meta["nodes"]
    A = CSR(arrays["indptr"], arrays["indices"], arrays.get("weights"), nodes)
    if not meta["reversed"]:
        return A
    return A.with_transposed(
        CSR(
            arrays["reverse_indptr"],
            arrays["reverse_indices"],
            arrays.get("reverse_weights"),
            nodes,
        )
    )


def verify_graph(path: Source) -> None:
    """Read all of the graph in a folder and refuse it if a byte is not what was written, if
    features are NaN or infinite, or if two nodes have the same id."""
    with opened_store(path) as folder:
        meta = read_meta(folder)
        arrays = _map_arrays(folder, meta, read_only=True)
        _verify_checksums(folder, meta, arrays)
        verify_derived(folder.path)
        for name, array in arrays.items():
            if name.startswith(("features", "feature_values")):
                check_finite(folder.path / f"{name}.npy", array)
        for file, count in id_files(meta).items():
            check_different(folder.path / file, read_ids(folder, count, file))


def _verify_checksums(folder: OpenFolder, meta: Meta, arrays: dict[str, Tensor]) -> None:
    # Our own names, not those of the file: nothing outside of the folder is opened.
    names = [*(f"{name}.npy" for name in arrays), *id_files(meta)]
    for name in names:
        with folder.open(name) as file:
            found = stream_checksum(file)
        if found != meta["checksums"].get(name):
            raise InputError(
                f"{folder.path / name} is damaged: its checksum is not the one that {META} has of "
                "it; import or save the graph again (of a named data set: delete the folder)"
            )


def _arrays(graph: Graph) -> dict[str, Tensor]:
    """File name without its ending -> what is in it."""
    if graph.kinds.named:
        arrays = relation_arrays(list(graph.given.values()))
    else:
        arrays = _adjacency_arrays(graph.adjacency)
    arrays |= feature_arrays(graph.features)
    if graph.labels is not None:
        arrays["labels"] = graph.labels
    arrays |= kept_arrays(graph.kept)
    return arrays | {name: graph.split(name) for name in SPLITS}


def _adjacency_arrays(A: CSR) -> dict[str, Tensor]:
    arrays = {"indptr": A.indptr, "indices": A.indices}
    if A.values is not None:
        arrays["weights"] = A.values
    if not is_symmetric(A):
        reverse = A.transposed
        arrays |= {"reverse_indptr": reverse.indptr, "reverse_indices": reverse.indices}
        if reverse.values is not None:
            arrays["reverse_weights"] = reverse.values
    return arrays


def _describe(
    folder: Path,
    width: int,
    num_classes: int,
    names: Names,
    task: str,
    blocks: Sequence[BlockPlace] | None,
    relations: Sequence[RelationPlace],
    ids: Sequence[str],
    kept: Sequence[KeptPlace],
) -> Meta:
    """The contents of `meta.json`, but for its own checksum. ids: the files of ids"""
    arrays = {
        name: map_array(folder / f"{name}.npy", read_only=True)
        for name in array_names(blocks, relations, kept)
        if (folder / f"{name}.npy").exists()
    }
    files = [*(f"{name}.npy" for name in arrays), *ids]
    kinds = names.kinds
    sparse = "feature_values" in arrays
    layout = "blocks" if blocks is not None else "sparse" if sparse else "dense"
    described: Meta = {
        "format": FORMAT,
        "version": VERSION,
        "nodes": kinds.num_nodes if kinds.named else len(arrays["indptr"]) - 1,
        "edges": sum(relation.edges for relation in relations)
        if kinds.named
        else len(arrays["indices"]),
        "width": width,
        "feature_layout": layout,
        "feature_entries": len(arrays["feature_values"]) if sparse else None,
        "num_classes": num_classes,
        "labelled": "labels" in arrays,
        "task": task,
        "weighted": "weights" in arrays or any(relation.weighted for relation in relations),
        "reversed": "reverse_indptr" in arrays,
        "splits": {name: len(arrays[name]) for name in SPLITS},
        "names": {
            "nodes": names.nodes is not None,
            "classes": names.classes,
            "features": names.features,
        },
        "dtypes": {name: str(array.dtype) for name, array in arrays.items()},
        "checksums": {name: file_checksum(folder / name) for name in files},
    }
    if blocks is not None:
        described |= {"blocks": [asdict(b) for b in blocks]}
    if kinds.named:
        described |= described_kinds(kinds, [*names.by_kind], relations)
    if kept:
        described |= described_kept(kept)
    return described


def _map_arrays(folder: OpenFolder, meta: Meta, *, read_only: bool) -> dict[str, Tensor]:
    return {
        name: _map_array(folder, f"{name}.npy", meta["dtypes"].get(name), *wanted, read_only)
        for name, wanted in shapes_and_kinds(meta).items()
    }


def _map_array(
    folder: OpenFolder,
    name: str,
    said: str | None,
    shape: tuple[int, ...],
    kinds: tuple[str, ...],
    read_only: bool,
) -> Tensor:
    """said: the type that `meta.json` names; kinds: those that it may be"""
    file = folder.path / name
    if not folder.is_file(name):
        raise FileNotFoundError(f"{file} is missing; {META} says that the graph has it")
    try:
        with folder.open(name) as opened:
            array = map_opened(opened, read_only=read_only)
    except (ValueError, OSError) as error:
        raise InputError(f"{file} cannot be read as an array: {error}") from None
    if array.shape != shape:
        raise InputError(f"{file} has shape {array.shape} where {META} says {shape}")
    if str(array.dtype) != said:
        raise InputError(f"{file} holds {array.dtype} where {META} says {said}")
    if said not in kinds or not array.flags.c_contiguous:
        raise InputError(f"{file} must hold {' or '.join(kinds)}, row by row, not {array.dtype}")
    return as_tensor(array)
