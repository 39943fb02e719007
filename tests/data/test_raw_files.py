"""Raw files of public data sets: read as data, and refused where they are more than that."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.data.test_named import write_reddit2
from tests.messages import refused
from vrgcn.data import load_dataset
from vrgcn.data.raw_files import check_raw_files, read_pickle

MATRIX = sp.csr_matrix(np.array([[0, 2.0, 0], [1.0, 0, 3.0]]))


@pytest.mark.parametrize("protocol", range(5))
def test_arrays_matrices_and_dicts_of_lists_are_read(protocol: int, tmp_path: Path) -> None:
    graph = defaultdict(list, {0: [1, 2], 1: [0]})
    for value in (MATRIX, np.arange(6.0).reshape(2, 3), graph, np.array([True, False])):
        (tmp_path / "ind.x").write_bytes(pickle.dumps(value, protocol))
        # scipy's own protocols 0 and 1 call copyreg, which no published file does
        if sp.issparse(value) and protocol < 2:
            continue
        found = read_pickle(tmp_path / "ind.x")
        if sp.issparse(value):
            assert (found != value).nnz == 0
        else:
            assert type(found) is type(value)
            assert np.array_equal(found, value) if isinstance(value, np.ndarray) else found == value


class Call:
    """Something that calls a function when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


@pytest.mark.parametrize("where", ["itself", "inside of a list", "inside of an array"])
@pytest.mark.parametrize(
    "call", [Call(print, "harm"), Call(eval, "1"), Call(Path, "x"), Call(np.load, "x")]
)
def test_nothing_is_called(call: Call, where: str, tmp_path: Path, capsys) -> None:
    value: Any = call
    if where == "inside of a list":
        value = {0: [call]}
    if where == "inside of an array":
        value = np.array([call, None], dtype=object)
    (tmp_path / "ind.cora.x").write_bytes(pickle.dumps(value))
    with refused():
        check_raw_files(tmp_path, ["ind.cora.x"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "content",
    [
        b"",
        pickle.dumps(MATRIX)[:-9],
        b"\x80\x02]r\xff\xff\xff\xff.",
        b"]p99999999999\n.",
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"Pabc\n.",
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        b"\x8a\x06\x00\x00\x00\x00\x00\x01\x85U\x01b\x87R.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        b"K\x00\x85U\x06latin1\x87R.",
    ],
)
def test_a_pickle_that_is_broken_or_claims_too_much_is_refused(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "ind.x").write_bytes(content)
    with refused():
        read_pickle(tmp_path / "ind.x")


def broken(**parts: Any) -> sp.csr_matrix:
    matrix = MATRIX.copy()
    matrix.__dict__.update(parts)
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        broken(indptr=np.array([0, 10**6, 3], np.int32)),
        broken(indptr=np.array([0, 3], np.int32)),
        broken(indptr=np.array([-5, 1, 3], np.int32)),
        broken(indices=np.array([0, 10**6, 1], np.int32)),
        broken(indices=np.array([0, -1, 1], np.int32)),
        broken(indices=np.array([0.0, 1, 1])),
        broken(data=np.ones(2)),
        broken(data=np.array(["a", "b", "c"], object)),
        broken(indices=[0, 1, 1]),
        broken(_shape=(10**9, 3)),
        broken(_shape=None),
    ],
)
def test_a_matrix_that_leads_to_other_memory_is_refused(matrix: Any, tmp_path: Path) -> None:
    (tmp_path / "ind.x").write_bytes(pickle.dumps(matrix))
    with refused():
        read_pickle(tmp_path / "ind.x")


@pytest.mark.parametrize("wrong", ["indptr", "indices"])
def test_a_raw_adjacency_is_looked_at_before_scipy_sees_it(wrong: str, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "reddit2" / "raw"
    write_reddit2(folder)
    assert (
        load_dataset("reddit2", cache=tmp_path / "first", data_root=tmp_path / "data").num_nodes
        == 6
    )
    with np.load(folder / "adj_full.npz") as arrays:
        parts = dict(arrays)
    parts[wrong][2] = 10**8
    np.savez(folder / "adj_full.npz", **parts)
    with refused():
        load_dataset("reddit2", cache=tmp_path / "second", data_root=tmp_path / "data")


def test_an_archive_that_claims_more_than_it_has_is_refused(tmp_path: Path) -> None:
    array = io.BytesIO()
    np.save(array, np.zeros(4))
    claimed = array.getvalue().replace(b"(4,), }" + b" " * 12, b"(4000000000000,), }")
    assert len(claimed) == len(array.getvalue())
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("data.npy", claimed)
    with refused():
        check_raw_files(tmp_path, ["a.npz"])
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 no archive")
    with refused():
        check_raw_files(tmp_path, ["a.npz"])
