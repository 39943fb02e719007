"""Small Parquet files that stand for very much: read in bounded memory, or refused by their row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages import refused
from vrgcn.data.store import load_graph
from vrgcn.data.tables import ImportSpec, cell_limits, edges, ids, import_tables, parquet, proposal
from vrgcn.data.tables.parquet import ParquetTable
from vrgcn.data.tables.values import cell_bytes
from vrgcn.files.mistakes import InputError

pytestmark = pytest.mark.usefixtures("told_as_flags")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text("source,target\n0,1\n")


def same(value, count: int) -> pa.DictionaryArray:
    """A cell again and again, which the file has once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([value]))


def write(columns: dict, **options) -> None:
    given = {"compression": "zstd", "store_schema": False, **options}
    pq.write_table(pa.table(columns), "n.parquet", **given)


def read(*columns: str) -> list[tuple[int, pa.RecordBatch]]:
    return list(ParquetTable(Path("n.parquet")).batches(columns))


def imported(**options) -> None:
    import_tables(
        ImportSpec(nodes=Path("n.parquet"), edges=Path("e.csv"), out=Path("g"), **options)
    )


def mistake_of(**options) -> str:
    with pytest.raises(InputError, match=r"^n\.parquet: ") as caught:
        imported(**options)
    assert not Path("g").exists()
    return str(caught.value)


# ----------------------------------------------------------------------------------- memory


def test_a_text_that_is_long_and_often_there_is_refused_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(cell_limits, "CELL_BYTES", 1 << 16)
    monkeypatch.setattr(parquet, "DECODED_BYTES", 1 << 20)
    write({"id": range(400), "bio": same("a" * (1 << 18), 400)})
    usual, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.system_memory_pool())
    pa.set_memory_pool(counted)
    try:
        said = mistake_of()
    finally:
        pa.set_memory_pool(usual)
    assert "column 'bio' holds a cell of 262 kB in row 1, where 65.5 kB are the most" in said
    assert 1 << 18 < counted.max_memory() < 8 << 20  # the cells are 105 MB


# -------------------------------------------------------------------------------------- cells


@pytest.mark.parametrize(
    "options", [{}, {"row_group_size": 70}, {"data_page_version": "2.0"}, {"store_schema": True}]
)
def test_a_long_text_is_told_by_its_row_wherever_it_is(monkeypatch, options):
    monkeypatch.setattr(cell_limits, "CELL_BYTES", 1000)
    places = np.zeros(150, np.int32)
    places[120:] = 1
    texts = pa.array(["short", "a" * 1001])
    write(
        {"id": range(150), "bio": pa.DictionaryArray.from_arrays(pa.array(places), texts)},
        **options,
    )
    told = "n.parquet: column 'bio' holds a cell of 1 kB in row 121, where 1 kB are the most; "
    assert mistake_of() == told + "leave the column out with --drop 'bio'"


def test_a_long_text_that_no_row_has_is_no_mistake(monkeypatch):
    monkeypatch.setattr(cell_limits, "CELL_BYTES", 1000)
    texts = pa.array(["short", "a" * 1001, "long"])
    write({"bio": pa.DictionaryArray.from_arrays(pa.array([0, 2, 2], pa.int32()), texts)})
    assert pq.ParquetFile("n.parquet").metadata.row_group(0).column(0).total_uncompressed_size > 999
    [(_, batch)] = read("bio")
    assert batch["bio"].to_pylist() == ["short", "long", "long"]


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY"])
def test_a_long_text_outside_a_dictionary_is_told_by_its_row(monkeypatch, encoding):
    monkeypatch.setattr(cell_limits, "CELL_BYTES", 1000)
    columns = {"id": range(31), "bio": ["short"] * 30 + ["b" * 1200]}
    write(columns, use_dictionary=False, column_encoding={"bio": encoding})
    assert "column 'bio' holds a cell of 1.2 kB in row 31, where 1 kB are" in mistake_of()


@pytest.mark.parametrize("most", [parquet.DECODED_BYTES, 1000])
def test_a_list_that_takes_too_much_is_told_by_its_row(monkeypatch, most):
    monkeypatch.setattr(cell_limits, "CELL_BYTES", 1000)
    monkeypatch.setattr(parquet, "DECODED_BYTES", most)
    starts = pa.array([0, 0, 1, 4], pa.int32())
    write({"id": range(3), "tags": pa.ListArray.from_arrays(starts, same("a" * 400, 4))})
    assert "column 'tags' holds a cell of 1.2 kB in row 3, where 1 kB are" in mistake_of()
    write({"id": range(3), "v": [[1.0], None, [2.0] * 126]})
    assert "column 'v' holds a cell of 1.01 kB in row 3, where 1 kB are" in mistake_of()


def test_the_columns_own_name_is_told_and_columns_left_out_may_hold_anything(monkeypatch):
    monkeypatch.setattr(cell_limits, "CELL_BYTES", 1000)
    write({"id": range(3), " bio ": same("a" * 2000, 3), "x": [1, 2, 3]})
    assert "column 'bio' holds a cell of 2 kB in row 1" in mistake_of()
    imported(drop=("bio",))
    assert load_graph("g").names.features == ["x"]


# --------------------------------------------------------------------------------- row groups


def test_a_row_group_out_of_proportion_to_the_file_is_told_by_its_rows(monkeypatch):
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1 << 20)
    options = {"use_dictionary": False, "row_group_size": 4}
    texts = ["x"] * 8 + ["a" * (1 << 18)] * 4
    write({"id": range(12), "bio": texts}, **options)
    assert mistake_of() == (
        "n.parquet: column 'bio' is the largest of a row group that takes 1.05 MB, rows 9 to 12, "
        "where 1.05 MB are the most; write the file in smaller row groups, or leave the column out "
        "with --drop 'bio'"
    )
    write({"id": range(12), "bio": texts}, **options, compression="none")  # large, and stored so
    imported(column=("bio=category",))
    assert load_graph("g").num_nodes == 12


def test_lists_of_equal_numbers_count_with_all_their_values(monkeypatch):
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1 << 20)
    starts = pa.array([0, 1, 400_001, 400_002], pa.int32())
    values = pa.array(np.full(400_002, 7, np.int32))
    write({"id": range(3), "v": pa.ListArray.from_arrays(starts, values)})
    assert Path("n.parquet").stat().st_size < 5000
    assert "column 'v' is the largest of a row group that takes 1.6 MB, rows 1 to 3" in mistake_of()


# ------------------------------------------------------------------------------------ batches


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=120),
    st.integers(1, 50),
    st.integers(1, 40),
    st.sampled_from([64, 500, 1 << 20]),
    st.sampled_from(["PLAIN", "DELTA_BYTE_ARRAY", None]),
    st.booleans(),
)
def test_all_rows_come_in_order_and_in_bounded_batches(
    tmp_path_factory, lengths, group, rows, most, encoding, stored
):
    file = tmp_path_factory.mktemp("batches") / "x.parquet"
    texts = [chr(97 + n % 26) * n if n != 13 else None for n in lengths]
    columns = {
        "t": texts,
        "c": pa.array(texts).dictionary_encode(),
        "l": [[1.0] * (n % 7) for n in lengths],
        "w": [["ab"] * (n % 5) if n != 13 else None for n in lengths],
        "x": range(len(lengths)),
    }
    options = (
        {} if encoding is None else {"use_dictionary": ["l"], "column_encoding": {"t": encoding}}
    )
    pq.write_table(pa.table(columns), file, row_group_size=group, store_schema=stored, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "SLICE_BYTES", most)
        patch.setattr(parquet, "DECODED_BYTES", 2 * most)
        patch.setattr(parquet, "BATCH_ROWS", rows)
        table = ParquetTable(file)
        found = list(table.batches(["x", "t", "c", "l", "w"]))
    starts = np.cumsum([0] + [len(batch) for _, batch in found])
    assert [start for start, _ in found] == starts[:-1].tolist()
    whole = pa.Table.from_batches([batch for _, batch in found])
    assert whole.to_pydict() == pa.table({name: columns[name] for name in "xtclw"}).to_pydict()
    assert [table.kind(name) for name in "xtclw"] == whole.schema.types
    for _, batch in found:
        size = sum(int(cell_bytes(batch[name]).sum()) for name in "tclw")
        assert size <= most or len(batch) == 1


def test_rows_are_decoded_few_at_a_time_where_a_dictionary_has_long_texts(monkeypatch):
    monkeypatch.setattr(parquet, "DECODED_BYTES", 1000)
    read_at_once: list[int] = []
    measure = ParquetTable._parts

    def noted(self, start, batch):
        read_at_once.append(len(batch))
        return measure(self, start, batch)

    monkeypatch.setattr(ParquetTable, "_parts", noted)
    for options in (
        {},
        {"use_dictionary": False, "column_encoding": {"bio": "DELTA_BYTE_ARRAY"}},
    ):
        write({"bio": same("a" * 300, 10)}, **options)
        assert sum(len(batch) for _, batch in read("bio")) == 10
        assert read_at_once == [3, 3, 3, 1]
        read_at_once.clear()
    write({"v": [[1.0] * 50] * 10})
    assert sum(len(batch) for _, batch in read("v")) == 10
    assert read_at_once == [2] * 5


def test_cells_are_measured_as_they_are_decoded():
    texts = pa.array(["abc", None, "é", ""])
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary()):
        assert cell_bytes(texts.cast(kind)).tolist() == [3, 0, 2, 0]
    assert cell_bytes(texts.dictionary_encode()).tolist() == [3, 0, 2, 0]
    lists = pa.array([["abc", None], None, [], ["é"]])
    assert cell_bytes(lists).tolist() == [3, 0, 0, 2]
    assert cell_bytes(lists[1:]).tolist() == [0, 0, 2]
    assert cell_bytes(pa.array([[1, 2], None, []], pa.list_(pa.int16()))).tolist() == [4, 0, 0]
    assert cell_bytes(pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))).tolist() == [8, 0]
    assert cell_bytes(pa.array([True, None])).tolist() == [1, 1]
    assert cell_bytes(pa.nulls(2)).tolist() == [0, 0]


# ---------------------------------------------------------------------------- ids and the sample


@pytest.mark.parametrize("name", ["n.parquet", "n.csv"])
def test_ids_that_mostly_repeat_others_are_not_read_on(monkeypatch, name):
    monkeypatch.setattr(ids, "CHECKED_ROWS", 4)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 2)
    cells = ["a", "A", "b", "a", "A", "a", "A", "a", "zz", "a"]
    write({"id": cells, "x": [1] * 10})
    Path("n.csv").write_text("id,x\n" + "".join(f"{cell},1\n" for cell in cells))
    with refused() as caught:
        import_tables(
            ImportSpec(nodes=Path(name), edges=Path("e.csv"), out=Path("g"), tidy_ids=("case",))
        )
    first = str(caught.value).splitlines()[0]
    rows, last = (6, 8) if name == "n.parquet" else (7, 10)
    assert first.startswith(f"{name}: column 'id' repeats the id of an earlier row, in {rows} rows")
    assert first.endswith(f"read no further than row {last}; is this the column of ids? See --id")


def test_ids_of_which_half_are_different_are_all_read(monkeypatch):
    monkeypatch.setattr(ids, "CHECKED_ROWS", 2)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 1)
    write({"id": ["0", "1", "0", "2", "1", "3"], "x": range(6)})
    assert mistake_of().endswith("in 2 rows: '0' in row 3, '1' in row 5")


def test_fewer_rows_are_looked_at_where_cells_are_long(monkeypatch):
    monkeypatch.setattr(proposal, "SAMPLE_COLUMN", 3000)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 10)
    titles: list[str] = []
    write({"id": range(50), "bio": [f"the text of node {i} " + "x" * 80 for i in range(50)]})
    import_tables(
        ImportSpec(nodes=Path("n.parquet"), edges=Path("e.csv"), out=Path("g")),
        on_plan=lambda title, rows: titles.append(title),
    )
    assert titles == ["feature columns of n.parquet, by its first 40 rows"]


def test_columns_that_nothing_can_be_made_of_are_not_read(monkeypatch):
    monkeypatch.setattr(cell_limits, "CELL_BYTES", 1000)
    structs = pa.StructArray.from_arrays([same("a" * 2000, 4)], ["q"])
    lists = pa.ListArray.from_arrays(pa.array(range(5), pa.int32()), structs)
    long = {"s": structs, "l": lists, "b": same(b"a" * 2000, 4)}
    write({"id": range(4), "x": range(4), **long})
    plan: list[tuple[str, str, str]] = []
    import_tables(
        ImportSpec(nodes=Path("n.parquet"), edges=Path("e.csv"), out=Path("g")),
        on_plan=lambda title, rows: plan.extend(rows),
    )
    assert load_graph("g").names.features == ["x"]
    assert [row for row in plan if row[0] != "x"] == [
        ("s", "struct<q: string>, of which no feature can be made", "left out"),
        ("l", "lists of struct<q: string>, of which no feature can be made", "left out"),
        ("b", "binary, of which no feature can be made", "left out"),
    ]


def test_edges_with_long_ids_are_looked_up_in_parts_of_bounded_size(monkeypatch):
    monkeypatch.setattr(edges, "LOOKUP_BYTES", 1)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 2)
    one, other = "a" * 500, "b" * 500
    write({"id": [one, other], "x": [1, 2]})
    pq.write_table(pa.table({"source": [one, other] * 6, "target": [other] * 12}), "e.parquet")
    done: list[int] = []
    import_tables(
        ImportSpec(nodes=Path("n.parquet"), edges=Path("e.parquet"), out=Path("g")),
        on_rows=lambda name, rows: done.append(rows) if name == "e.parquet" else None,
    )
    # Four times the ids, of 1 kB and their offsets, is more than two batches of 2 kB.
    assert done == [6, 12]
    assert load_graph("g").num_edges == 3
