"""Columns of every kind become the features that they should."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages import refused
from vrgcn.data.store import load_graph
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.data.tables.encoders import recognise
from vrgcn.data.tables.encoders.dates import parse_dates
from vrgcn.data.tables.encoders.reservoir import Reservoir
from vrgcn.data.tables.encoders.sample import ColumnSample

pytestmark = pytest.mark.usefixtures("told_as_flags")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Errors name files as they were given."""
    monkeypatch.chdir(tmp_path)


def test_other_splits_are_no_features():
    cells = {"fold_1": ["train", "Test", "valid", "train"], "when": ["train", "bus", "test", "bus"]}
    features, _, plan = imported(cells)
    assert list(features) == ["when=bus", "when=test", "when=train"]
    assert plan["fold_1"] == (
        "train, validation and test nodes",
        "left out; to split by it: --split fold_1; to keep it: --column fold_1=category",
    )
    first = {"split_u1": ["test", "test", "test", "test"], "exam": ["test"] * 4}
    assert list(imported(first, "first")[0]) == ["exam=test"]
    features, _, _ = imported(cells, "kept", column=("fold_1=category",))
    assert list(features)[:3] == ["fold_1=Test", "fold_1=train", "fold_1=valid"]


def write(cells: dict[str, list], delimiter: str = ";") -> Path:
    """A CSV file of nodes 0, 1, ... and of edges from 0 to all others."""
    count = len(next(iter(cells.values())))
    rows = [delimiter.join(["id", *cells])]
    for i in range(count):
        rows.append(delimiter.join([str(i), *(str(column[i]) for column in cells.values())]))
    Path("n.csv").write_text("\n".join(rows) + "\n")
    Path("e.csv").write_text("source,target\n" + "".join(f"0,{i}\n" for i in range(1, count)))
    return Path("n.csv")


def imported(cells: dict[str, list] | pa.Table, out: str = "g", **options):
    """The graph, its features by name, and the rows of the proposal."""
    if isinstance(cells, pa.Table):
        path = Path("n.parquet")
        cells = cells.add_column(0, "id", [np.arange(len(cells))])
        pq.write_table(cells, path)
        Path("e.csv").write_text("source,target\n0,1\n")
    else:
        path = write(cells)
    plan: dict[str, tuple[str, str]] = {}
    summary = import_tables(
        ImportSpec(nodes=path, edges=Path("e.csv"), out=Path(out), **options),
        on_plan=lambda title, rows: plan.update({row[0]: row[1:] for row in rows}),
    )
    graph = load_graph(out)
    named = {
        name: graph.features[:, i].tolist() for i, name in enumerate(graph.names.features or [])
    }
    return named, summary, plan


def test_categories_have_a_feature_each_and_one_for_missing():
    features, _, plan = imported({"city": ["Rome", "Oslo", " Rome", "", "NA"]})
    assert features == {
        "city=Oslo": [0, 1, 0, 0, 0],
        "city=Rome": [1, 0, 1, 0, 0],
        "city=(missing)": [0, 0, 0, 1, 1],
    }
    assert plan["city"][0] == "2 categories; 2 missing"


def test_features_of_the_same_name_are_told_apart():
    cells = {"x": ["a", "(missing)", "", "a"], "x=a": [1, 2, 3, 4]}
    options = {"column": ("x=category", "x=a=number"), "unknown_nodes": "add"}
    named, summary, _ = imported(cells, **options)
    assert named == {
        "x=(missing)": [0, 1, 0, 0],
        "x=a": [1, 0, 0, 1],
        "x=(missing) (2)": [0, 0, 1, 0],
        "x=a (2)": [1, 2, 3, 4],
        "(not in the nodes table)": [0, 0, 0, 0],
    }
    assert [warning for warning in summary.warnings if "would be called" in warning] == [
        "n.csv: column 'x': a feature would be called 'x=(missing)', as that of column 'x' is; it "
        "is called 'x=(missing) (2)'",
        "n.csv: column 'x=a': a feature would be called 'x=a', as that of column 'x' is; it is "
        "called 'x=a (2)'",
    ]
    write(cells)
    import_tables(ImportSpec(nodes="n.csv", edges="e.csv", like="g", out="again"))
    assert load_graph("again").names.features == list(named)


def test_a_name_that_a_renamed_feature_took_is_told_too():
    cells = {"x": ["a", "b", "a"], "x=a": [1, 2, 3], "x=a (2)": [4, 5, 6]}
    named, summary, _ = imported(cells, column=("x=category",))
    assert list(named) == ["x=a", "x=b", "x=a (2)", "x=a (2) (2)"]
    assert (
        "n.csv: column 'x=a (2)': a feature would be called 'x=a (2)', as that of column 'x=a' is; "
        "it is called 'x=a (2) (2)'"
    ) in summary.warnings


def test_a_column_called_like_the_mark_of_unknown_nodes_is_told():
    cells = {"x": [1, 2, 3], "(not in the nodes table)": [1, 0, 1]}
    named, summary, _ = imported(cells, unknown_nodes="add")
    assert list(named) == ["x", "(not in the nodes table) (2)", "(not in the nodes table)"]
    assert any(
        "as the mark of nodes that edges alone name is; it" in text for text in summary.warnings
    )


def test_rare_categories_share_a_feature():
    cells = ["a"] * 5 + ["b"] * 4 + ["c"] * 3 + ["d", "e"]
    features, _, _ = imported({"kind": cells}, max_categories=2)
    assert list(features) == ["kind=a", "kind=b", "kind=(other)"]
    assert features["kind=(other)"] == [0] * 9 + [1] * 5
    other, _, _ = imported({"kind": cells}, out="h", column=("kind=category:3",))
    assert list(other) == ["kind=a", "kind=b", "kind=c", "kind=(other)"]


@pytest.mark.parametrize("words", [("yes", "no"), ("TRUE", "False"), ("y", "n"), ("on", "off")])
def test_yes_and_no_are_1_and_0(words):
    features, _, plan = imported({"on": [words[0], words[1], words[0], words[0]]})
    assert features == {"on": [1, 0, 1, 1]}
    assert plan["on"][1] == "1 feature, 1 for yes and 0 for no"


def test_missing_numbers_are_filled_by_the_mean_and_marked_as_the_proposal_says():
    features, summary, plan = imported({"age": ["1", "", "3", "inf", "8"]})
    assert features == {"age": [1, 4, 3, 4, 8], "age.missing": [0, 1, 0, 1, 0]}
    assert plan["age"] == (
        "numbers, 1 to 8; 2 missing",
        "2 features; missing: the mean, and a mark",
    )
    assert not [warning for warning in summary.warnings if "age" in warning]


def test_columns_are_filled_each_in_its_own_way():
    gaps = ["1", "", "3", "11"]
    features, _, _ = imported(
        {"a": gaps, "b": gaps, "c": gaps, "d": gaps},
        fill=("-1", "a=median", "b=mean", "c=7.5+mark"),
    )
    assert features["a"] == [1, 3, 3, 11]
    assert features["b"] == [1, 5, 3, 11]
    assert features["c"] == [1, 7.5, 3, 11]
    assert features["c.missing"] == [0, 1, 0, 0]
    assert features["d"] == [1, -1, 3, 11]


def test_missing_numbers_that_the_first_rows_did_not_show_are_an_error_that_names_the_flag(
    monkeypatch,
):
    monkeypatch.setattr("vrgcn.data.tables.proposal.SAMPLE", 3)
    with refused():
        imported({"x": [1, 2, 3, 4, ""]})
    features, _, _ = imported({"x": [1, 2, 3, 6, ""]}, fill=("x=mean+mark",))
    assert features["x"] == [1, 2, 3, 6, 3]


def test_numbers_with_texts_among_them_may_count_the_texts_as_missing():
    cells = {"x": ["1", "2", "three", "4", "5"]}
    with refused():
        imported(cells)
    features, _, plan = imported(cells, column=("x=number:lenient",))
    assert features == {"x": [1, 2, 3, 4, 5], "x.missing": [0, 0, 1, 0, 0]}
    assert "texts count as missing" in plan["x"][1]


def test_dates_are_seconds_and_places_on_circles():
    days = ["2023-01-01", "2023-07-02", "2024-01-01 12:00", "2023-01-02T00:00:00+01:00"]
    features, _, plan = imported({"when": days})
    assert plan["when"][0] == "dates, 2023-01-01 to 2024-01-01"
    start = datetime(2023, 1, 1, tzinfo=UTC).timestamp()
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp()
    assert features["when.seconds"] == pytest.approx(
        [0, 182 * 86400, noon - start, 23 * 3600], rel=1e-6
    )
    year = 2 * np.pi * 182 / 365
    assert features["when.year.sin"][1] == pytest.approx(np.sin(year), abs=1e-6)
    assert features["when.year.cos"][1] == pytest.approx(np.cos(year), abs=1e-6)
    week = 2 * np.pi * date(2023, 7, 2).weekday() / 7  # Mondays are at the top
    assert features["when.week.cos"][1] == pytest.approx(np.cos(week), abs=1e-6)
    assert features["when.week.sin"][1] == pytest.approx(np.sin(week), abs=1e-6)
    assert features["when.day.cos"] == pytest.approx(
        [1, 1, -1, np.cos(2 * np.pi * 23 / 24)], abs=1e-6
    )


def test_dates_of_parquet_and_missing_ones():
    stamps = pa.array([0, 86_400, None], pa.int64()).cast(pa.timestamp("s"))
    features, _, _ = imported(pa.table({"t": stamps, "d": stamps.cast(pa.date32())}))
    for name in "td":
        assert features[f"{name}.seconds"] == [0, 86_400, 43_200]
        assert features[f"{name}.missing"] == [0, 0, 1]
        assert features[f"{name}.year.cos"][2] == 0


def test_nanoseconds_of_parquet_are_cut_off():
    times = pa.array([1_700_000_000_000_000_001, 1_700_000_060_000_000_999], pa.timestamp("ns"))
    named, _, _ = imported(pa.table({"t": times}))
    assert np.diff(named["t.seconds"]).tolist() == [60]


def test_dates_of_any_century_are_read():
    days = [date(1, 1, 1), date(1500, 3, 1), date(9999, 12, 31)]
    seconds = [(day - days[0]).days * 86_400.0 for day in days]
    features, _, plan = imported(pa.table({"d": pa.array(days, pa.date32())}))
    assert plan["d"][0] == "dates, 0001-01-01 to 9999-12-31"
    assert features["d.seconds"] == pytest.approx(seconds, rel=1e-6)
    german = [f"{day.day:02}.{day.month:02}.{day.year:04}" for day in days]
    for out, written in (("iso", list(map(str, days))), ("german", german)):
        texts, _, _ = imported({"d": written}, out=out)
        assert texts["d.seconds"] == features["d.seconds"]


def test_years_that_have_more_than_four_digits_are_read():
    days = pa.array([0, 3_650_000], pa.int32()).cast(pa.date32())
    features, _, plan = imported(pa.table({"d": days}))
    assert plan["d"][0] == "dates, 1970-01-01 to 11963-05-13"
    assert features["d.seconds"] == pytest.approx([0, 3_650_000 * 86_400.0], rel=1e-6)


def test_dates_are_read_in_the_format_that_fits_all():
    features, _, _ = imported({"d": ["01.02.2024", "28.02.2024", "03.02.2024"]})
    assert features["d.seconds"] == [0, 27 * 86_400, 2 * 86_400]
    american, _, _ = imported({"d": ["02/01/2024", "02/28/2024", "02/03/2024"]}, out="h")
    assert american["d.seconds"] == features["d.seconds"]


def test_dates_that_may_be_read_in_two_ways_are_asked_about():
    cells = {"d": ["01/02/2024", "03/04/2024"]}
    with refused() as caught:
        imported(cells)
    assert "--column 'd=date:%d/%m/%Y' or --column 'd=date:%m/%d/%Y'" in str(caught.value)
    features, _, _ = imported(cells, column=("d=date:%m/%d/%Y",))
    assert features["d.seconds"] == [0, 62 * 86_400]


def test_a_day_that_does_not_exist_is_told():
    days = [f"2024-01-{i:02}" for i in range(1, 10)]
    with refused():
        imported({"d": [*days, "2024-02-30"]})


def test_numbers_of_versions_are_no_reason_to_stop():
    versions = ["1.2.30", "1.2.3", "1.10.2", "2.0.1"] * 3
    _, _, plan = imported({"v": versions, "x": list(range(12))})
    assert plan["v"][0] == "4 categories"


@pytest.mark.parametrize(
    ("cells", "format", "wrong"),
    [
        (["31.02.2024", "29.02.2024", "28.02.24"], "%d.%m.%Y", [0, 2]),
        (["31.04.2024", "30.04.2024", "01.05.2024", "29.02.2023"], "%d.%m.%Y", [0, 3]),
        (["31.02.24", "28.02.24", "01.03.24", ""], "%d.%m.%y", [0]),
        (["31.04.2024 23:59", "01.05.2024 23:59"], "%d.%m.%Y %H:%M", [0]),
        (["0984-02-30", "0984-03-01", "984-03-01"], "%Y-%m-%d", [0, 2]),
        # As midnight is another day in UTC.
        (["29.02.2023 00:30 +0200", "01.03.2023 00:30 +0200"], "%d.%m.%Y %H:%M %z", [0]),
        (["31.02.2023 23:30 -0800", "03.03.2023 23:30 -0800"], "%d.%m.%Y %H:%M %z", [0]),
        # Arrow reads more than Python: these are dates.
        (["01 February 2024", "02 Feb 2024", "17 February 2024"], "%d %b %Y", []),
        (["2024-03-01", "2024-03-09"], "%F", []),
    ],
)
def test_days_that_do_not_exist_and_years_of_two_digits_are_no_dates(cells, format, wrong):
    seconds, found = parse_dates(pa.array(cells), format)
    assert found.tolist() == wrong
    known = [cell not in ("", *(cells[row] for row in wrong)) for cell in cells]
    assert (~np.isnan(seconds)).tolist() == known


@given(day=st.dates(), format=st.sampled_from(["%d.%m.%Y", "%Y/%m/%d", "%m-%d-%Y"]))
def test_every_day_is_read_as_it_was_written(day, format):
    year = f"{day.year:04}"  # strftime may leave the zeros out
    text = format.replace("%Y", year).replace("%m", f"{day:%m}").replace("%d", f"{day:%d}")
    seconds, wrong = parse_dates(pa.array([text]), format)
    assert wrong.tolist() == []
    assert seconds[0] == (day - date(1970, 1, 1)).days * 86_400


def test_a_day_that_does_not_exist_in_another_format_is_told():
    days = [f"{i:02}.01.2024" for i in range(13, 30)]
    with refused():
        imported({"d": [*days, "31.02.2024"]})


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["[1, 2.5]", "[3,4]"], ["x[0]", "x[1]"]),
        (["1|2.5", "3|4"], ["x[0]", "x[1]"]),
        (["1 2.5", " 3  4"], ["x[0]", "x[1]"]),
    ],
)
def test_lists_of_numbers_may_be_written_as_text(cells, names):
    features, _, _ = imported({"x": cells})
    assert features == {names[0]: [1, 3], names[1]: [2.5, 4]}


@pytest.mark.parametrize(
    "cells",
    [
        ["a|b", "b", "", "a|b|a"],
        ['["a", "b"]', '["b"]', "", '["a","b","a"]'],
        ["['a', 'b']", "['b']", "", "['a', 'b']"],
    ],
)
def test_several_categories_in_a_cell_are_a_feature_each(cells):
    features, _, _ = imported({"tags": cells})
    assert features == {
        "tags=a": [1, 0, 0, 1],
        "tags=b": [1, 1, 0, 1],
        "tags=(missing)": [0, 0, 1, 0],
    }


def test_lists_of_parquet_may_hold_categories_or_vectors():
    table = pa.table(
        {
            "tags": [["x", "y"], [], None, ["x"]],
            "codes": [[7], [7, 8], [], [8]],
            "emb": [[1.0, 2.0], None, [3.0, None], [5.0, 6.0]],
        }
    )
    features, _, _ = imported(table)
    assert features["tags=x"] == [1, 0, 0, 1]
    assert features["tags=(missing)"] == [0, 0, 1, 0]
    assert features["codes=8"] == [0, 1, 0, 1]
    assert features["emb[0]"] == pytest.approx([1, 3.4, 3, 5])  # 17 / 5, the mean of all of them
    assert features["emb.missing"] == [0, 1, 1, 0]


def test_large_whole_numbers_that_differ_by_little_stay_different():
    features, summary, plan = imported({"stamp": [10**18 + i for i in (5, 3, 9)]})
    assert features["stamp"] == [5, 3, 9]
    assert "less 1,000,000,000,000,000," in plan["stamp"][1]
    assert not [w for w in summary.warnings if "same for all" in w or "32 bits" in w]


def test_a_number_that_fills_gaps_is_less_the_offset_too():
    cells = {"t": ["1700000001", "1700000002", "", "1700000004"]}
    features, _, plan = imported(cells, fill=("t=1700000003",))
    assert features["t"] == [0, 1, 2, 3]
    assert "missing: 1.7e+09" in plan["t"][1]
    again = import_tables(
        ImportSpec(nodes=Path("n.csv"), edges=Path("e.csv"), out=Path("h"), like=Path("g"))
    )
    assert load_graph("h").features[:, 0].tolist() == [0, 1, 2, 3]
    assert not [warning for warning in again.warnings if "filled" in warning]


def test_a_surprising_gap_of_tomorrow_gets_the_mean_less_the_offset():
    imported({"t": ["1700000001", "1700000002", "1700000003"]})
    write({"t": ["1700000001", "", "1700000003"]})
    import_tables(
        ImportSpec(nodes=Path("n.csv"), edges=Path("e.csv"), out=Path("h"), like=Path("g"))
    )
    assert load_graph("h").features[:, 0].tolist() == [0, 1, 2]


def test_large_whole_numbers_that_are_rounded_are_told():
    features, summary, _ = imported({"code": [1, 16_777_217, 99_999_999]})
    assert features["code"] == [1, 16_777_216, 100_000_000]
    [warning] = [w for w in summary.warnings if "code" in w]
    assert "2 whole numbers are beyond 16,777,216, where 32 bits no longer tell" in warning
    assert "such as 16,777,217" in warning
    assert "--column code=category" in warning


def test_decimal_commas_are_read_where_no_doubt_is_left():
    features, _, plan = imported({"x": ["1,5", "2,25", "-3", "1.234,5"]})
    assert features == {"x": [1.5, 2.25, -3, 1234.5]}
    assert "decimal commas read as points" in plan["x"][1]
    other, _, _ = imported({"x": ["1,234.5", "2", "-3,000,000"]}, out="h")
    assert other == {"x": [1234.5, 2, -3_000_000]}


def test_commas_that_may_be_two_things_are_asked_about():
    cells = {"x": ["1,234", "2,500"]}
    with refused():
        imported(cells)
    assert imported(cells, out="a", decimal=",")[0]["x"] == pytest.approx([1.234, 2.5])
    assert imported(cells, out="b", decimal=".")[0]["x"] == [1234, 2500]


def test_a_point_among_decimal_commas_is_no_number():
    with refused():
        imported({"x": ["1,5", "2,5", "4,5", "7,5", "3.5"]}, decimal=",")


def test_lists_in_brackets_have_points_whatever_the_rest_of_the_table_has():
    cells = {"v": ["[0.671, 1.500]", "[0.25, 3]"], "w": ["1,5|2,5", "0,5|3"]}
    features, _, plan = imported(cells | {"x": ["1,5", "2,5"]}, decimal=",")
    assert features["v[0]"] == pytest.approx([0.671, 0.25])
    assert features["v[1]"] == [1.5, 3]
    assert (features["w[0]"], features["w[1]"]) == ([1.5, 0.5], [2.5, 3])
    assert plan["w"][0] == "lists of 2 numbers"


def test_a_column_may_have_another_decimal_than_the_rest():
    cells = {"x": ["1,5", "2,5", "3"], "y": ["1,200.5", "2", "1,000"]}
    with refused() as told:
        imported(cells, decimal=",")
    assert "holds '1,200.5'" in str(told.value)
    assert "--column 'y=number:.'" in str(told.value)
    features, _, _ = imported(cells, decimal=",", column=("y=number:.",))
    assert features == {"x": [1.5, 2.5, 3], "y": [1200.5, 2, 1000]}


def test_what_is_asked_about_may_be_answered_by_any_kind():
    cells = {"d": ["01/02/2024", "03/04/2024", "01/02/2024"], "x": ["1,234", "2,500", "1,234"]}
    features, _, _ = imported(cells, column=("d=category", "x=category"))
    assert list(features) == ["d=01/02/2024", "d=03/04/2024", "x=1,234", "x=2,500"]
    with refused() as caught:
        imported(cells, out="h", column=("d=date",))
    assert "column 'x' holds numbers with commas" in str(caught.value)


def test_numbers_with_spaces_are_vectors_where_they_have_fractions_or_are_many():
    phones = ["555 123 77", "555 124 33", "555 125 44"]
    features, _, _ = imported({"phone": phones, "x": [1, 2, 3]})
    assert list(features) == ["x"]
    codes = [" ".join(str(i + j) for j in range(8)) for i in range(3)]
    features, _, _ = imported({"codes": codes}, out="h")
    assert features["codes[7]"] == [7, 8, 9]


def test_names_and_empty_columns_are_left_out_and_what_to_do_is_said():
    cells = {"name": ["Ada", "Bob", "Cy"], "note": ["", "", ""], "x": [1, 2, 3]}
    features, summary, plan = imported(cells)
    assert list(features) == ["x"]
    assert plan["name"][1] == "left out; to keep it: --column name=text"
    assert plan["note"] == ("nothing but empty cells; 3 missing", "left out")
    assert "ignored columns: 'name', 'note'" in str(summary)


def test_many_columns_alike_share_a_row_of_the_proposal():
    cells = {f"f{i}": [1, 2, i] for i in range(20)} | {"z": ["a", "a", "b"]}
    _, _, plan = imported(cells)
    assert plan["f0 ... f19"] == ("20 columns of numbers", "each 1 feature")
    assert list(plan) == ["f0 ... f19", "z"]


def test_what_the_user_says_wins_over_what_a_column_looks_like():
    features, _, _ = imported(
        {"zip": [100, 200, 100], "on": [1, 0, 1], "x": [1, 2, 3]},
        column=("*=category", "on=boolean", "x=drop"),
    )
    assert features == {"zip=100": [1, 0, 1], "zip=200": [0, 1, 0], "on": [1, 0, 1]}


@pytest.mark.parametrize(
    "options",
    [
        {"column": ("agee=number",)},
        {"fill": ("agee=0",)},
        {"column": ("age=date",)},
        {"column": ("age=categories",)},
        {"column": ("age=boolean",)},
    ],
)
def test_what_the_user_says_may_be_wrong(options):
    with refused():
        imported({"age": [30, 40]}, **options)


TOPICS = ("goal team match league cup", "song band album guitar tour", "oven salt butter dough")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1, 2], pa.timestamp("us")), "number"),
        (pa.array([1, 2], pa.time64("us")), "date"),
        (pa.array([b"\xff", b"b"]), "category"),
        (pa.array([{"a": 1}, {"a": 2}]), "text"),
        (pa.array([{"a": 1}, {"a": 2}]), "boolean"),
        (pa.array([[[1]], [[2]]]), "categories"),
    ],
)
def test_a_type_that_cannot_be_what_the_user_says_is_told(values, kind):
    with refused():
        imported(pa.table({"x": values}), column=(f"x={kind}",))


def test_lists_that_are_all_empty_make_no_features():
    empty = pa.array([[], []], pa.list_(pa.string()))
    with refused():
        imported(pa.table({"x": empty}), column=("x=categories",))


def test_a_list_that_is_nested_without_end_is_told_like_any_other():
    deep = "[" * 100_000 + "]" * 100_000
    with refused():
        imported({"x": [1, 2, 3], "t": ['["a"]', deep, '["b"]']}, column=("t=categories:[]",))


def prose(rows: int, seed: int = 0) -> list[str]:
    """Texts about three topics in turn."""
    random = np.random.default_rng(seed)
    return [
        " ".join(random.choice(TOPICS[i % 3].split(), 6)) + " and so on, every day"
        for i in range(rows)
    ]


def test_texts_about_the_same_are_near_each_other():
    features, _, plan = imported({"bio": prose(90)}, column=("bio=text:3",))
    assert plan["bio"][1] == "3 features: words by tf-idf, then an SVD"
    x = np.array([features[f"bio~{i}"] for i in range(3)]).T
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    near = x @ x.T
    same = np.equal.outer(np.arange(90) % 3, np.arange(90) % 3)
    assert near[same].min() > near[~same].max()


def test_texts_are_found_and_give_the_same_features_again():
    cells = {"bio": prose(60, seed=1)}
    one, _, plan = imported(cells)
    assert plan["bio"][0] == "text of 11 words on average"
    other, _, _ = imported(cells, out="h")
    assert one == other


def test_tf_idf_is_that_of_the_formula():
    cells = {"bio": ["a1 b1 b1", "a1 c1", "a1 c1 d1"]}
    features, _, _ = imported(cells, column=("bio=text:3",))
    x = np.array([features[f"bio~{i}"] for i in range(3)]).T
    n = 3
    idf = {w: 1 + np.log((1 + n) / (1 + df)) for w, df in zip("abcd", (3, 1, 2, 1), strict=True)}
    rows = np.array([
        [idf["a"], (1 + np.log(2)) * idf["b"], 0, 0],
        [idf["a"], 0, idf["c"], 0],
        [idf["a"], 0, idf["c"], idf["d"]],
    ])  # fmt: skip
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # Three texts have rank 3, so the SVD of three keeps all products.
    np.testing.assert_allclose(x @ x.T, rows @ rows.T, atol=1e-5)


def test_without_scikit_learn_texts_are_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(
        "vrgcn.data.tables.encoders.texts.find_spec", lambda name: None if name else sys
    )
    with refused() as caught:
        imported({"bio": prose(60)})
    assert "'bio'" in str(caught.value)
    assert not Path("g").exists()
    features, _, _ = imported({"bio": prose(6), "x": [1, 2, 3, 4, 5, 6]}, column=("bio=drop",))
    assert list(features) == ["x"]


def test_a_text_column_without_words_is_told():
    with refused():
        imported({"bio": ["-", "?", "!"], "x": [1, 2, 3]}, column=("bio=text",))


def test_a_text_column_of_one_word_is_told():
    with refused():
        imported({"bio": ["word", "word", "-"], "x": [1, 2, 3]}, column=("bio=text",))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 30))
def test_a_reservoir_depends_on_the_rows_and_not_on_the_batches(sizes, most):
    rows = pa.array(range(sum(sizes)), pa.int64())
    whole, parts = Reservoir(most, seed=3), Reservoir(most, seed=3)
    whole.add(rows)
    start = 0
    for size in sizes:
        parts.add(rows[start : start + size])
        start += size
    assert whole.values().to_pylist() == parts.values().to_pylist()
    assert len(set(whole.values().to_pylist())) == min(most, len(rows))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=9), min_size=1, max_size=6),
    st.integers(1, 12),
    st.integers(0, 40),
)
def test_a_reservoir_keeps_to_its_bytes_whatever_the_batches(batches, most, size):
    rows = [[chr(97 + n) * n for n in batch] for batch in batches]
    joined = [text for batch in rows for text in batch]
    whole, parts = Reservoir(most, 3, size), Reservoir(most, 3, size)
    whole.add(pa.array(joined, pa.string()))
    for batch in rows:
        parts.add(pa.array(batch, pa.string()))
    sampled = whole.values().to_pylist()
    assert sampled == parts.values().to_pylist()
    # As many as fit, by the numbers that they drew.
    order = [joined[i] for i in np.argsort(np.random.default_rng(3).random(len(joined)))]
    fit = [n for n in range(len(order) + 1) if sum(map(len, order[:n])) <= size and n <= most]
    assert sorted(sampled) == sorted(order[: fit[-1]])


def test_a_reservoir_takes_every_row_as_often():
    counts = np.zeros(20)
    for seed in range(800):
        sample = Reservoir(5, seed)
        for start in range(0, 20, 7):
            sample.add(pa.array(range(start, min(start + 7, 20))))
        counts[sample.values().to_numpy()] += 1
    # Binomial(800, 1/4): mean 200, deviation 12.2; 20 rows are within 4 of them but once in 800.
    assert np.abs(counts - 200).max() < 4 * 12.2


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2"], "number"),
        (["0", "1", "1"], "number"),
        (["yes", "no"], "boolean"),
        (["2024-01-01", "2024-05-05"], "date"),
        (["a", "b", "a"], "category"),
        (["Ada", "Bob"], "drop"),
        (["a;b", "b;c", "a;c"], "categories"),
        (["one of many words here", "and another one of these"], "text"),
        (["", "NA"], "drop"),
    ],
)
def test_a_column_looks_like_what_it_holds(cells, kind):
    spec = ImportSpec(edges=Path("e.csv"), out=Path("g"))
    encoder, _ = recognise(ColumnSample("x", pa.array(cells), spec))
    assert (encoder.kind if encoder else "drop") == kind
