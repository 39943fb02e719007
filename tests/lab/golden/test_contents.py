"""Contents of files as text: one changed bit changes the text, other seconds do not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lab.golden.contents import array_line, describe, describe_folder
from lab.golden.masks import Masks

MASKS = Masks()


def test_a_changed_bit_of_an_array_changes_its_line() -> None:
    values = torch.arange(12.0).reshape(3, 4)
    other = values.clone()
    other.view(torch.int32)[2, 3] ^= 1
    assert array_line(values).startswith("float32 [3, 4] ")
    assert array_line(values) == array_line(values.numpy())
    assert array_line(values) != array_line(other)
    assert array_line(values) != array_line(values.T)


def test_bfloat16_and_sparse_tensors_have_a_line() -> None:
    values = torch.eye(3)
    assert array_line(values.to_sparse_csr()) == array_line(values)
    assert array_line(values.bfloat16()).startswith("int16 [3, 3] ")


def save(path: Path, weight: float, **notes: str) -> str:
    save_file({"weight": torch.tensor([1.0, weight])}, path, {"about": json.dumps(notes)})
    return describe(path, MASKS)


def test_tensors_and_metadata_of_a_model_are_described(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    text = save(file, 2.0, kind="gcn")
    assert 'metadata about:.kind = "gcn"' in text
    assert "weight: float32 [2] " in text
    assert text == save(file, 2.0, kind="gcn")
    assert text != save(file, 2.0000002, kind="gcn")
    assert text != save(file, 2.0, kind="mlp")


def test_json_is_described_leaf_by_leaf_without_seconds(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    value = {"epoch": 3, "seconds": 1.5, "curve": [{"val": 0.5}], "names": ["a", "b"]}
    file.write_text(json.dumps(value), encoding="utf-8")
    assert describe(file, MASKS).splitlines() == [
        "epoch = 3",
        'seconds = "<seconds>"',
        "curve[0].val = 0.5",
        'names = ["a", "b"]',
    ]
    del value["seconds"]
    file.write_text(json.dumps(value), encoding="utf-8")
    assert describe(file, MASKS).startswith("bytes ")


@pytest.mark.parametrize(("sum_of", "verdict"), [(b"data", "matches"), (b"date", "DIFFERS")])
def test_sums_are_checked(tmp_path: Path, sum_of: bytes, verdict: str) -> None:
    (tmp_path / "a.bin").write_bytes(b"data")
    digest = hashlib.sha256(sum_of).hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  a.bin\n", encoding="utf-8")
    assert describe(tmp_path / "SHA256SUMS", MASKS) == f"a.bin {verdict}"


def test_a_file_that_is_not_what_its_name_says_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"no array")
    assert describe(tmp_path / "x.npy", MASKS).startswith("not readable, ValueError")


def test_a_folder_lists_its_files_and_empty_folders(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    np.save(tmp_path / "run" / "x.npy", np.zeros(2))
    found = describe_folder(tmp_path / "run", MASKS)
    assert found["FILES"].splitlines() == ["checkpoints/", "x.npy"]
    assert found["x.npy"].endswith("[0.0, 0.0, ...]")


def page(path: Path, picture: str, score: str) -> str:
    path.write_text(
        f"<html><style>p {{}}</style><p>score</p><td>{score}</td>"
        f'<img src="data:image/png;base64,{picture}"></html>',
        encoding="utf-8",
    )
    return describe(path, MASKS)


def test_a_page_is_its_words_and_the_hash_of_each_picture(tmp_path: Path) -> None:
    text = page(tmp_path / "r.html", "AAAA", "0.5")
    lines = text.splitlines()
    assert lines[2:] == ["score", "0.5"]
    assert lines[1].startswith("data ")
    changed = page(tmp_path / "r.html", "AAAB", "0.5").splitlines()
    assert changed[1] != lines[1]
    assert changed[2:] == lines[2:]
