"""The tables that come with the package are those that the script reads."""

from __future__ import annotations

import runpy
from importlib.metadata import version
from pathlib import Path

import pandas
import pytest

from vrgcn.data.example import write_example

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "read_modules.py"


def test_the_tables_name_each_module_once_and_imports_between_them(tmp_path):
    modules, imports = map(pandas.read_csv, write_example(tmp_path / "new"))
    assert len(modules) == modules["id"].nunique() == 655
    assert modules["part"].isna().sum() == 23
    ids = set(modules["id"])
    assert set(imports["source"]) | set(imports["target"]) <= ids
    assert len(imports.drop_duplicates()) == len(imports) == 2152


@pytest.mark.soak  # reads 655 files
@pytest.mark.skipif(version("torch_geometric") != "2.8.1", reason="another version has others")
def test_the_script_writes_the_same_tables(tmp_path, capsys):
    runpy.run_path(str(SCRIPT))["main"]("torch_geometric", tmp_path / "anew")
    for path in write_example(tmp_path / "kept"):
        assert path.read_text() == (tmp_path / "anew" / path.name).read_text()
