"""A graph on disk: a folder of `.npy` arrays beside a small `meta.json`.

Loading maps the arrays into memory, looks at every place of the adjacency once and at no feature,
so a graph with features larger than memory opens at once. A folder appears under its name only
when it is complete.

    meta.json                                         kinds, relations, counts, types, checksums
    indptr_0.npy  indices_0.npy  [weights_0.npy]      adjacency of relation 0 over the numbering of
                                                      all nodes as CSR, weights if there are any
    [reverse_indptr_0.npy  reverse_indices_0.npy      the adjacency of the reversed edges, if it is
     reverse_weights_0.npy]                           another
    features_0.npy                                    block 0 of the features, dense; or sparse:
    feature_indptr_0.npy  feature_indices_0.npy  feature_values_0.npy
    [labels.npy]                                      (nodes,) or (nodes, classes); of regression
                                                      (nodes,) float64, NaN where unknown
    train.npy  val.npy  test.npy                      node numbers, ascending
    [ids_0.arrow]                                     the user's own ids of kind 0, column `id`
    [kept_0.npy]                                      a column kept for each edge or node
    [derived/]                                        what was computed from it: store_derived.py

The arrays of further relations, kinds, blocks and columns have the numbers 1, 2, ...
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.data.sources import META
from vrgcn.data.store_arrays import (
    block_places,
    features_from,
    graph_arrays,
    kept_from,
    kept_places,
    names_from,
    read_ids,
    relation_places,
    relations_from,
    write_all_ids,
)
from vrgcn.data.store_checks import check_arrays, check_different, check_finite
from vrgcn.data.store_derived import as_tensor, derived_tables, verify_derived
from vrgcn.data.store_format import (
    BlockPlace,
    KeptPlace,
    Meta,
    RelationPlace,
    Source,
    opened_store,
    read_meta,
    signed,
)
from vrgcn.files.checksums import file_checksum, stream_checksum
from vrgcn.files.folder import OpenFolder
from vrgcn.files.mistakes import InputError
from vrgcn.files.npy import map_array, map_opened
from vrgcn.files.writing import new_folder
from vrgcn.graph.dated import Dated
from vrgcn.graph.graph import Graph
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.names import Names
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
        relations = relation_places(graph)
        for name, tensor in graph_arrays(graph, relations).items():
            write_array(folder, name, tensor.numpy())
        write_meta(
            folder,
            graph.kinds,
            graph.names,
            relations,
            block_places(graph.features),
            num_classes=graph.num_classes,
            task=graph.task,
            kept=kept_places(graph.kept),
            dated=graph.dated,
        )


def write_array(folder: Path, name: str, array: NDArray[Any]) -> None:
    """Write one array of a folder, durable when this returns."""
    with open(folder / f"{name}.npy", "wb") as file:
        np.save(file, array)
        file.flush()
        os.fsync(file.fileno())


def write_meta(
    folder: Path,
    kinds: Kinds,
    names: Names,
    relations: Sequence[RelationPlace],
    blocks: Sequence[BlockPlace],
    *,
    num_classes: int,
    task: str,
    kept: Sequence[KeptPlace] = (),
    dated: Dated | None = None,
) -> None:
    """The last step: the user's ids, then `meta.json` about the arrays that are in the folder.

    relations, blocks, kept: in the order of their files
    """
    meta = Meta(
        kinds,
        tuple(write_all_ids(names, kinds, folder)),
        *(tuple(relations), tuple(blocks), tuple(kept)),
        task=task,
        num_classes=num_classes,
        labelled=(folder / "labels.npy").exists(),
        splits=dict.fromkeys(SPLITS, 0),
        classes=names.classes,
        features=names.features,
        dated=dated,
        dtypes={},
        checksums={},
    )
    arrays = {name: map_array(folder / f"{name}.npy", read_only=True) for name in meta.arrays()}
    files = [*(f"{name}.npy" for name in arrays), *meta.id_files().values()]
    meta = replace(
        meta,
        splits={name: len(arrays[name]) for name in SPLITS},
        dtypes={name: str(array.dtype) for name, array in arrays.items()},
        checksums={name: file_checksum(folder / name) for name in files},
    )
    with open(folder / META, "w", encoding="utf-8") as file:
        json.dump(signed(meta.entries()), file, indent=2)
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
        None,
        features_from(arrays, meta),
        arrays.get("labels"),
        {name: arrays[name] for name in SPLITS},
        meta.num_classes,
        names,
        meta.task,
        meta.kinds,
        relations_from(arrays, meta),
    )
    derived = derived_tables(path, meta) if memory == "disk" else None
    return graph.replace(kept=kept_from(arrays, meta), derived=derived, dated=meta.dated)


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
        for kind, file in meta.id_files().items():
            check_different(folder.path / file, read_ids(folder, meta.kinds.sizes[kind], file))


def _verify_checksums(folder: OpenFolder, meta: Meta, arrays: dict[str, Tensor]) -> None:
    # Our own names, not those of the file: nothing outside of the folder is opened.
    names = [*(f"{name}.npy" for name in arrays), *meta.id_files().values()]
    for name in names:
        with folder.open(name) as file:
            checksum = stream_checksum(file)
        if checksum != meta.checksums.get(name):
            raise InputError(
                f"{folder.path / name} is damaged: its checksum is not the one that {META} has of "
                "it; import or save the graph again (of a named data set: delete the folder)"
            )


def _map_arrays(folder: OpenFolder, meta: Meta, *, read_only: bool) -> dict[str, Tensor]:
    return {
        name: _map_array(folder, f"{name}.npy", meta.dtypes.get(name), *wanted, read_only)
        for name, wanted in meta.arrays().items()
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
