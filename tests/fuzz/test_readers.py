"""Readers on files that hypothesis generates: valid files come back unchanged, invalid ones are
refused, by a rule that is written down here a second time."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors import safe_open
from safetensors.torch import save_file

from vrgcn.cli.parsing import parse, parse_with_files
from vrgcn.cli.train import TrainOptions
from vrgcn.data.store import load_graph, save_graph
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.engine.batch import Position
from vrgcn.files.checksums import file_checksum
from vrgcn.files.mistakes import InputError
from vrgcn.files.npy import map_array
from vrgcn.files.tensors import read_tensors, write_tensors
from vrgcn.graph.graph import Graph
from vrgcn.inference.model_file import signed
from vrgcn.inference.saved import load_model, save_model
from vrgcn.models.models import GCN
from vrgcn.runs.checkpoint import (
    STATE,
    _sums,
    load_checkpoint,
    save_checkpoint,
)
from vrgcn.runs.config_file import read_values, write_settings
from vrgcn.runs.identity import PARTS
from vrgcn.training.state import Progress, TrainState

quick = settings(max_examples=30, deadline=None)
# PyTorch flushes them to zero here, and hypothesis would take that for a fault.
FLOATS = st.floats(allow_subnormal=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=8,
)
NODES, EDGES = 6, 9


@contextmanager
def folder(right: Path | None = None) -> Iterator[Path]:
    """A new one for each example, with a copy of `right` in it."""
    with tempfile.TemporaryDirectory() as name:
        if right is not None:
            shutil.copytree(right, name, dirs_exist_ok=True)
        yield Path(name)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph, a model and a checkpoint: written once, since that waits for the disk."""
    place = tmp_path_factory.mktemp("right")
    node = torch.arange(EDGES)
    edges = torch.stack([node.remainder(NODES), (2 * node + 1).remainder(NODES)])
    splits = {"train": [0, 1, 2], "val": [3], "test": [4, 5]}
    labels = torch.arange(NODES) % 3
    save_graph(Graph(edges, torch.ones(NODES, 2), labels, num_classes=3, **splits), place / "g")
    save_model(GCN(5, 4, 3), place / "m.safetensors")
    weights, tables = {"w": torch.ones(3, 2)}, {"1.h.values": torch.ones(4, 2)}
    at = Position(1, 2, 7)
    state = TrainState(weights, {"state": {}}, {}, None, tables, {}, at, Progress())
    save_checkpoint(place, state, {part: {} for part in PARTS})
    return place


@contextmanager
def read_or_refused(*names: str) -> Iterator[None]:
    """In here, an error of ours is right if it names one of the files."""
    said = names[0]
    try:
        yield
    except InputError as error:
        said = str(error)
    assert any(name in said for name in names), f"no file is named: {said}"


@quick
@given(arrays(st.sampled_from(["<i8", "|u1", "<i2", "|b1"]), array_shapes(min_side=0)))
def test_an_array_comes_back_as_it_was_written(array: np.ndarray) -> None:
    with folder() as place:
        np.save(place / "a.npy", array)
        found = map_array(place / "a.npy")
        assert (found.shape, found.dtype) == (array.shape, array.dtype)
        assert found.tobytes() == array.tobytes()


@quick
@given(st.binary(max_size=300), st.booleans())
def test_bytes_that_are_no_array_are_refused(content: bytes, begun: bool) -> None:
    with folder() as place:
        (place / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" * begun + content)
        with pytest.raises(ValueError, match=r"^its? "):
            map_array(place / "a.npy")


def is_matrix(indptr: np.ndarray, indices: np.ndarray, columns: int) -> bool:
    """Whether two arrays are a matrix whose rows ascend."""
    if indptr[0] != 0 or indptr[-1] != len(indices) or any(np.diff(indptr) < 0):
        return False
    rows = [indices[a:b].tolist() for a, b in pairwise(indptr)]
    return all(r == sorted(set(r)) and all(0 <= c < columns for c in r) for r in rows)


near = st.integers(-1, NODES + 1) | st.sampled_from([-(2**63), 2**63 - 1, 2**40])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_adjacency_is_read_if_and_only_if_it_is_one(right: Path, data: st.DataObject) -> None:
    with folder(right) as place:
        indptr, indices = (np.load(place / "g" / f"{n}.npy") for n in ("indptr_0", "indices_0"))
        for _ in range(data.draw(st.integers(0, 2))):
            array = data.draw(st.sampled_from([indptr, indices]))
            array[data.draw(st.integers(0, len(array) - 1))] = data.draw(near)
        np.save(place / "g" / "indptr_0.npy", indptr)
        np.save(place / "g" / "indices_0.npy", indices)
        if is_matrix(indptr, indices, NODES):
            found = load_graph(place / "g").adjacency
            assert found.indptr.tolist() == indptr.tolist()
            assert found.indices.tolist() == indices.tolist()
        else:
            with pytest.raises(ValueError, match=r"(indptr|indices)_0\.npy"):
                load_graph(place / "g")


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_labels_and_splits_are_read_if_and_only_if_they_can_be(
    right: Path, data: st.DataObject
) -> None:
    with folder(right) as place:
        parts = {n: np.load(place / "g" / f"{n}.npy") for n in ("labels", "train", "val", "test")}
        for _ in range(data.draw(st.integers(0, 2))):
            array = parts[data.draw(st.sampled_from(sorted(parts)))]
            array[data.draw(st.integers(0, len(array) - 1))] = data.draw(near)
        for name, array in parts.items():
            np.save(place / "g" / f"{name}.npy", array)
        labels = parts.pop("labels").tolist()
        members = [node for split in parts.values() for node in split.tolist()]
        can_be = (
            all(-1 <= label < 3 for label in labels)
            and all(split.tolist() == sorted(set(split.tolist())) for split in parts.values())
            and all(0 <= node < NODES and labels[node] >= 0 for node in members)
            and len(members) == len(set(members))
        )
        if can_be:
            assert load_graph(place / "g").labels.tolist() == labels
        else:
            with pytest.raises(ValueError, match=r"(labels|train|val|test)\.npy"):
                load_graph(place / "g")


@quick
@given(changes=st.dictionaries(st.text(min_size=1), JSON, max_size=4))
def test_whatever_a_saved_model_says_of_itself_it_is_read_or_refused(
    right: Path, changes: dict
) -> None:
    with folder(right) as place:
        with safe_open(place / "m.safetensors", framework="pt") as opened:
            said = json.loads(opened.metadata()["vrgcn-model"])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        # Entries that are there get other values, and others are added.
        values = dict(zip(sorted(said), changes.values(), strict=False)) | changes
        text = json.dumps(signed(said | values, tensors))
        save_file(tensors, place / "m.safetensors", metadata={"vrgcn-model": text})
        with read_or_refused("m.safetensors"):
            assert len(load_model(place / "m.safetensors").model.state_dict()) == len(tensors)


@quick
@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30),
    st.integers(0, 2**40),
    st.floats(1e-300, 1e300),
    st.booleans(),
)
def test_options_come_back_from_a_run_s_folder(name, seed, rate, flag) -> None:
    flags = ["--seed", str(seed), "--learning-rate", repr(rate), "--data-root", f"/d{name}"]
    options = parse(TrainOptions, [*flags, "--warm-start" if flag else "--no-warm-start"])
    with folder() as place:
        write_settings(place / "config.toml", kept := options.as_dict())
        again = parse_with_files(TrainOptions, ["--config", str(place / "config.toml")])
        assert again.as_dict() == kept


@quick
@given(JSON)
def test_whatever_is_in_a_file_of_options_it_is_read_or_refused(value: Any) -> None:
    with folder() as place:
        file = place / "c.toml"
        file.write_text(f"seed = {json.dumps(value)}".replace("NaN", "nan"), "utf-8", "replace")
        with read_or_refused("c.toml"):
            assert read_values(file, TrainOptions).keys() == {"seed"}


DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool)


@quick
@given(
    st.dictionaries(
        st.text("abc.0", min_size=1),
        st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=3)),
        max_size=4,
    )
)
def test_tensors_come_back_as_they_were_written(described: dict) -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = {
        name: torch.randn(shape, generator=generator).mul(50).to(dtype)
        for name, (dtype, shape) in described.items()
    }
    with folder() as place:
        with open(place / "t", "wb") as file:
            write_tensors(file, tensors)
        found = read_tensors(place / "t")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


@quick
@given(
    changes=st.dictionaries(
        st.sampled_from(["model", "position", "progress", "identity", "x"]), JSON
    )
)
def test_whatever_a_checkpoint_says_it_is_read_or_refused(right: Path, changes: dict) -> None:
    with folder(right) as place:
        path = place / "step-00000007"
        said = json.loads((path / STATE).read_text())
        (path / STATE).write_text(json.dumps(said | changes))
        sums = (path / "SHA256SUMS").read_text().splitlines(keepends=True)
        (path / "SHA256SUMS").write_text(
            "".join(sums[:2]) + _sums({STATE: file_checksum(path / STATE)})
        )
        with read_or_refused("step-00000007"):
            assert load_checkpoint(path).state.histories["1.h.values"].shape == (4, 2)


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@settings(max_examples=40, deadline=None)
@given(st.lists(cells, min_size=2, max_size=6))
def test_ids_of_a_table_come_back_or_are_refused_by_its_name(ids: list[str]) -> None:
    with folder() as place:
        table = io.StringIO(newline="")
        csv.writer(table).writerows([["id", "x"], *([text, 1] for text in ids)])
        (place / "nodes.csv").write_text(table.getvalue(), encoding="utf-8", newline="")
        quoted = csv.writer(edges := io.StringIO(newline=""))
        quoted.writerows([["source", "target"], ids[:2]])
        (place / "edges.csv").write_text(edges.getvalue(), encoding="utf-8", newline="")
        spec = ImportSpec(nodes=place / "nodes.csv", edges=place / "edges.csv", out=place / "g")
        with read_or_refused("nodes.csv", "edges.csv"):
            import_tables(spec)
            found = load_graph(place / "g").names.nodes
            assert found is not None
            assert [str(text) for text in found.to_pylist()] == ids


@quick
@given(st.binary(max_size=200))
def test_bytes_that_are_no_table_are_refused_by_its_name(content: bytes) -> None:
    with folder() as place:
        for name in ("edges.csv", "edges.parquet", "edges.csv.gz"):
            (place / name).write_bytes(content)
            with read_or_refused(name):
                import_tables(ImportSpec(edges=place / name, out=place / "g" / name))
