"""Every mistake in a table is told with its file, its column and its rows."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.messages import refused
from vrgcn.data.tables import ImportSpec, delimited, import_tables

pytestmark = pytest.mark.usefixtures("told_as_flags")

NODES = "id,x,label,split\na,1,u,train\nb,2,v,val\nc,3,u,test\n"
EDGES = "source,target\na,b\nb,c\n"
TWO = "source,target\na,b\n"
UNKNOWN = (
    "; leave such edges out with --unknown-nodes skip, or make nodes of them with "
    "--unknown-nodes add"
)


@pytest.fixture
def error(tmp_path, monkeypatch):
    """The message that two files end with; nothing may be left behind."""
    monkeypatch.chdir(tmp_path)

    def run(nodes=NODES, edges=EDGES, **options) -> str:
        options = {
            "nodes": Path(options.pop("nodes_name", "nodes.csv")),
            "edges": Path("edges.csv"),
        } | options
        for kind, content in (("nodes", nodes), ("edges", edges)):
            if content is None:
                options[kind] = None
            elif isinstance(content, pa.Table):
                pq.write_table(content, f"{kind}.parquet")
                options[kind] = Path(f"{kind}.parquet")
            else:
                data = content.encode() if isinstance(content, str) else content
                options[kind].write_bytes(data)
        before = sorted(tmp_path.iterdir())
        with pytest.raises((ValueError, OSError)) as caught:
            import_tables(ImportSpec(out=Path("graph"), **options))
        assert sorted(tmp_path.iterdir()) == before
        return str(caught.value)

    return run


# --------------------------------------------------------------------------------------- rows


def test_an_unknown_node_in_an_edge(error):
    edges = "source,target\na,b\nz,b\na,y\nz,z\n"
    assert error(edges=edges).splitlines() == [
        "edges.csv: column 'source' names a node that nodes.csv does not have, in 2 rows: "
        f"'z' in row 2 (line 3), 'z' in row 4 (line 5){UNKNOWN}",
        "edges.csv: column 'target' names a node that nodes.csv does not have, in 2 rows: "
        f"'y' in row 3 (line 4), 'z' in row 4 (line 5){UNKNOWN}",
    ]


def test_many_problems_are_counted_and_the_first_few_shown(error):
    edges = "source,target\n" + "a,zzz\n" * 5000
    assert error(edges=edges) == (
        "edges.csv: column 'target' names a node that nodes.csv does not have, in 5,000 rows: "
        f"'zzz' in row 1 (line 2), 'zzz' in row 2 (line 3), 'zzz' in row 3 (line 4), ...{UNKNOWN}"
    )


def test_an_empty_end_of_an_edge(error):
    message = (
        "edges.csv: column 'target' is empty, in 1 row: row 2 (line 3); leave such edges out with "
        "--unknown-nodes skip"
    )
    assert error(edges="source,target\na,b\na,\n") == message
    assert error(nodes=None, edges="source,target\na,b\na,\n") == message


def test_a_duplicate_node_id(error):
    assert error("id,x\na,1\nb,2\na,3\na,4\nb,5\n", TWO) == (
        "nodes.csv: column 'id' repeats the id of an earlier row, in 3 rows: "
        "'a' in row 3 (line 4), 'a' in row 4 (line 5), 'b' in row 5 (line 6)"
    )


def test_an_empty_node_id(error):
    assert error("id,x\na,1\n,2\n,3\nb,4\n", TWO) == (
        "nodes.csv: column 'id' is empty, in 2 rows: row 2 (line 3), row 3 (line 4); "
        "every node needs an id"
    )


def text_advice(column: str) -> str:
    return (
        f"count them as missing with --column {column}=number:lenient, take all as categories with "
        f"--column {column}=category, or leave the column out with --drop '{column}'"
    )


def test_text_in_a_numeric_column(error):
    rows = "".join(f"n{i},{i},1\n" for i in range(6))
    assert error(f"id,age,x\na,1,1\nb,old,1\n\nc,2,1\nd,'3,1\n{rows}") == (
        "nodes.csv: column 'age' holds text where numbers should be, in 2 rows: "
        f"'old' in row 2 (line 3), \"'3\" in row 4 (line 6); {text_advice('age')}"
    )


def test_a_first_line_that_looks_like_a_row_is_doubted(error):
    doubt = "if the first line is not a header, say --headerless"
    assert error("z,1,u\na,2,7\nb,3,v\nc,2,9\nd,1,1\ne,2,2\n") == (
        "nodes.csv: column 'u' holds text where numbers should be, in 1 row: 'v' in row 2 "
        f"(line 3); {text_advice('u')}; {doubt}-nodes"
    )
    assert error("z,1,u\na,2,v\n", label=("topic",)).endswith(f"{doubt}-nodes")
    assert error("1,2\n3,4\n").endswith("add a header, or say --headerless-nodes")
    assert error(edges="a,b,1\nb,c,2\n").endswith(doubt)
    assert error(edges="1,2\n").endswith("add a header, or say --headerless")


def test_rows_are_counted_from_the_first_line_after_comments(error):
    edges = "# by hand\n\n# twice\nsource,target\na,b\na,z\n"
    assert error(edges=edges).endswith(f"in 1 row: 'z' in row 2 (line 6){UNKNOWN}")
    assert error(edges="# by hand\n") == "edges.csv is empty"


def test_missing_and_infinite_features_where_they_are_not_to_be_filled(error):
    strict = {"fill": ("error",)}
    lines = error("id,x,y\na,1,1\nb,,inf\nc,NaN,1e99\n", **strict).splitlines()
    assert lines == [
        "nodes.csv: column 'x' is missing or NaN, in 2 rows: row 2 (line 3), row 3 (line 4); "
        "give --fill x=mean+mark, or leave the column out with --drop 'x'",
        "nodes.csv: column 'y' is infinite, or too large for 32 bits, in 2 rows: "
        "'inf' in row 2 (line 3), '1e99' in row 3 (line 4); "
        "give --fill y=mean+mark, or leave the column out with --drop 'y'",
    ]


def test_the_same_problem_in_many_columns_is_cut_short(error):
    names = [f"x{i}" for i in range(30)]
    rows = "".join(f"{node}{',1' * 30}\n" for node in "abcd")
    lines = error("id," + ",".join(names) + f"\n{rows}e" + ",?" * 30 + "\n").splitlines()
    assert len(lines) == 9
    assert lines[-1] == "nodes.csv: the same in 22 more columns"


def test_a_list_of_another_length(error):
    table = pa.table({"id": list("abc"), "emb": [[1.0, 2.0], [3.0], [4.0, 5.0]]})
    assert error(table) == (
        "nodes.parquet: column 'emb' holds a list of another length than 2, in 1 row: 1 in row 2; "
        "as categories: --column emb=categories; or leave the column out with --drop 'emb'"
    )


def test_a_missing_list_that_is_not_to_be_filled(error):
    table = pa.table({"id": list("abc"), "emb": [[1.0, 2.0], None, [4.0, None]]})
    assert error(table, fill=("emb=error",)).startswith(
        "nodes.parquet: column 'emb' is missing or NaN, in 2 rows: row 2, row 3; give --fill"
    )


def test_an_unknown_split_value(error):
    assert error("id,x,label,split\na,1,u,train\nb,2,v,tset\n", TWO) == (
        "nodes.csv: column 'split' is none of train, val and test, in 1 row: "
        "'tset' in row 2 (line 3)"
    )


def test_label_columns_that_are_neither_0_nor_1_or_half_empty(error):
    lines = error("id,x,p,q\na,1,0,2\nb,2,yes,1\nc,3,,1\n", label=("p", "q")).splitlines()
    assert lines == [
        "nodes.csv: column 'p' is a label that is neither 0 nor 1, in 1 row: "
        "'yes' in row 2 (line 3)",
        "nodes.csv: column 'q' is a label that is neither 0 nor 1, in 1 row: '2' in row 1 (line 2)",
        "nodes.csv: column 'p' is empty where other label columns are not, in 1 row: "
        "row 3 (line 4); empty all of them, or none",
    ]


def test_bad_weights(error):
    edges = "source,target,weight\na,b,1\nb,c,heavy\nc,a,\na,c,inf\n"
    assert error(edges=edges).splitlines() == [
        "edges.csv: column 'weight' holds text where numbers should be, in 1 row: "
        "'heavy' in row 2 (line 3)",
        "edges.csv: column 'weight' is missing or NaN, in 1 row: row 3 (line 4)",
        "edges.csv: column 'weight' is infinite, or too large for 32 bits, in 1 row: "
        "'inf' in row 4 (line 5)",
    ]


def test_weights_that_would_become_0(error):
    edges = (
        "source,target,weight\na,b,1\nb,c,1e-46\nc,a,-2e-39\na,c,1.5E-400\nb,a,1e-37\nc,b,0.0e7\n"
    )
    assert error(edges=edges) == (
        "edges.csv: column 'weight' is too close to 0 for 32 bits, in 3 rows: "
        "'1e-46' in row 2 (line 3), '-2e-39' in row 3 (line 4), '1.5E-400' in row 4 (line 5); "
        "multiply all weights by one number, or write 0"
    )


def test_weights_that_sum_to_more_than_a_float_holds(error):
    edges = "source,target,weight\na,b,3e38\na,b,3e38\n"
    assert "edges.csv" in error(edges=edges)


# -------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id": "ID"}, "nodes.csv has no column 'ID' (--id); it has 'id', 'x', 'label', 'split'"),
        ({"label": ("lable",)}, "has no column 'lable' (--label); did you mean 'label'? It has"),
        (
            {"label": ("x", "label", "c")},
            "nodes.csv has no column 'c' (--label); it has 'id', 'x', 'label', 'split'",
        ),
        ({"features": ("x", "f_*")}, "nodes.csv has no column 'f_*' (--features); it has"),
        ({"split": "fold"}, "nodes.csv has no column 'fold' (--split)"),
        ({"source": "src"}, "edges.csv has no column 'src' (--source)"),
        ({"weight": "w"}, "edges.csv has no column 'w' (--weight); it has 'source', 'target'"),
        ({"features": ("id",)}, "column 'id' cannot be two of id, feature, label and split"),
        (
            {"drop": ("lable",)},
            "--drop: there is no column 'lable'; did you mean 'label'? edges.csv has 'source', "
            "'target'; nodes.csv has 'id', 'x', 'label', 'split'",
        ),
        ({"drop": ("f_*",)}, "--drop: there is no column 'f_*'; edges.csv has"),
        ({"nodes": None, "drop": ("sorce",)}, "(--drop); did you mean 'source'? It has"),
        ({"drop": ("*",)}, "edges.csv: --drop leaves no column"),
        ({"drop": ("label",)}, "has the split column 'split' and no label column"),
        ({"drop": ("label", "split"), "ratio": (0.5, 0.2, 0.3)}, "--ratio: nodes.csv has no label"),
        ({"label": ("x", "label"), "label_delimiter": "|"}, "has 2 label columns; give one"),
    ],
)
def test_columns_that_are_not_there(error, options, message):
    assert message in error(**options)


@pytest.mark.parametrize("flag", ["label", "features"])
def test_a_column_that_is_dropped_and_asked_for(error, flag):
    assert error(**{flag: ("x",)}, drop=("x",)) == f"--drop and --{flag} both name 'x'"
    assert error(**{flag: ("x*",)}, drop=("x",)) == (
        f"nodes.csv: --drop leaves none of the columns of --{flag}"
    )


@pytest.mark.parametrize("flag", ["id", "split", "source", "target", "weight"])
def test_a_column_that_a_flag_of_its_own_names_is_not_dropped_too(error, flag):
    edges = "source,target,mine\na,b,1\n"
    text = error("id,mine\na,1\nb,2\n", edges, **{flag: "mine"}, drop=("mine",))
    assert f"--drop and --{flag} both name 'mine'" in text.splitlines()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": ("label=number",)}, "--column is about features, and of 'label' none is made"),
        ({"fill": ("i*=0",)}, "--fill is about features, and of 'id' none is made"),
        (
            {"features": ("x",), "column": ("y=category",)},
            "--column is about features, and of 'y' none is made",
        ),
        (
            {"drop": ("label",), "label_delimiter": "|"},
            "--label-delimiter: nodes.csv has no column",
        ),
        (
            {"drop": ("label",), "missing": ("?",)},
            "--missing: is about labels and splits, and nodes.csv has no column of either",
        ),
        ({"text_seed": 3}, "--text-seed 3: nodes.csv has no column that is read as text"),
    ],
)
def test_flags_that_would_do_nothing(error, options, message):
    assert message in error("id,x,y,label\na,1,2,p\nb,2,3,q\n", **options)


@pytest.mark.parametrize(
    ("column", "cells", "options", "becomes"),
    [
        ("city", ["rome", "", "oslo", "rome"], {}, "holds categories: its empty cells become"),
        ("city", ["rome", "", "oslo", "rome"], {"fill": ("c*=0",)}, "holds categories"),
        ("city", ["rome", "", "oslo", "rome"], {"fill": ("city=error",)}, "holds categories"),
        ("tags", ["p|q", "q", "", "p|q"], {}, "holds lists of categories"),
        ("note", ["a", "b", "", "d"], {"column": ("note=text",)}, "holds texts"),
        ("age", ["1", "2", "", "3"], {"column": ("age=drop",)}, "is left out"),
    ],
)
def test_a_fill_of_a_column_that_no_number_fills(error, column, cells, options, becomes):
    options = {"fill": (f"{column}=mean",)} | options
    rows = "".join(f"{node},{cell},1\n" for node, cell in zip("abcd", cells, strict=True))
    message = error(f"id,{column},x\n{rows}", TWO, **options)
    assert message.startswith(
        f"nodes.csv: column '{column}': --fill is for numbers, true and false, lists of numbers "
        f"and dates, and this column {becomes}"
    )
    assert message.endswith(f"if the column holds numbers, give --column {column}=number")


def test_a_parquet_file_is_never_headerless(error):
    nodes, edges = pa.table({"id": ["a", "b"], "x": [1, 2]}), pa.table({"s": ["a"], "t": ["b"]})
    assert error(nodes, edges, headerless=True) == (
        "--headerless: edges.parquet is a Parquet file, which names its columns; leave it out"
    )
    assert "--headerless-nodes: nodes.parquet is" in error(nodes, edges, headerless_nodes=True)


def test_a_delimiter_of_classes_that_are_lists(error):
    nodes = pa.table({"id": ["a", "b"], "x": [1, 2], "label": [["u"], ["v", "u"]]})
    assert error(nodes, TWO, label_delimiter="|") == (
        "--label-delimiter: column 'label' of nodes.parquet holds lists, whose classes need no "
        "delimiter; leave it out"
    )


def test_two_columns_of_the_same_name(error):
    assert error("id,x,x\na,1,2\n") == (
        "nodes.csv has more than one column called 'x'; rename them"
    )
    twice = pa.table([["a", "b"], [1, 2], [3, 4]], names=["id", "x", "x "])
    assert error(twice) == "nodes.parquet has more than one column called 'x'; rename them"


def test_an_edge_file_of_one_column(error):
    assert "edges.csv has no column for the target of an edge; it has 'source target'" in error(
        edges="source target\na b\n"
    )


def test_ends_of_edges_are_not_guessed_among_many_columns(error):
    assert error(edges="key,of,by,weight\n1,a,b,2\n") == (
        "edges.csv: which of 'key', 'of', 'by' is the source and the target of an edge? "
        "Give --source COLUMN and --target COLUMN, such as --source key --target of"
    )
    assert error(edges="key,from,to\n1,a,b\n", source="from") == (
        "edges.csv: which of 'key', 'to' is the target of an edge? Give --target COLUMN, such as "
        "--target key"
    )


def test_an_id_column_of_a_type_that_is_no_id(error):
    table = pa.table({"id": [[1], [2]], "x": [1, 2]})
    assert "column 'id' holds list<element: int64>; it must be text or number" in error(table)


# ---------------------------------------------------------------------------------------- files


def test_empty_files(error):
    assert error("") == "nodes.csv is empty"
    assert error("\n\n") == "nodes.csv is empty"
    assert error("id,x\n") == "nodes.csv has a header and no rows under it"
    assert error("id,x") == "nodes.csv has a header and no rows under it"
    assert error(edges="") == "edges.csv is empty"
    assert error(edges="source,target\n") == "edges.csv has a header and no rows under it"
    assert error(pa.table({"id": pa.array([], pa.int64())})) == "nodes.parquet has no rows"


def test_a_table_without_columns(error):
    assert error(pa.table({})) == "nodes.parquet has no columns"


def test_files_that_are_not_there_or_of_no_known_kind(error):
    assert error(nodes=None, edges=EDGES, features_file=Path("x.npy")) == (
        "--features-file: there is no file x.npy"
    )
    Path("edges.csv").unlink()
    with refused(FileNotFoundError):
        import_tables(ImportSpec(edges=Path("edges.csv"), out=Path("graph")))


def test_an_unknown_ending(error, tmp_path):
    (tmp_path / "edges.xls").write_text(EDGES)
    with refused():
        import_tables(ImportSpec(edges=Path("edges.xls"), out=Path("graph")))


@pytest.mark.parametrize(("given", "shown"), [(";", ";"), ("\t", "tab"), ("|", "|")])
def test_a_wrong_delimiter(error, given, shown):
    message = error(NODES.replace(",", given), delimiter=",")
    assert message.startswith("nodes.csv: its first line is one column, 'id")
    advice = f"is the delimiter wrong? Give --delimiter '{shown}'"
    assert message.endswith(f"{advice}, or leave --delimiter out")
    # Across lines, the header is not looked at to the end.
    assert error(NODES.replace(",", given).replace("id", '"i\nd"', 1)).endswith(advice)


def test_a_first_line_that_two_delimiters_divide(error):
    assert error(NODES.replace(",", ";", 1), nodes_name="nodes.txt") == (
        "nodes.txt: what divides the cells of its first line, ',' or ';'? Give --delimiter"
    )


def test_rows_of_another_number_of_cells(error):
    nodes = "id,x\na,1\nb\n\nc,3\nd,4,5\ne,5\nf\ng\n"
    assert error(nodes) == (
        "nodes.csv: 4 rows do not have 2 cells as the first line does: row 2 (line 3) has 1, "
        "row 4 (line 6) has 3, row 6 (line 8) has 1, ...; is ',' the delimiter?"
    )


def test_text_in_another_encoding(error):
    nodes = "id,x\na,1\nb,2\nGrün,3\nd,4\n".encode("latin1")
    assert error(nodes) == (
        "nodes.csv: column 'id' is not UTF-8 text, first in row 3 (line 4); "
        "convert the file, as with iconv -f latin1 -t utf8"
    )
    assert error("id,größe\na,1\n".encode("latin1")) == (
        "nodes.csv: its first line is not UTF-8 text"
    )


def test_rows_whose_line_cannot_be_told_are_told_by_their_number(error, monkeypatch):
    """Far down in a file, or under a cell that is too long for Python's reader of CSV."""
    nodes = f"id,x,t\na,1,u\nb,2,{'v' * 200_000}\nc,,u\n"
    told = "nodes.csv: column 'x' is missing or NaN, in 1 row: row 3"
    assert error(nodes, fill=("error",)).startswith(f"{told}; give")
    monkeypatch.setattr(delimited, "LINES", 2)
    assert error("id,x\na,1\nb,2\nc,\n", fill=("error",)).startswith(f"{told}; give")


def test_a_quote_that_is_never_closed(error, monkeypatch):
    nodes = 'id,x\na,1\n"b,2\n' + "".join(f"n{i},1\n" for i in range(200))
    assert error(nodes) == (
        "nodes.csv: 1 row does not have 2 cells as the first line does: row 2 (line 3) has 1; "
        "is a quote never closed?"
    )
    for size in ("BLOCK", "WIDE_BLOCK"):
        monkeypatch.setattr(f"vrgcn.data.tables.delimited.{size}", 300)
    assert "is a quote never closed?" in error(nodes)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_quote_that_is_never_closed_in_the_last_column(error, zipped, newline):
    nodes = 'id,x,note\na,1,ok\nb,2,"5 inch\nc,3,ok\n\n'.replace("\n", newline).encode()
    name = "nodes.csv.gz" if zipped else "nodes.csv"
    for drop in ((), ("note",)):  # also where nobody reads the column
        assert (
            f"{name}: a quote in column 'note' is never closed, in row 2 (line 3); all that "
            "follows would be one cell"
        ) in error(gzip.compress(nodes) if zipped else nodes, TWO, nodes_name=name, drop=drop)


def test_a_quote_that_is_never_closed_among_the_edges(error):
    edges = "".join(f"{i},{i + 1}\n" for i in range(1, 10)).replace("4,5", '4,"5')
    assert error(None, "source,target\n" + edges) == (
        "edges.csv: a quote in column 'target' is never closed, in row 4 (line 5); all that "
        "follows would be one cell"
    )


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_a_truncated_gzip_file(error, tmp_path, keep):
    random = np.random.default_rng(0)
    text = "id,x\n" + "".join(f"{i},{x}\n" for i, x in enumerate(random.random(3000)))
    data = gzip.compress(text.encode())
    (tmp_path / "n.csv.gz").write_bytes(data[: int(len(data) * keep)])
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    with refused():
        import_tables(
            ImportSpec(nodes=Path("n.csv.gz"), edges=Path("edges.csv"), out=Path("graph"))
        )


def test_a_file_that_is_not_what_its_name_says(error, tmp_path):
    (tmp_path / "n.parquet").write_text(NODES)
    (tmp_path / "n.csv.gz").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    for name in ("n.parquet", "n.csv.gz"):
        with refused():
            import_tables(ImportSpec(nodes=Path(name), edges=Path("edges.csv"), out=Path("graph")))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), "x.npy must be (nodes, width), not (3,)"),
        (np.zeros((3, 0)), "x.npy must be (nodes, width), not (3, 0)"),
        (np.array([["a"]] * 3), "x.npy holds <U1, not numbers"),
        (np.zeros((4, 2)), "x.npy has 4 rows for 3 nodes"),
        (np.array([[1.0, 2], [3, np.nan], [1e99, 1]]), "first: row 1, column 1"),
    ],
)
def test_a_features_file_that_does_not_fit(error, tmp_path, array, message):
    np.save(tmp_path / "x.npy", array)
    assert message in error(features_file=Path("x.npy"))


def test_a_features_file_that_is_no_array(error, tmp_path):
    (tmp_path / "x.npy").write_text("text")
    assert "x.npy is not an array of numbers" in error(features_file=Path("x.npy"))


# ---------------------------------------------------------------------------------------- flags


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ratio": (0.6, 0.3, 0.2)}, "--ratio: the shares sum to 1.1, more than 1"),
        ({"ratio": (0.6, 0.4)}, "--ratio takes three numbers: train, val, test; not 0.6 0.4"),
        ({"ratio": ()}, "--ratio takes three numbers: train, val, test; not nothing"),
        ({"ratio": (0.0, 0.5, 0.5)}, "--ratio: must be three shares"),
        ({"ratio": (-0.1, 0.5, 0.5)}, "--ratio: must be three shares"),
        ({"ratio": (0.5, 0.2, 0.2), "split": "split"}, "--split and --ratio: give one of them"),
        ({"features": ("x",), "features_file": Path("x")}, "--features and --features-file"),
        ({"delimiter": ";;"}, "--delimiter: must be one character"),
        (
            {"column": ("x=text",), "features_file": Path("x.npy")},
            "--column and --features-file: give one of them",
        ),
        ({"nodes": None, "fill": ("0",)}, "--fill: needs a file of nodes"),
        ({"delimiter": "§"}, "--delimiter: '§' is not in ASCII"),
        ({"label_delimiter": ""}, "--label-delimiter: must not be empty"),
        ({"fill": ("nan",)}, "--fill: must be mean, median, a finite number, each also with +mark"),
        ({"fill": ("age=modus",)}, "--fill: must be mean, median, a finite number"),
        ({"fill": ("mean",), "features_file": Path("x")}, "--fill: with --features-file it must"),
        ({"column": ("age",)}, "--column: must be COLUMN=KIND, such as age=number; not 'age'"),
        ({"column": ("age=int",)}, "--column: 'age=int': 'int' is none of number, boolean,"),
        ({"column": ("a=text:many",)}, "--column: 'a=text:many': after text: comes how many feat"),
        ({"column": ("a=drop:1",)}, "--column: 'a=drop:1': nothing may follow drop"),
        ({"max_categories": 0}, "--max-categories: must be at least 1, not 0"),
        ({"decimal": ";"}, "--decimal: must be , or . and not ';'"),
        ({"nodes": None, "unknown_nodes": "add"}, "--unknown-nodes: needs a file of nodes"),
        (
            {"like": Path("g"), "features": ("x",)},
            "--features and --like: give one of them; --like decides it",
        ),
        ({"nodes": None, "label": ("y",)}, "--label: needs a file of nodes; give --nodes FILE"),
        ({"nodes": None, "headerless_nodes": True}, "--headerless-nodes: needs a file of nodes"),
        ({"nodes": None, "missing": ("?",)}, "--missing: needs a file of nodes"),
        ({"nodes": None, "max_categories": 9}, "--max-categories: needs a file of nodes"),
        ({"nodes": None, "text_seed": 1}, "--text-seed: needs a file of nodes"),
        ({"features_file": Path("x"), "text_seed": 1}, "--text-seed and --features-file"),
        ({"features_file": Path("x"), "max_categories": 9}, "--max-categories and --features-file"),
        (
            {"split_seed": 3},
            "--split-seed 3: is the seed of --ratio, and without --ratio no split is drawn; give "
            "--ratio 0.6 0.2 0.2 too, or leave --split-seed out",
        ),
        ({"split": "split", "split_seed": 3}, "--split-seed 3: is the seed of --ratio"),
        ({"ratio": (0.5, 0.2, 0.3), "split_seed": -1}, "--split-seed: must be at least 0, not -1"),
        ({"text_seed": -1}, "--text-seed: must be at least 0, not -1"),
    ],
)
def test_options_that_make_no_sense(options, message):
    options = {"nodes": Path("n.csv"), "edges": Path("e.csv"), "out": Path("g")} | options
    with refused() as caught:
        ImportSpec(**options)
    assert message in str(caught.value)


def test_an_existing_folder_is_not_touched(error, tmp_path):
    (tmp_path / "graph").mkdir()
    assert error() == "graph exists already; remove it or save under another name"


@pytest.mark.parametrize("start", [b"", b"#", b"a,b\n1,"])
def test_a_small_file_that_stands_for_one_endless_line_is_refused(
    start: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "edges.csv.gz"
    with gzip.open(file, "wb", compresslevel=1) as out:
        out.write(start)
        for _ in range(80):
            out.write(b"x" * (1 << 20))
    tracemalloc.start()
    spec = ImportSpec(edges=file, out=tmp_path / "g")
    with refused():
        import_tables(spec)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 75 << 20  # the line alone has 80 MiB


def test_blank_lines_without_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "COMMENTS", 1000)
    with gzip.open(tmp_path / "edges.csv.gz", "wb") as out:
        out.write(b"\n" * 5000 + b"a,b\n1,2\n")
    with refused():
        import_tables(ImportSpec(edges=tmp_path / "edges.csv.gz", out=tmp_path / "g"))


@pytest.mark.parametrize("place", range(0, 60, 3))
def test_damaged_gzip_is_refused_by_its_name(place: int, tmp_path: Path) -> None:
    whole = gzip.compress(b"source,target\n" + b"".join(b"%d,%d\n" % (i, i + 1) for i in range(99)))
    place = 12 + place % (len(whole) - 12)  # not its name and time, which mean nothing
    (tmp_path / "edges.csv.gz").write_bytes(
        whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]
    )
    with refused():
        import_tables(ImportSpec(edges=tmp_path / "edges.csv.gz", out=tmp_path / "g"))
