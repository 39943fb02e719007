"""PPI in the paper's size: 14,755 nodes in 5 graphs, 3 of them for training.

The files are GraphSAGE's example `toy-ppi`, for which PyG has no loader, or else an archive in
which the same graph and split come with features and labels rebuilt from gene sets.

    toy-ppi-G.json          {"nodes": [{"id", "val", "test"}], "links": [{"source", "target"}]},
                            a link's ends are places in the list of nodes
    toy-ppi-id_map.json     {"<id>": row of the node}
    toy-ppi-class_map.json  {"<id>": [0 or 1 for each of 121 classes]}
    toy-ppi-feats.npy       (nodes, 50), row by row

    toy_ppi_rebuilt.npz     edges (pairs, 2), features (nodes, 50), labels (nodes, 121), node_ids,
                            split: 0 train, 1 validation, 2 test
    columns.json            optional: {"features": names, "labels": names}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from vrgcn.data.named import beside, missing_files, raw_files_read
from vrgcn.files.mistakes import InputError
from vrgcn.files.npy import map_array
from vrgcn.files.parsing import read_json
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names

GRAPH, FEATURES = "toy-ppi-G.json", "toy-ppi-feats.npy"
REBUILT = "toy_ppi_rebuilt.npz"


def ppi_small(folder: Path) -> Graph:
    """The graph of whichever files are there; the original ones first."""
    if (folder / GRAPH).is_file():
        with raw_files_read("ppi-small", folder, (FEATURES,)):
            return _original(folder)
    if (folder / REBUILT).is_file():
        with raw_files_read("ppi-small", folder, (REBUILT,)):
            return _rebuilt(folder)
    raise missing_files("ppi-small", folder, "PyG does not offer them")


def _original(folder: Path) -> Graph:
    described = read_json(folder / GRAPH)
    row_of = read_json(folder / "toy-ppi-id_map.json")
    classes = read_json(folder / "toy-ppi-class_map.json")
    nodes = described["nodes"]
    rows = np.array([row_of[str(node["id"])] for node in nodes])
    if not np.array_equal(np.sort(rows), np.arange(len(nodes))):
        raise InputError("toy-ppi-id_map.json must give each node a row of its own, from 0")
    links = np.array([(link["source"], link["target"]) for link in described["links"]], np.int64)
    if links.size and (links.min() < 0 or links.max() >= len(nodes)):
        raise InputError(f"{GRAPH} has a link to a node that is none")
    labels = np.zeros((len(nodes), len(next(iter(classes.values())))), dtype=np.float32)
    for row, node in zip(rows, nodes, strict=True):
        labels[row] = classes[str(node["id"])]
    split = np.empty(len(nodes), dtype=np.int64)
    split[rows] = [2 if node["test"] else int(node["val"]) for node in nodes]
    return Graph(
        rows[links.reshape(-1, 2)].T,
        torch.from_numpy(np.array(map_array(folder / FEATURES))).float(),
        labels,
        undirected=True,
        **_masks(split),
    )


def _rebuilt(folder: Path) -> Graph:
    columns_file = beside(folder, "columns.json")
    columns = read_json(columns_file) if columns_file is not None else {}
    with np.load(folder / REBUILT) as arrays:
        return Graph(
            arrays["edges"].T,
            torch.from_numpy(arrays["features"]).float(),
            torch.from_numpy(arrays["labels"]).float(),
            undirected=True,
            names=Names(
                pa.array(arrays["node_ids"].tolist()),
                columns.get("labels"),
                columns.get("features"),
            ),
            **_masks(arrays["split"]),
        )


def _masks(split: Any) -> dict[str, Any]:
    return {name: split == number for number, name in enumerate(("train", "val", "test"))}
