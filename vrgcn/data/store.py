"""A graph on disk: a folder of `.npy` arrays beside a small `meta.json`.

Loading maps the arrays into memory and reads nothing before it is used, so a graph with features
larger than memory opens at once. A folder appears under its name only when it is complete.

    meta.json                                         format, version, counts, dtypes
    indptr.npy  indices.npy  [weights.npy]            adjacency as CSR, weights if there are any
    features.npy                                      dense features, (nodes, width); or sparse:
    feature_indptr.npy  feature_indices.npy  feature_values.npy
    [labels.npy]                                      (nodes,) or (nodes, classes); of regression
                                                      (nodes,) float64, NaN where unknown
    train.npy  val.npy  test.npy                      node numbers, ascending
    [ids.arrow]                                       the user's own node ids, column `id`
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.writing import new_folder
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.sparse import CSR, is_sparse
from vrgcn.graph.validation import SPLITS, Task

FORMAT = "vrgcn-graph"
VERSIONS = (1, 2)  # that are read; 2 has labels that are numbers, and is written for them alone
META = "meta.json"
IDS = "ids.arrow"


# Every array that a folder may hold.
ARRAYS = (
    *("indptr", "indices", "weights"),
    *("features", "feature_indptr", "feature_indices", "feature_values"),
    *("labels", *SPLITS),
)


def save_graph(graph: Graph, path: str | Path) -> None:
    """Write `graph` to the new folder `path`; parent folders are made."""
    with new_folder(path) as folder:
        for name, tensor in _arrays(graph).items():
            write_array(folder, name, tensor.numpy())
        write_meta(folder, graph.num_features, graph.num_classes, graph.names, graph.task)


def write_array(folder: Path, name: str, array: NDArray[Any]) -> None:
    """One of `ARRAYS`, durable when this returns."""
    with open(folder / f"{name}.npy", "wb") as file:
        np.save(file, array)
        file.flush()
        os.fsync(file.fileno())


def write_meta(folder: Path, width: int, num_classes: int, names: Names, task: Task) -> None:
    """The last step: the user's ids, then `meta.json` about the arrays that are in the folder.

    width: feature columns, which the arrays of sparse features do not tell
    """
    if names.nodes is not None:
        write_ids(names.nodes, folder / IDS)
    with open(folder / META, "w", encoding="utf-8") as file:
        json.dump(_describe(folder, width, num_classes, names, task), file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def load_graph(path: str | Path) -> Graph:
    """The graph in the folder `path`, its arrays memory-mapped.

    The mapping is copy-on-write: changing a tensor of the graph does not change the file.
    """
    path = Path(path)
    meta = _read_meta(path)
    arrays = {name: _map_array(path, name, meta, shape) for name, shape in _shapes(meta).items()}
    if meta["feature_layout"] == "sparse":
        features = CSR(
            arrays["feature_indptr"],
            arrays["feature_indices"],
            arrays["feature_values"],
            meta["width"],
        ).to_torch()
    else:
        features = arrays["features"]
    return Graph.from_parts(
        CSR(arrays["indptr"], arrays["indices"], arrays.get("weights"), meta["nodes"]),
        features,
        arrays.get("labels"),
        {name: arrays[name] for name in SPLITS},
        meta["num_classes"],
        _names(path, meta),
        meta.get("task"),  # folders from before there was regression do not say
    )


def write_ids(ids: pa.Array, file: Path) -> None:
    """The user's node ids as an Arrow file, which is read back without a copy."""
    table = pa.table({"id": ids})
    with open(file, "wb") as sink:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        sink.flush()
        os.fsync(sink.fileno())


def _names(path: Path, meta: dict[str, Any]) -> Names:
    names = meta["names"]
    return Names(
        _read_ids(path, meta) if names["nodes"] else None, names["classes"], names["features"]
    )


def _read_ids(path: Path, meta: dict[str, Any]) -> pa.Array:
    file = path / IDS
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing; {META} says that the graph has it")
    try:
        table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
        ids = table.column("id").combine_chunks()
    except (pa.ArrowInvalid, KeyError) as error:
        raise ValueError(f"{file} cannot be read as node ids: {error}") from None
    if len(ids) != meta["nodes"]:
        raise ValueError(f"{file} has {len(ids)} ids where {META} says {meta['nodes']} nodes")
    return ids


def _arrays(graph: Graph) -> dict[str, Tensor]:
    """File name without its ending -> what is in it."""
    A = graph.adjacency
    arrays = {"indptr": A.indptr, "indices": A.indices}
    if A.values is not None:
        arrays["weights"] = A.values
    if is_sparse(graph.features):
        matrix = CSR.from_torch(graph.features)
        arrays["feature_indptr"] = matrix.indptr
        arrays["feature_indices"] = matrix.indices
        arrays["feature_values"] = graph.features.values()
    else:
        arrays["features"] = graph.features
    if graph.labels is not None:
        arrays["labels"] = graph.labels
    return arrays | {name: graph.split(name) for name in SPLITS}


def _describe(
    folder: Path, width: int, num_classes: int, names: Names, task: Task
) -> dict[str, Any]:
    """The contents of `meta.json`."""
    arrays = {
        name: np.load(folder / f"{name}.npy", mmap_mode="r")
        for name in ARRAYS
        if (folder / f"{name}.npy").exists()
    }
    sparse = "feature_values" in arrays
    return {
        "format": FORMAT,
        "version": 2 if task == "regression" else 1,
        "nodes": len(arrays["indptr"]) - 1,
        "edges": len(arrays["indices"]),
        "width": width,
        "feature_layout": "sparse" if sparse else "dense",
        "feature_entries": len(arrays["feature_values"]) if sparse else None,
        "num_classes": num_classes,
        "labelled": "labels" in arrays,
        "task": task,
        "multilabel": task == "multilabel",
        "weighted": "weights" in arrays,
        "splits": {name: len(arrays[name]) for name in SPLITS},
        "names": {
            "nodes": names.nodes is not None,
            "classes": names.classes,
            "features": names.features,
        },
        "dtypes": {name: str(array.dtype) for name, array in arrays.items()},
    }


def _shapes(meta: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The arrays that a folder with this `meta.json` must have, and their shapes."""
    nodes, edges, width = meta["nodes"], meta["edges"], meta["width"]
    shapes: dict[str, tuple[int, ...]] = {"indptr": (nodes + 1,), "indices": (edges,)}
    if meta["weighted"]:
        shapes["weights"] = (edges,)
    if meta["feature_layout"] == "sparse":
        entries = meta["feature_entries"]
        shapes["feature_indptr"] = (nodes + 1,)
        shapes["feature_indices"] = shapes["feature_values"] = (entries,)
    else:
        shapes["features"] = (nodes, width)
    if meta["labelled"]:
        shapes["labels"] = (nodes, meta["num_classes"]) if meta["multilabel"] else (nodes,)
    return shapes | {name: (meta["splits"][name],) for name in SPLITS}


_META_KEYS = (
    *("nodes", "edges", "width", "feature_layout", "feature_entries", "num_classes"),
    *("labelled", "multilabel", "weighted", "splits", "names", "dtypes"),
)


def _read_meta(path: Path) -> dict[str, Any]:
    file = path / META
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such folder")
    if not file.is_file():
        raise ValueError(f"{path} is not a saved graph: it has no {META}")
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ValueError(f"{path} is not a saved graph: {file} does not say format {FORMAT!r}")
    if meta.get("version") not in VERSIONS:
        raise ValueError(
            f"{file} has version {meta.get('version')!r} and this vrgcn reads version "
            f"{' or '.join(map(str, VERSIONS))}; save the graph again"
        )
    missing = [key for key in _META_KEYS if key not in meta]
    if missing:
        raise ValueError(f"{file} lacks {', '.join(missing)}")
    return meta


def _map_array(path: Path, name: str, meta: dict[str, Any], shape: tuple[int, ...]) -> Tensor:
    file = path / f"{name}.npy"
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing; {META} says that the graph has it")
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="c")
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{file} cannot be read as an array: {error}") from None
    if array.shape != shape:
        raise ValueError(f"{file} has shape {array.shape} where {META} says {shape}")
    if str(array.dtype) != meta["dtypes"].get(name):
        raise ValueError(f"{file} holds {array.dtype} where {META} says {meta['dtypes'].get(name)}")
    return torch.from_numpy(array)
