"""Tables to graphs: what is in the files is in the graph, whatever the files look like."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages import refused
from vrgcn.data.store import load_graph
from vrgcn.data.tables import ImportSpec, adjacency, edges, import_tables
from vrgcn.data.tables.delimited import DelimitedTable
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.graph.graph import Graph

NODES = "id,age,height,label,split\nada,36,1.6,math,train\nbob,7,1.2,art,val\ncy,90,1.8,art,test\n"
EDGES = "source,target\nada,bob\ncy,ada\n"


def imported(folder: Path, nodes: str | bytes | None, edge_text: str | bytes, **options):
    """The graph and the summary of two files, CSV by default."""
    files = {"edges": ("edges.csv", edge_text), "nodes": ("nodes.csv", nodes)}
    for kind, (name, text) in files.items():
        if text is not None:
            path = folder / options.pop(f"{kind}_name", name)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
            options[kind] = path
    summary = import_tables(ImportSpec(out=folder / "graph", **options))
    return load_graph(folder / "graph"), summary


def edge_set(graph: Graph) -> set[tuple[str, str]]:
    """The edges by their ids, source and target."""
    ids = [str(i) for i in graph.names.nodes.to_pylist()]
    return {(ids[s], ids[t]) for s, t in graph.edge_index().T.tolist()}


def assert_same_graph(graph: Graph, other: Graph) -> None:
    assert graph.weighted == other.weighted
    for name in ("indptr", "indices"):
        assert torch.equal(getattr(graph.adjacency, name), getattr(other.adjacency, name)), name
    assert torch.equal(graph.adjacency.weights(), other.adjacency.weights())


# ------------------------------------------------------------------------------- round trips


def test_two_small_files_become_the_graph_they_describe(tmp_path):
    graph, summary = imported(tmp_path, NODES, EDGES)
    assert graph.names.nodes.to_pylist() == ["ada", "bob", "cy"]
    assert graph.names.classes == ["art", "math"]
    assert graph.names.features == ["age", "height"]
    assert torch.equal(graph.features, torch.tensor([[36, 1.6], [7, 1.2], [90, 1.8]]))
    assert graph.labels.tolist() == [1, 0, 0]
    assert [graph.split(name).tolist() for name in ("train", "val", "test")] == [[0], [1], [2]]
    assert edge_set(graph) == {("ada", "bob"), ("bob", "ada"), ("cy", "ada"), ("ada", "cy")}
    assert (summary.nodes, summary.rows, summary.entries) == (3, 2, 4)


# Ids that hold whatever a text may hold, but not nothing.
any_id = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
# A label of spaces alone is unknown.
any_label = any_id.filter(lambda text: not text.isspace())
number_like = st.sampled_from(["7", "007", "-1", "+1", "1.0", "0", "-0", "0x1F", "1e3", " 7"])
ids_lists = st.one_of(
    st.lists(any_id | number_like, min_size=1, max_size=8, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1).map(str), min_size=1, max_size=8, unique=True),
)


@st.composite
def tables(draw: st.DrawFn):
    ids = draw(ids_lists)
    place = st.integers(0, len(ids) - 1)
    floats = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)
    return {
        "ids": ids,
        "features": draw(st.lists(st.tuples(floats, floats), min_size=len(ids), max_size=len(ids))),
        "labels": draw(st.lists(st.none() | any_label, min_size=len(ids), max_size=len(ids))),
        "edges": draw(st.lists(st.tuples(place, place), min_size=1, max_size=20)),
        "order": draw(st.permutations(range(4))),
        "newline": draw(st.sampled_from(["\n", "\r\n"])),
        "quoting": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        "delimiter": draw(st.sampled_from([",", "\t", ";"])),
        "kind": draw(st.sampled_from(["csv", "csv.gz", "parquet"])),
        "directed": draw(st.booleans()),
    }


def write(path: Path, columns: dict[str, list], table: dict) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
        return
    text = io.StringIO(newline="")
    # Python's writer leaves a lone \r unquoted, though every reader takes it for a line's end.
    lone = any("\r" in str(cell) for column in columns.values() for cell in column)
    writer = csv.writer(
        text,
        delimiter=table["delimiter"],
        lineterminator=table["newline"],
        quoting=csv.QUOTE_ALL if lone else table["quoting"],
    )
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@settings(max_examples=80, deadline=None)
@given(tables())
def test_any_table_comes_back_under_its_own_names(table):
    ids = table["ids"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns = {
            "id": ids,
            "x, 1": [row[0] for row in table["features"]],
            'y "2"': [row[1] for row in table["features"]],
            "label": table["labels"],
        }
        columns = {list(columns)[i]: list(columns.values())[i] for i in table["order"]}
        nodes, edge_file = folder / f"n.{table['kind']}", folder / f"e.{table['kind']}"
        write(nodes, columns, table)
        ends = {
            "source": [ids[s] for s, _ in table["edges"]],
            "target": [ids[t] for _, t in table["edges"]],
        }
        write(edge_file, ends, table)
        import_tables(
            ImportSpec(
                nodes=nodes,
                edges=edge_file,
                out=folder / "g",
                delimiter=table["delimiter"],
                directed=table["directed"],
            )
        )
        graph = load_graph(folder / "g")
        got = [str(i) for i in graph.names.nodes.to_pylist()]
        assert got == ids
        order = [table["order"].index(i) for i in (1, 2)]
        features = torch.tensor(table["features"])
        assert torch.equal(graph.features, features if order[0] < order[1] else features.flip(1))
        names = [None if k < 0 else graph.names.classes[k] for k in graph.labels.tolist()]
        assert names == table["labels"]
        expected = Graph(torch.tensor(table["edges"]).T, features, undirected=not table["directed"])
        assert_same_graph(graph, expected)
        del graph


def even_edges(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return random.integers(0, 40, (2, 700)), random.random(700)


def edges_into_few_rows(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """More entries in a row than in a part, so that they are merged while they are read."""
    ends = np.stack([random.integers(0, 60, 900), np.where(random.random(900) < 0.9, 5, 6)])
    return ends, random.integers(1, 9, 900).astype(np.float64)  # sums without rounding


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("made", "entries"), [(even_edges, 50), (edges_into_few_rows, 20)])
def test_the_adjacency_is_that_of_graph_also_when_sorted_in_parts(
    tmp_path, monkeypatch, directed, weighted, made, entries
):
    monkeypatch.setattr(adjacency, "RANGE_ENTRIES", entries)
    monkeypatch.setattr(adjacency, "MOST_RANGES", 1000)
    monkeypatch.setattr(adjacency, "_CHUNK", 7)
    monkeypatch.setattr(edges, "LOOKUP_ROWS", 100)
    ends, weight = made(np.random.default_rng(0))
    table = {"source": ends[0], "target": ends[1]} | ({"weight": weight} if weighted else {})
    pq.write_table(pa.table(table), tmp_path / "e.parquet", row_group_size=90)
    summary = import_tables(
        ImportSpec(edges=tmp_path / "e.parquet", out=tmp_path / "g", directed=directed)
    )
    graph = load_graph(tmp_path / "g")
    expected = Graph(
        ends,
        torch.ones(graph.num_nodes, 1),
        undirected=not directed,
        edge_weight=torch.from_numpy(weight) if weighted else None,
    )
    assert torch.equal(graph.adjacency.indptr, expected.adjacency.indptr)
    assert torch.equal(graph.adjacency.indices, expected.adjacency.indices)
    assert graph.weighted == weighted
    weights = (each.adjacency.weights() for each in (graph, expected))
    assert torch.allclose(*weights, rtol=1e-6)
    pairs = {(s, t) for s, t in ends.T.tolist()}
    assert summary.duplicates == len(weight) - len(pairs)
    both = sum((t, s) in pairs for s, t in pairs if s != t) // 2
    assert summary.reciprocal == (0 if directed else both)
    assert summary.self_loops == (ends[0] == ends[1]).sum()
    assert sorted(p.name for p in (tmp_path / "g").iterdir()) == sorted(
        ["features_0.npy", "ids_0.arrow", "import.json", "import.safetensors", "indices_0.npy"]
        + ["indptr_0.npy", "meta.json", "test.npy", "train.npy", "val.npy"]
        + (["weights_0.npy"] if weighted else [])
        + (["reverse_indices_0.npy", "reverse_indptr_0.npy"] if directed else [])
        + (["reverse_weights_0.npy"] if directed and weighted else [])
    )
    if directed:
        reverse = graph.adjacency.transposed.to_torch(torch.float32).to_dense()
        assert torch.equal(reverse, graph.adjacency.to_torch(torch.float32).to_dense().T)


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_that_all_repeat_one_take_the_memory_of_a_part(tmp_path, monkeypatch, weighted):
    monkeypatch.setattr(adjacency, "RANGE_ENTRIES", 1 << 14)
    monkeypatch.setattr(adjacency, "_CHUNK", 1 << 14)
    weight = np.ones(1 << 16) if weighted else None
    pairs = adjacency.EdgeFile("e.csv", tmp_path, 3, weighted)
    for _ in range(32):
        pairs.append(np.full(1 << 16, 1), np.full(1 << 16, 2), weight)
    tracemalloc.start()
    found = adjacency.write_adjacency(pairs, directed=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.entries == 2
    assert found.duplicates == (32 << 16) - 1
    assert peak < 8 << 20  # the entries are 32 MB, with weights 64 MB
    if weighted:
        assert np.load(tmp_path / "weights_0.npy").tolist() == [32 << 16, 32 << 16]


# ---------------------------------------------------------------------------------- the files


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("nodes.csv", lambda text: text.encode()),
        ("nodes.tsv", lambda text: text.replace(",", "\t").encode()),
        ("nodes.csv.gz", lambda text: gzip.compress(text.encode())),
        ("nodes.tsv.gz", lambda text: gzip.compress(text.replace(",", "\t").encode())),
        ("NODES.CSV", lambda text: text.encode("utf-8-sig")),
        ("nodes.csv", lambda text: text.replace("\n", "\r\n").encode()),
        ("nodes.csv", lambda text: text.replace("\n", "\n\n").rstrip("\n").encode()),
    ],
)
def test_each_kind_of_text_file_gives_the_same_graph(tmp_path, name, change):
    graph, _ = imported(tmp_path, change(NODES), EDGES, nodes_name=name)
    assert graph.names.nodes.to_pylist() == ["ada", "bob", "cy"]
    assert graph.features[2].tolist() == pytest.approx([90, 1.8])
    assert graph.test.tolist() == [2]


def test_another_delimiter_serves_any_suffix(tmp_path):
    graph, _ = imported(
        tmp_path,
        NODES.replace(",", ";"),
        EDGES.replace(",", ";"),
        nodes_name="nodes.txt",
        edges_name="edges.dat",
        delimiter=";",
    )
    assert graph.num_edges == 4


@pytest.mark.parametrize("nodes_name", ["nodes.csv", "nodes.txt", "nodes.tsv"])
@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_each_file_has_the_delimiter_that_divides_its_first_line(tmp_path, nodes_name, delimiter):
    nodes = NODES.replace(",", delimiter).replace("height", '"height, m"')
    graph, summary = imported(tmp_path, nodes, EDGES, nodes_name=nodes_name)
    assert graph.names.features == ["age", "height, m"]
    assert graph.num_edges == 4
    usual = (nodes_name[-3:], delimiter) in {("csv", ","), ("tsv", "\t")}
    assert ("cells divided by" in str(summary)) == (not usual)


def test_the_delimiter_of_the_ending_goes_before_others(tmp_path):
    graph, _ = imported(tmp_path, "id,x;1,y|2\na,1,2\nb,3,4\n", "source,target\na,b\n")
    assert graph.names.features == ["x;1", "y|2"]


def test_a_header_too_long_for_one_cell_is_still_divided(tmp_path):
    names = [f"feature_{i}" for i in range(15_000)]
    nodes = ";".join(["id", *names]) + "\n" + "".join(f"{n}" + ";1" * 15_000 + "\n" for n in "ab")
    graph, _ = imported(tmp_path, nodes, "source,target\na,b\n")
    assert graph.num_features == 15_000


@pytest.mark.parametrize(
    "change", [lambda data: data, gzip.compress, lambda d: b"\xef\xbb\xbf" + d]
)
def test_comments_at_the_top_are_passed_over_and_ids_below_may_look_like_them(tmp_path, change):
    text = '# made by "hand\r\n\n# From\tTo\na\t#b\n#b\tc\n#c\ta\n'
    data = change(text.encode())
    name = "e.txt.gz" if data[:2] == b"\x1f\x8b" else "e.txt"
    graph, summary = imported(tmp_path, None, data, edges_name=name, headerless=True, directed=True)
    assert edge_set(graph) == {("a", "#b"), ("#b", "c"), ("#c", "a")}
    assert "passed over 3 lines of comments at the top" in str(summary)


def test_a_file_larger_than_a_block_keeps_its_rows_in_order(tmp_path, monkeypatch):
    for size in ("BLOCK", "WIDE_BLOCK"):
        monkeypatch.setattr(f"vrgcn.data.tables.delimited.{size}", 200)
    text = "id,x\n" + "".join(f'"n\n{i}",{i}\n' for i in range(500))
    graph, _ = imported(tmp_path, text, 'source,target\n"n\n3","n\n499"\n')
    assert graph.features[:, 0].tolist() == list(range(500))
    assert edge_set(graph) == {("n\n3", "n\n499"), ("n\n499", "n\n3")}


def test_edges_without_a_header(tmp_path):
    graph, _ = imported(tmp_path, NODES, "ada,bob\ncy,ada\n", headerless=True)
    assert graph.num_edges == 4
    with refused():
        imported(tmp_path, None, "0,1\n1,2\n", edges_name="more.csv")


def test_nodes_without_a_header(tmp_path):
    graph, _ = imported(
        tmp_path, "z,1,u\ny,2,v\n", "source,target\nz,y\n", headerless_nodes=True, label=("3",)
    )
    assert graph.names.nodes.to_pylist() == ["z", "y"]
    assert graph.features.tolist() == [[1], [2]]
    assert graph.names.classes == ["u", "v"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.float64(), pa.string()])
def test_ids_match_across_types_of_columns(tmp_path, kind):
    ids = pa.array([3, 10**15, 20]).cast(kind)
    pq.write_table(pa.table({"id": ids, "x": [1.0, 2, 3]}), tmp_path / "n.parquet")
    (tmp_path / "e.csv").write_text(f"a,b\n3,{10**15}\n20,3\n")
    import_tables(
        ImportSpec(nodes=tmp_path / "n.parquet", edges=tmp_path / "e.csv", out=tmp_path / "g")
    )
    graph = load_graph(tmp_path / "g")
    assert graph.names.nodes.to_pylist() == [3, 10**15, 20]
    assert graph.names.nodes.type == pa.int64()


def test_ids_with_leading_zeros_stay_texts(tmp_path):
    graph, _ = imported(tmp_path, "id,x\n007,1\n7,2\n", "source,target\n7,007\n", directed=True)
    assert graph.names.nodes.to_pylist() == ["007", "7"]
    assert edge_set(graph) == {("7", "007")}


def test_categories_of_parquet_are_texts(tmp_path):
    table = pa.table(
        {
            "id": pa.array(["a", "b", "c"]).dictionary_encode(),
            "label": pa.array(["x", None, "y"]).dictionary_encode(),
            "n": pa.array([1, 2, 1]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "n.parquet")
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    import_tables(
        ImportSpec(nodes=tmp_path / "n.parquet", edges=tmp_path / "e.csv", out=tmp_path / "g")
    )
    graph = load_graph(tmp_path / "g")
    assert graph.labels.tolist() == [0, -1, 1]
    assert graph.features.tolist() == [[1], [2], [1]]


# ------------------------------------------------------------------------------------ columns


def test_columns_are_found_by_flag_pattern_or_place(tmp_path):
    nodes = "who,f_b,f_a,note,kind,part\nada,1,2,hi,x,train\nbob,3,4,ho,y,test\n"
    graph, summary = imported(
        tmp_path,
        nodes,
        "w,from,to\n2,ada,bob\n",
        features=("f_*",),
        label=("kind",),
        split="part",
        source="from",
        target="to",
        weight="w",
    )
    assert graph.names.features == ["f_b", "f_a"]
    assert graph.names.classes == ["x", "y"]
    assert graph.train.tolist() == [0]
    assert graph.adjacency.values.tolist() == [2, 2]
    assert "id 'who'" in str(summary)


def test_all_the_rest_are_features_but_not_what_is_dropped_or_has_no_name(tmp_path):
    nodes = ",id,x,note,n_1,n_2\n0,ada,1,hi,8,8\n1,bob,2,ho,9,9\n"
    graph, summary = imported(
        tmp_path, nodes, "source,target,weight\nada,bob,3\n", drop=("note", "n_*", "weight")
    )
    assert graph.names.features == ["x"]
    assert not graph.weighted
    assert "ignored column: ''" in str(summary)


def test_what_is_dropped_is_none_of_the_columns_that_a_pattern_names(tmp_path):
    nodes = "id,f_1,f_target,f_2,is_a,is_unknown,is_b\nu,1,9,2,0,1,1\nv,3,9,4,1,1,0\n"
    graph, _ = imported(
        *(tmp_path, nodes, "source,target\nu,v\n"),
        **{"features": ("f_*",), "label": ("is_*",), "drop": ("f_target", "*_unknown")},
        column=("f_*=number",),
    )
    assert graph.names.features == ["f_1", "f_2"]
    assert graph.names.classes == ["is_a", "is_b"]


def test_a_pattern_does_not_drop_a_column_that_another_setting_names(tmp_path):
    nodes = "id,split0,split1,x,f_1,f_2\nu,train,val,1,2,3\nv,val,train,2,3,4\n"
    graph, _ = imported(
        *(tmp_path, nodes, "source,target\nu,v\n"),
        **{"split": "split0", "label": ("x",), "features": ("f_1",), "drop": ("split*", "f_*")},
    )
    assert graph.train.tolist() == [0]
    assert graph.val.tolist() == [1]
    assert graph.names.features == ["f_1"]


def test_features_follow_the_order_of_the_flag(tmp_path):
    graph, _ = imported(tmp_path, "id,a,b,c[0]\nu,1,2,3\nv,4,5,6\n", "source,target\nu,v\n",
                        features=("c[0]", "a"))  # fmt: skip
    assert graph.names.features == ["c[0]", "a"]
    assert graph.features.tolist() == [[3, 1], [6, 4]]


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.int32(), 2),
                                  pa.large_list(pa.float32())])  # fmt: skip
def test_lists_of_numbers_become_columns(tmp_path, kind):
    table = pa.table({"id": [5, 6, 7], "emb": pa.array([[1, 2], [3, 4], [5, 6]], kind),
                      "on": [True, False, True]})  # fmt: skip
    pq.write_table(table, tmp_path / "n.parquet")
    (tmp_path / "e.csv").write_text("source,target\n5,6\n")
    import_tables(
        ImportSpec(nodes=tmp_path / "n.parquet", edges=tmp_path / "e.csv", out=tmp_path / "g")
    )
    graph = load_graph(tmp_path / "g")
    assert graph.names.features == ["emb[0]", "emb[1]", "on"]
    assert graph.features.tolist() == [[1, 2, 1], [3, 4, 0], [5, 6, 1]]


def test_numbers_may_be_written_in_many_ways(tmp_path):
    cells = ["1", "+1", " 1", "1.0 ", "1e0", "true", "TRUE", ".1e1"]
    nodes = "id,x\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    graph, _ = imported(tmp_path, nodes, "source,target\n0,1\n")
    assert graph.features[:, 0].tolist() == [1] * len(cells)


def test_missing_features_can_be_filled(tmp_path):
    cells = ["", "nan", "NA", "inf", "-Infinity", "1e60", "3"]
    nodes = "id,x\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    graph, _ = imported(tmp_path, nodes, "source,target\n0,1\n", fill=("-9.5",))
    assert graph.features[:, 0].tolist() == [-9.5] * 6 + [3]


# --------------------------------------------------------------------------- without a node file


def test_without_a_node_file_the_nodes_are_those_of_the_edges_sorted(tmp_path):
    graph, summary = imported(tmp_path, None, "source,target\n10,9\n9,2\n2,10\n9,100\n")
    assert graph.names.nodes.to_pylist() == [2, 9, 10, 100]
    assert graph.labels is None
    assert graph.names.features[0] == "log_degree"
    degree = graph.adjacency.counts
    assert torch.allclose(graph.features[:, 0], torch.log1p(degree.float()))
    mean, largest = graph.features[3, 1:3].tolist()  # the node 100 has the neighbour 9 alone
    assert mean == pytest.approx(np.log(4))
    assert largest == pytest.approx(np.log(4))
    assert graph.features[3, 3] == pytest.approx(graph.features[1, 1])
    assert "no labels" in str(summary)


def test_structural_features_tell_in_from_out_and_are_zero_without_neighbours(tmp_path):
    graph, _ = imported(tmp_path, None, "source,target\na,b\na,c\n", directed=True)
    out = graph.names.features.index("log_out_degree")
    assert graph.features[0, out] == pytest.approx(np.log(3))
    assert graph.features[0, :4].tolist() == [0, 0, 0, 0]


def test_a_node_file_without_features_gets_structural_ones(tmp_path):
    nodes = "id,label\na,x\nb,y\nc,x\n"
    graph, summary = imported(tmp_path, nodes, "source,target\na,b\nb,b\n")
    assert graph.num_features == 4
    assert graph.labels.tolist() == [0, 1, 0]
    assert summary.isolated == 1
    assert "features from the edges" in str(summary)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_features_from_a_file_of_the_sorted_ids(tmp_path, dtype):
    x = np.arange(6).reshape(3, 2).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    graph, _ = imported(
        tmp_path, None, "source,target\nb,c\nc,a\n", features_file=tmp_path / "x.npy"
    )
    assert graph.names.nodes.to_pylist() == ["a", "b", "c"]
    assert graph.features.tolist() == x.tolist()


def test_whole_numbers_are_rows_of_the_features_file(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(5))
    graph, summary = imported(
        tmp_path, None, "source,target\n3,1\n1,0\n", features_file=tmp_path / "x.npy"
    )
    assert graph.names.nodes.to_pylist() == [0, 1, 2, 3, 4]
    assert edge_set(graph) == {("3", "1"), ("1", "3"), ("1", "0"), ("0", "1")}
    assert summary.isolated == 2


def test_a_features_file_beside_a_node_file(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1.0], [2.0], [np.nan]]))
    graph, summary = imported(tmp_path, NODES, EDGES, features_file=tmp_path / "x.npy", fill=("7",))
    assert graph.features.tolist() == [[1], [2], [7]]
    assert graph.train.tolist() == [0]
    assert "ignored columns: 'age', 'height'" in str(summary)


# -------------------------------------------------------------------------------- interruption


@pytest.mark.parametrize("stop_at", ["nodes.csv", "edges.csv"])
def test_an_interrupted_import_leaves_nothing(tmp_path, stop_at):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)

    def stop(name: str, rows: int) -> None:
        if name.endswith(stop_at):
            raise KeyboardInterrupt

    spec = ImportSpec(
        nodes=tmp_path / "nodes.csv", edges=tmp_path / "edges.csv", out=tmp_path / "a" / "graph"
    )
    with pytest.raises(KeyboardInterrupt):
        import_tables(spec, stop)
    assert not list((tmp_path / "a").iterdir())
    import_tables(spec)
    assert load_graph(tmp_path / "a" / "graph").num_nodes == 3


def test_a_killed_import_leaves_nothing_that_loads(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)

    def stop(name: str, rows: int) -> None:
        if "edges" in name:
            raise KeyboardInterrupt

    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    with pytest.raises(KeyboardInterrupt):
        import_tables(
            ImportSpec(
                nodes=tmp_path / "nodes.csv", edges=tmp_path / "edges.csv", out=tmp_path / "graph"
            ),
            stop,
        )
    assert not (tmp_path / "graph").exists()
    [left] = tmp_path.glob(".graph.*.partial")
    with refused():
        load_graph(left)


# --------------------------------------------------------------------------------------- parts


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=6), st.sampled_from([(), (3,), (2, 2)]))
def test_a_growing_array_is_the_file_that_numpy_writes(counts, row):
    with tempfile.TemporaryDirectory() as name:
        parts = [np.random.default_rng(n).random((n, *row)).astype(np.float32) for n in counts]
        with GrowingArray(Path(name) / "a.npy", np.float32, row) as file:
            for part in parts:
                file.append(part)
        whole = np.concatenate([np.empty((0, *row), np.float32), *parts])
        np.save(Path(name) / "b.npy", whole)
        assert (Path(name) / "a.npy").read_bytes() == (Path(name) / "b.npy").read_bytes()


@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\n", " \n"])
@pytest.mark.parametrize("zipped", [False, True])
def test_the_last_cell_may_have_several_lines_if_its_quote_is_closed(tmp_path, end, zipped):
    data = f'id,note\nu,a\nv,"two\nlines"{end}'.encode()
    path = tmp_path / "n.csv"
    path.write_bytes(gzip.compress(data) if zipped else data)
    for columns in (["id", "note"], ["id"]):
        table = DelimitedTable(path, ",", zipped, header=True)
        [(start, batch)] = table.batches(columns)
        assert start == 0
        assert batch.schema.names == columns
        assert batch.column("id").to_pylist() == ["u", "v"]


def test_lines_are_told_through_quoted_newlines_and_blank_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,x\n"a\nb",1\n\n"c, ""d""",2\ne,3\n')
    table = DelimitedTable(path, ",", zipped=False, header=True)
    assert table.where([2, 0, 1]) == ["row 3 (line 6)", "row 1 (line 2)", "row 2 (line 5)"]


def test_paths_may_be_texts_from_python(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    edges, out = str(tmp_path / "e.csv"), str(tmp_path / "g")
    import_tables(ImportSpec(edges=edges, out=out))  # type: ignore[arg-type]
    assert load_graph(out).num_nodes == 2
    with refused(TypeError):
        ImportSpec(edges=3, out=tmp_path / "h")  # type: ignore[arg-type]
