"""What reads files, each with files that are right and a way to read them when they are not.

A reader gives back or raises our own error. It goes on to use what it was given, because a wrong
number that is read without a word may end the interpreter later.
"""

from __future__ import annotations

import gzip
import json
import pickle
import random
import shutil
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.fuzz.mutations import array_changed, bytes_changed, json_changed, value_changed
from vrgcn.cli.config_file import option_kinds, read_flags
from vrgcn.cli.options import TrainOptions
from vrgcn.data.raw_files import check_raw_files
from vrgcn.data.statistics import statistics
from vrgcn.data.store import load_graph, save_graph, verify_graph
from vrgcn.data.store_format import signed
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.engine.batch import Position
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.scaling import Scaling
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.models.models import GCN, GraphSAGE
from vrgcn.pages.page import Page
from vrgcn.pages.runs.records import read_runs
from vrgcn.pages.runs.tables import show_options, show_results
from vrgcn.training.checkpoint import load_checkpoint, save_checkpoint
from vrgcn.training.runs import write_config
from vrgcn.training.state import Progress, TrainState


class Target(NamedTuple):
    """make: writes right files into an empty folder
    damage: changes them by chance
    read: reads and uses them
    sealed: whether any change at all must be refused, for there are checksums
    """

    make: Callable[[Path], None]
    damage: Callable[[Path, random.Random], None]
    read: Callable[[Path], None]
    sealed: bool = False


def some_graph(kind: str) -> Graph:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(12, 5, generator=generator)
    edges = torch.randint(12, (2, 40), generator=generator)
    splits = {"train": range(6), "val": range(6, 9), "test": range(9, 12)}
    labels = torch.arange(12) % 3
    names = Names(pa.array([f"n{i}" for i in range(12)]), ["a", "b", "c"], list("vwxyz"))
    if kind == "sparse":
        rare = (features * (features > 0.5)).to_sparse_csr()
        return Graph(edges, rare, labels, edge_weight=torch.rand(40), **splits)
    if kind == "multilabel":
        return Graph(edges, features.double(), torch.nn.functional.one_hot(labels), **splits)
    if kind == "numbers":
        return Graph(edges, features, labels * 1.5, task="regression", **splits)
    return Graph(edges, features, labels, undirected=True, names=names, **splits)


def _damage_store(folder: Path, draw: random.Random) -> None:
    file = draw.choice(sorted((folder / "graph").iterdir()))
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


def _read_store(folder: Path) -> None:
    path = folder / "graph"
    graph = load_graph(path)
    statistics(graph)
    outputs = 1 if graph.task == "regression" else max(graph.num_classes, 1)
    if outputs < 1000:
        model = GraphSAGE(graph.num_features, 4, outputs).to(graph.features.dtype)
        with suppress(ValueError):  # of numbers that overflow, or negative weights: explained
            predict(model, graph)
            predict(model, graph, [0, graph.num_nodes - 1])
    if graph.labels is not None and graph.task == "classes":
        torch.bincount(graph.labels[graph.labelled], minlength=graph.num_classes)
    verify_graph(path)


def _make_model(folder: Path) -> None:
    scaling = Scaling("standard", torch.zeros(5), torch.ones(5))
    saved = SavedModel(GCN(5, 4, 3), "gcn", scaling, False, ["a", "b", "c"], list("vwxyz"))
    save_model(saved, folder / "m.safetensors")


def _damage_model(folder: Path, draw: random.Random) -> None:
    file = folder / "m.safetensors"
    if draw.random() < 0.5:
        file.write_bytes(bytes_changed(file.read_bytes(), draw))
        return
    with safe_open(file, framework="pt") as opened:
        description = json.loads(opened.metadata()["vrgcn-model"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    name = draw.choice(sorted(tensors))
    if draw.random() < 0.3:
        tensors[name] = draw.choice(
            [
                tensors[name][:-1],
                tensors[name] / 0,
                tensors[name].int(),
                torch.zeros(()),
                tensors[name].half(),
            ]
        ).contiguous()
    else:
        description = value_changed(description, draw)
    save_file(tensors, file, metadata={"vrgcn-model": json.dumps(description)})


def _read_model(folder: Path) -> None:
    saved = load_model(folder / "m.safetensors")
    with suppress(ValueError):  # columns of other names, or numbers that overflow: explained
        predict(saved, some_graph("named"))


def _make_run(folder: Path) -> None:
    run = folder / "run"
    run.mkdir()
    write_config(run / "config.toml", {"graph": folder / "graph", "epochs": 3, "estimator": "cvd"})
    point = {"epoch": 1, "loss": 1.5, "val": 0.5, "seconds": 0.1, "age": 2.0, "sampled": 1.0}
    lines = [json.dumps(point | {"epoch": epoch, "seconds": epoch / 10}) for epoch in (1, 2, 3)]
    (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    result = {"metric": "accuracy", "epoch": 2, "val": 0.5, "test": 0.25, "seconds": 0.3}
    (run / "result.json").write_text(json.dumps(result | {"evaluation_seconds": 0.1}))


def _make_options(folder: Path) -> None:
    _make_run(folder)
    for name in ("metrics.jsonl", "result.json"):
        (folder / "run" / name).unlink()


def _damage_run(folder: Path, draw: random.Random) -> None:
    file = draw.choice(sorted((folder / "run").iterdir()))
    data = file.read_bytes()
    if file.suffix == ".json" and draw.random() < 0.7:
        file.write_bytes(json_changed(data, draw))
    elif file.suffix == ".jsonl" and draw.random() < 0.7:
        lines = data.splitlines()
        place = draw.randrange(len(lines))
        lines[place] = json_changed(lines[place], draw)
        file.write_bytes(b"\n".join(lines) + b"\n")
    elif file.suffix == ".toml" and draw.random() < 0.7:
        _write_toml(file, value_changed(tomllib.loads(data.decode()), draw))
    else:
        file.write_bytes(bytes_changed(data, draw))


def _write_toml(file: Path, value: object) -> None:
    """JSON is TOML but for null, NaN and the outermost object."""
    entries = value.items() if isinstance(value, dict) else [("value", value)]
    lines = [f"{json.dumps(key)} = {json.dumps(entry)}" for key, entry in entries]
    file.write_text("\n".join(lines).replace("NaN", "nan").replace("Infinity", "inf"))


def _read_run(folder: Path) -> None:
    records = read_runs([folder / "run"])
    page = Page("runs")
    show_results(page, records)
    show_options(page, records)
    page.html()


def _read_config(folder: Path) -> None:
    read_flags(folder / "run" / "config.toml", option_kinds(TrainOptions))


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


def _make_checkpoint(folder: Path) -> None:
    weights, tables = {"w": torch.ones(3, 2)}, {"1.h.values": torch.ones(4, 2)}
    state = TrainState(
        weights, {"state": {}}, {}, weights, tables, {}, Position(1, 2, 7), Progress()
    )
    save_checkpoint(folder, state, {"graph": "x"})


def _damage_any(folder: Path, draw: random.Random) -> None:
    file = draw.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    file.write_bytes(bytes_changed(file.read_bytes(), draw))


def _read_checkpoint(folder: Path) -> None:
    load_checkpoint(next(folder.iterdir()))


def _store(kind: str) -> Target:
    return Target(
        lambda folder: save_graph(some_graph(kind), folder / "graph"), _damage_store, _read_store
    )


TARGETS: dict[str, Target] = {
    "graph": Target(
        lambda folder: save_graph(some_graph("names"), folder / "graph"),
        _damage_any,
        _read_store,
        sealed=True,
    ),
    **{f"store of {kind}": _store(kind) for kind in ("names", "sparse", "multilabel", "numbers")},
    "model": Target(_make_model, _damage_model, _read_model),
    "run": Target(_make_run, _damage_run, _read_run),
    "options": Target(_make_options, _damage_run, _read_config),
    "CSV": Target(_make_tables, _damage_tables, _read_tables),
    "gzip": Target(_make_zipped, _damage_tables, _read_tables),
    "Parquet": Target(_make_parquet, _damage_tables, _read_tables),
    "features": Target(_make_features, _damage_features, _read_features),
    "raw files": Target(_make_raw, _damage_any, _read_raw),
    "checkpoint": Target(_make_checkpoint, _damage_any, _read_checkpoint, sealed=True),
}
