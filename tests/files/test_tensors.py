"""Tensors as safetensors files, written in pieces."""

from __future__ import annotations

import hashlib
import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load
from torch import Tensor

from tests.messages import refused
from vrgcn.files import tensors
from vrgcn.files.tensors import DTYPES, read_tensors, size_of, write_tensors
from vrgcn.graph.mapped import zeros

ALL: dict[str, Tensor] = {
    **{str(dtype): torch.arange(10).reshape(5, 2).to(dtype) for dtype in DTYPES},
    "scalar": torch.tensor(2.5),
    "empty": torch.empty(0, 3),
    "no columns": torch.empty(4, 0),
    "transposed": torch.arange(6.0).reshape(2, 3).t(),
    "every second": torch.arange(8.0)[::2],
    "parameter": torch.nn.Parameter(torch.ones(2)),
}


@pytest.mark.parametrize("piece", [tensors.PIECE, 3])
def test_what_is_written_is_what_safetensors_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(tensors, "PIECE", piece)
    with open(tmp_path / "a.safetensors", "wb") as file:
        digest = write_tensors(file, ALL)
    content = (tmp_path / "a.safetensors").read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest
    for read in (load(content), read_tensors(tmp_path / "a.safetensors")):
        assert read.keys() == ALL.keys()
        for name, value in ALL.items():
            assert read[name].dtype == value.dtype
            assert torch.equal(read[name], value), name
    header = 8 + int.from_bytes(content[:8], "little")
    assert header % 8 == 0
    assert len(content) == header + size_of(ALL)


@pytest.mark.parametrize("where", ["heap", "huge pages", "file"])
def test_a_large_table_is_not_copied_as_a_whole(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nowhere(io.RawIOBase):
        def write(self, data) -> int:
            return len(data)

    monkeypatch.setattr(tensors, "PIECE", 1 << 16)
    table = torch.zeros(1 << 18, 8)
    if where != "heap":  # as histories are made
        table = zeros((1 << 18, 8), torch.float32, tmp_path / "0.bin" if where == "file" else None)
    largest = []
    tracemalloc.start()
    write_tensors(Nowhere(), {"table": table})
    largest.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert largest[0] < 1 << 20  # of Python and numpy
    views = list(tensors.pieces(table))
    # And of torch: the bytes where they lie.
    assert np.asarray(views[0]).ctypes.data == table.data_ptr()
    assert max(view.nbytes for view in views) == 1 << 16


def test_a_type_that_the_format_lacks_is_named() -> None:
    with refused(TypeError):
        write_tensors(io.BytesIO(), {"phase": torch.zeros(1, dtype=torch.complex128)})


@pytest.mark.parametrize("keep", [0, 4, 20, -1])
def test_a_file_that_is_cut_is_refused_by_name(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.safetensors"
    with open(path, "wb") as file:
        write_tensors(file, ALL)
    path.write_bytes(path.read_bytes()[:keep])
    with refused():
        read_tensors(path)
