"""Arrays in files: mapped where header and length agree, refused where not."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from tests.messages import refused
from vrgcn.files.npy import map_array

ARRAYS = {
    "rows": np.arange(12.0).reshape(4, 3),
    "columns": np.asfortranarray(np.arange(12.0).reshape(4, 3)),
    "one": np.array([7]),
    "none": np.empty((0, 3), np.float32),
    "scalar": np.array(3.5),
    "big-endian": np.arange(5, dtype=">i4"),
    "true and false": np.array([True, False]),
}


def header(text: str, version: tuple[int, int] = (1, 0), claimed: int | None = None) -> bytes:
    length = (len(text) if claimed is None else claimed).to_bytes(
        2 if version == (1, 0) else 4, "little"
    )
    return b"\x93NUMPY" + bytes(version) + length + text.encode("latin1")


@pytest.mark.parametrize("kind", ARRAYS)
def test_what_numpy_saves_is_read_as_numpy_reads_it(kind: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ARRAYS[kind])
    array = map_array(tmp_path / "a.npy")
    expected = np.load(tmp_path / "a.npy")
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    assert (array == expected).all()
    assert array.flags.f_contiguous == expected.flags.f_contiguous


def test_a_header_of_the_second_version_and_of_python_2_is_read(tmp_path: Path) -> None:
    described = "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 1L), }\n"
    (tmp_path / "a.npy").write_bytes(header(described, (2, 0)) + np.ones(2, "<f4").tobytes())
    assert map_array(tmp_path / "a.npy").tolist() == [[1], [1]]


def test_changing_an_array_leaves_its_file_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    array = map_array(tmp_path / "a.npy")
    array[1] = 5
    assert np.load(tmp_path / "a.npy").tolist() == [0, 0, 0]


def archive() -> bytes:
    out = io.BytesIO()
    np.savez(out, a=np.zeros(3))
    return out.getvalue()


def pickled() -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"id,label\n1,2\n",
        archive(),
        pickled(),
        header("{}", (3, 0)),
        header("{}", (2, 0), 4_000_000_000),
        header("{}"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (2,"),
        header("[" * 9_000),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': 3}"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,)}"),
        header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (0,)}"),
    ],
)
def test_what_is_no_array_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with refused():
        map_array(tmp_path / "a.npy")
