"""JSON and TOML of any kind: read, or refused with the file's name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn.files.checksums import file_checksum, value_checksum
from vrgcn.files.parsing import parse_json, read_json, read_toml


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"ü": [1, null]}', encoding="utf-8")
    (tmp_path / "a.toml").write_text('ü = "x"'.replace("ü", '"ü"'), encoding="utf-8")
    assert read_json(tmp_path / "a.json") == {"ü": [1, None]}
    assert read_toml(tmp_path / "a.toml") == {"ü": "x"}


@pytest.mark.parametrize("text", [b"{", b"\xff\xfe\xff", b"[" * 100_000, b"1" * 10_000, b""])
def test_what_is_no_json_is_refused_by_its_name(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(text)
    with refused():
        read_json(tmp_path / "a.json")
    with refused():
        parse_json(text, "line 3")


@pytest.mark.parametrize(
    "text", [b"=", b"\xff", b"a = " + b"[" * 100_000, b"a = " + b"1" * 10_000, b"a = 1\na = 2"]
)
def test_what_is_no_toml_is_refused_by_its_name(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(text)
    with refused():
        read_toml(tmp_path / "a.toml")


def test_a_toml_file_that_would_take_minutes_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("it was parsed"))
    for key in ("a." * 300 + "a", "[" + "a . " * 300 + "a]", '"a".' * 300 + "a"):
        (tmp_path / "a.toml").write_text(f"epochs = 3\n{key} = 1\n")
        with refused():
            read_toml(tmp_path / "a.toml")
    (tmp_path / "a.toml").write_text("# long\n" * 10_000)
    with refused():
        read_toml(tmp_path / "a.toml")


def test_dots_in_values_are_no_deep_key(tmp_path: Path) -> None:
    numbers = ", ".join(["0.5"] * 200)
    (tmp_path / "a.toml").write_text(f'ratio = [{numbers}]\ngraph = "../../a.b/c"\n')
    assert len(read_toml(tmp_path / "a.toml")["ratio"]) == 200


def test_a_checksum_is_of_the_bytes_and_of_the_values(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of FIPS 180
    assert file_checksum(tmp_path / "a") == known
    assert value_checksum({"a": 1, "b": [2]}) == value_checksum({"b": [2], "a": 1})
    assert value_checksum({"a": 1}) != value_checksum({"a": "1"})
