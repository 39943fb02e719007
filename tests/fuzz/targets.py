"""Readers of files, each with valid files and a way to read damaged ones.

A reader returns or raises our own error. The target then uses the result, because a wrong number
that is read silently may crash the interpreter later.
"""

from __future__ import annotations

import gzip
import json
import pickle
import random
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import torch

from tests.fuzz.checkpoint_targets import CHECKPOINTS
from tests.fuzz.model_targets import MODELS
from tests.fuzz.mutations import array_changed, bytes_changed, json_changed, value_changed
from tests.fuzz.target import Target, damage_any, some_graph
from tests.fuzz.training_targets import TRAINING
from vrgcn.data.ppi_small import ppi_small
from vrgcn.data.raw_files import check_raw_files
from vrgcn.data.statistics import statistics
from vrgcn.data.store import load_graph, save_graph, verify_graph
from vrgcn.data.store_format import signed
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.files.mistakes import InputError
from vrgcn.inference.predict import predict
from vrgcn.models.models import GraphSAGE


def _damage_store(folder: Path, draw: random.Random) -> None:
    files = (folder / "graph").rglob("*")
    file = draw.choice(sorted(path for path in files if path.is_file()))
    data = file.read_bytes()
    change = draw.random()
    if file.suffix == ".npy" and change < 0.6:
        file.write_bytes(array_changed(data, draw))
    elif file.name == "meta.json" and change < 0.8:  # by somebody who signs it again
        meta = {k: v for k, v in json.loads(data).items() if k != "checksum"}
        changed = value_changed(meta, draw)
        file.write_text(json.dumps(signed(changed) if isinstance(changed, dict) else changed))
    else:
        file.write_bytes(bytes_changed(data, draw))


def _damage_or_swap(folder: Path, draw: random.Random) -> None:
    """Change a file, or put another file of the folder in its place."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = draw.choice(files)
    if draw.random() < 0.3:
        file.write_bytes(draw.choice(files).read_bytes())
    elif draw.random() < 0.1:
        file.unlink()
    else:
        damage_any(folder, draw)


def _read_store(folder: Path) -> None:
    path = folder / "graph"
    graph = load_graph(path)
    statistics(graph)
    outputs = 1 if graph.task == "regression" else max(graph.num_classes, 1)
    if outputs < 1000:
        model = GraphSAGE(graph.num_features, 4, outputs).to(graph.features.dtype)
        with suppress(ValueError):  # numbers that overflow, or negative weights: explained
            predict(model, graph)
            predict(model, graph, [0, graph.num_nodes - 1])
    if graph.labels is not None and graph.task == "classes":
        torch.bincount(graph.labels[graph.labelled], minlength=graph.num_classes)
    verify_graph(path)


def _make_tables(folder: Path) -> None:
    rows = [
        f"n{i},{i * 0.5},{i % 3},{'abc'[i % 3]},{('train', 'val', 'test')[i % 3]}" for i in range(9)
    ]
    (folder / "nodes.csv").write_text("\n".join(["id,x,y,label,split", *rows]) + "\n")
    edges = [f"n{i},n{(i * 4 + 1) % 9},{i + 0.5}" for i in range(9)]
    (folder / "edges.csv").write_text("\n".join(["source,target,weight", *edges]) + "\n")


def _damage_tables(folder: Path, draw: random.Random) -> None:
    file = draw.choice(sorted(folder.iterdir()))
    file.write_bytes(bytes_changed(file.read_bytes(), draw))


def _read_tables(folder: Path) -> None:
    files = {path.name.split(".")[0]: path for path in folder.iterdir() if path.is_file()}
    out = folder / "out"
    try:
        import_tables(ImportSpec(nodes=files["nodes"], edges=files["edges"], out=out))
        assert verify_graph(out) is None
        statistics(load_graph(out))
    finally:
        left = [path for path in folder.iterdir() if path.name.startswith(".")]
        shutil.rmtree(out, ignore_errors=True)
        assert not left, left


def _make_zipped(folder: Path) -> None:
    _make_tables(folder)
    for file in list(folder.iterdir()):
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()


def _make_parquet(folder: Path) -> None:
    ids = [f"n{i}" for i in range(9)]
    nodes = {"id": ids, "x": [i * 0.5 for i in range(9)], "label": list("abcabcabc")}
    lists = pa.array([[i, i + 1.0] for i in range(9)])
    split = ["train", "val", "test"] * 3
    pq.write_table(pa.table(nodes | {"v": lists, "split": split}), folder / "nodes.parquet")
    edges = {"source": ids, "target": ids[::-1], "weight": np.arange(9.0)}
    pq.write_table(pa.table(edges), folder / "edges.parquet")


def _make_features(folder: Path) -> None:
    (folder / "edges.csv").write_text("a,b\n0,1\n1,2\n2,3\n")
    np.save(folder / "features.npy", np.arange(8.0).reshape(4, 2))


def _damage_features(folder: Path, draw: random.Random) -> None:
    file = folder / "features.npy"
    change = array_changed if draw.random() < 0.3 else bytes_changed
    file.write_bytes(change(file.read_bytes(), draw))


def _read_features(folder: Path) -> None:
    spec = ImportSpec(
        edges=folder / "edges.csv", features_file=folder / "features.npy", out=folder / "out"
    )
    try:
        import_tables(spec)
        verify_graph(folder / "out")
    finally:
        shutil.rmtree(folder / "out", ignore_errors=True)


_RAW = ("ind.x", "ind.y", "ind.graph", "adj_full.npz")


def _make_raw(folder: Path) -> None:
    matrix = sp.random(6, 5, 0.4, "csr", random_state=0)
    values = (matrix, np.eye(6), {0: [1, 2], 1: [0]})
    for name, value in zip(_RAW, values, strict=False):
        (folder / name).write_bytes(pickle.dumps(value, 2))
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    np.savez(folder / "adj_full.npz", shape=matrix.shape, **parts)


def _read_raw(folder: Path) -> None:
    check_raw_files(folder, _RAW)
    for name in _RAW[:3]:  # as PyG does when they have passed
        with open(folder / name, "rb") as file:
            value = pickle.load(file, encoding="latin1")
        if sp.issparse(value):
            value.todense()
            value.tocoo()
    with np.load(folder / "adj_full.npz") as arrays:
        if {"data", "indices", "indptr", "shape"} <= set(arrays):
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            if len(parts[0]) == len(parts[1]):
                sp.csr_matrix(parts, arrays["shape"]).tocoo()


def _make_ppi(folder: Path) -> None:
    ids = [f"g{i}" for i in range(6)]
    nodes = [{"id": i, "val": n == 4, "test": n == 5} for n, i in enumerate(ids)]
    links = [{"source": n, "target": (n + 2) % 6} for n in range(6)]
    described = {
        "G": {"nodes": nodes, "links": links},
        "id_map": {i: n for n, i in enumerate(ids)},
        "class_map": {i: [n % 2, 1] for n, i in enumerate(ids)},
    }
    for name, value in described.items():
        (folder / f"toy-ppi-{name}.json").write_text(json.dumps(value))
    np.save(folder / "toy-ppi-feats.npy", np.arange(12.0).reshape(6, 2))


def _damage_ppi(folder: Path, draw: random.Random) -> None:
    file = draw.choice(sorted(folder.iterdir()))
    change = json_changed if file.suffix == ".json" and draw.random() < 0.7 else bytes_changed
    file.write_bytes(change(file.read_bytes(), draw))


def _read_ppi(folder: Path) -> None:
    try:
        statistics(ppi_small(folder))
    except ValueError as error:  # the error names the folder
        raise InputError(f"toy-ppi-G.json: {error}" if str(folder) in str(error) else "") from error


def _make_stores(folder: Path, kinds: Sequence[str]) -> None:
    for kind in kinds:
        (folder / kind).mkdir()
        save_graph(some_graph(kind), folder / kind / "graph")


_STORES = ("names", "sparse", "multilabel", "numbers", "kinds")
TARGETS: dict[str, Target] = {
    "graphs": Target(
        lambda folder: _make_stores(folder, ("names", "kinds")),
        _damage_or_swap,
        _read_store,
        sealed=True,
        each=True,
    ),
    "signed graphs": Target(
        lambda folder: _make_stores(folder, _STORES), _damage_store, _read_store, each=True
    ),
    "CSV": Target(_make_tables, _damage_tables, _read_tables),
    "gzip": Target(_make_zipped, _damage_tables, _read_tables),
    "Parquet": Target(_make_parquet, _damage_tables, _read_tables),
    "features": Target(_make_features, _damage_features, _read_features),
    "raw files": Target(_make_raw, damage_any, _read_raw),
    "ppi-small": Target(_make_ppi, _damage_ppi, _read_ppi),
    **TRAINING,
    **MODELS,
    **CHECKPOINTS,
}
