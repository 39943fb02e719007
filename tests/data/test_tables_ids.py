"""Whole numbers that are names are no amounts: ids of other tables, and codes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.data.test_tables_features import imported
from tests.messages import refused
from vrgcn.data.tables.encoders import recognise
from vrgcn.data.tables.encoders.sample import ColumnSample, is_called_id
from vrgcn.data.tables.spec import ImportSpec

pytestmark = pytest.mark.usefixtures("told_as_flags")
SPEC = ImportSpec(edges=Path("e.csv"), out=Path("g"))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def kind(column: str, cells: list | pa.Array, **options: object) -> str | None:
    array = cells if isinstance(cells, pa.Array) else pa.array(cells)
    encoder, _ = recognise(ColumnSample(column, array, SPEC, **options))
    return encoder.kind if encoder is not None else None


@pytest.mark.parametrize("name", ["shop_id", "shopId", "ShopID", "id", "ID", "date key", "x-uuid"])
def test_names_of_ids(name):
    assert is_called_id(name)


@pytest.mark.parametrize("name", ["paid", "Paid", "PAID", "valid", "grid", "idle", "monkey", "no"])
def test_names_of_other_columns(name):
    assert not is_called_id(name)


def test_ids_of_few_rows_are_categories_and_of_many_are_left_out():
    few, many = [1, 2, 3] * 30, [n // 2 for n in range(200)]
    assert kind("price", few) == kind("price", many) == "number"
    for cells in (few, [str(n) for n in few], [float(n) for n in few], [*few, None]):
        assert kind("shop_id", cells) == "category"
    assert kind("shop_id", many) is kind("shop_id", [str(n) for n in many]) is None
    assert kind("shop_id", [1.5, 2.5, 1.5]) == "number"  # no ids, whatever it is called
    assert kind("shop", few, key=True) == "category"


def test_codes_that_repeat_are_categories_though_they_are_called_ids():
    rare = [*range(1, 61)] * 3
    codes = [*rare, *([1, 2, 3] * 300)]  # 60 different, of which 50 are 0.97 of the cells
    for cells in (codes, [str(n) for n in codes], [float(n) for n in codes], [*codes, None]):
        assert kind("status_id", cells) == "category"
    assert kind("status_id", codes, key=True) is None  # rows of another table
    assert kind("status_id", [*range(60)] * 20) is None  # equally frequent, as rows are
    assert kind("status_id", [*range(1, 61), *([1] * 500)]) is None  # most are there once


def test_an_id_that_the_user_chooses_is_what_the_user_says():
    cells = {"shop_id": [n // 2 for n in range(120)], "x": list(range(120))}
    features, summary, plan = imported(cells)
    assert list(features) == ["x"]
    assert plan["shop_id"][0] == "ids, 60 different"
    assert plan["shop_id"][1] == "left out; to keep it: --column shop_id=category"
    assert "ignored column: 'shop_id'" in str(summary)
    assert list(imported(cells, "h", column=("shop_id=number",))[0]) == ["shop_id", "x"]
    assert list(imported(cells, "i", features=("shop_id",))[0]) == ["shop_id"]


def test_texts_among_postal_codes_make_them_categories_with_a_warning():
    zips = ["02154", "55105", "94043", "55105"] * 4
    features, summary, _ = imported({"zip": [*zips, "V3N4P", "T8H1N", "V3N4P"]})
    assert list(features) == [f"zip={z}" for z in ("02154", "55105", "94043", "T8H1N", "V3N4P")]
    [warning] = [each for each in summary.warnings if "zip" in each]
    assert warning == (
        "n.csv: column 'zip' holds texts among codes of digits, in 3 rows: 'V3N4P' in row 17 "
        "(line 18), 'T8H1N' in row 18 (line 19), 'V3N4P' in row 19 (line 20); all its cells count "
        "as categories; for numbers give --column zip=number:lenient"
    )


@pytest.mark.parametrize(
    "typo", ["12,5", "n.a.", "abc", "12O", "1 20", "-", "?", "120cm", "1e", "unknown"]
)
def test_a_typo_among_numbers_stays_an_error_that_names_its_row(typo):
    cells = [120, 145, 180, 176, 133, 150] * 3
    with refused():
        imported({"height": [*cells, typo, 120]})
