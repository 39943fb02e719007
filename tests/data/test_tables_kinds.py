"""Several tables become one graph: kinds, relations, and features of each kind."""

from __future__ import annotations

import shlex
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, load_graph, save_graph
from vrgcn.data.generate_kinds import generate_kinds, import_command
from vrgcn.data.generate_spec import GenerateSpec
from vrgcn.data.store import verify_graph
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.data.tables.summary import ImportSummary

FILES = {
    "users.csv": "id,age,city,churned,split\n1,30,Rome,no,train\n2,40,Oslo,yes,val\n"
    "3,50,Rome,no,test\n",
    "items.csv": "sku,price\n1,10\n2,20\n",
    "orders.csv": "user,item,rating,weight\n1,1,5,2\n1,2,1,1\n2,2,3,1\n1,1,3,1\n",
    "follows.csv": "source,target\n1,2\n3,1\n3,3\n",
    "offers.csv": "item,shop\n1,a\n2,a\n2,b\n",
}
NODES = ("user=users.csv", "item=items.csv")
EDGES = (
    "user-bought-item=orders.csv",
    "user-follows-user=follows.csv",
    "item-sold_by-shop=offers.csv",
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def imported(out: str = "graph", **options: object) -> tuple[Graph, ImportSummary]:
    given = {"nodes": NODES, "edges": EDGES, "label": ("user.churned",)} | options
    summary = import_tables(ImportSpec(out=Path(out), **given))  # type: ignore[arg-type]
    return load_graph(out), summary


def dense(graph: Graph, relation: str) -> list[list[float]]:
    return graph.relations[relation].adjacency.to_torch().to_dense().tolist()


def rows(graph: Graph, kind: str) -> dict[str, list[float]]:
    """Features of a kind by name, without the name of the kind."""
    assert graph.names.features is not None
    own, columns = graph.kinds.range(kind), graph.kinds.columns(kind)
    x = graph.features.to_dense()[own.start : own.stop]
    names = [graph.names.features[column].removeprefix(f"{kind}.") for column in columns]
    return {name: x[:, column].tolist() for name, column in zip(names, columns, strict=True)}


def test_tables_become_ranges_of_one_numbering(files: Path) -> None:
    graph, _ = imported()
    assert dict(graph.kinds.sizes) == {"user": 3, "item": 2, "shop": 2}
    assert graph.target == "user"
    assert graph.names.ids_of("user").to_pylist() == [1, 2, 3]
    assert graph.names.ids_of("item").to_pylist() == [1, 2]  # user 1 and item 1 are two nodes
    assert graph.names.ids_of("shop").to_pylist() == ["a", "b"]  # what edges name
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 0, -1, -1, -1, -1]
    assert [graph.train.tolist(), graph.val.tolist(), graph.test.tolist()] == [[0], [1], [2]]


def test_each_relation_has_its_matrix_and_its_reverse(files: Path) -> None:
    graph, _ = imported()
    assert list(graph.relations) == [
        *("user-bought-item", "item-rev_bought-user"),
        *("user-follows-user", "user-rev_follows-user"),
        *("item-sold_by-shop", "shop-rev_sold_by-item"),
    ]
    bought = torch.zeros(7, 7)
    bought[3, 0], bought[4, 0], bought[4, 1] = 3, 1, 1  # two orders of item 1 by user 1, summed
    assert dense(graph, "user-bought-item") == bought.tolist()
    assert dense(graph, "item-rev_bought-user") == bought.T.tolist()
    follows = torch.zeros(7, 7)
    follows[1, 0] = follows[0, 2] = follows[2, 2] = 1
    assert dense(graph, "user-follows-user") == follows.tolist()
    assert graph.relations["item-rev_bought-user"].reverse_of == "user-bought-item"
    assert graph.relations["user-bought-item"].weighted
    assert not graph.relations["user-follows-user"].weighted


def test_columns_become_features_of_their_kind(files: Path) -> None:
    graph, _ = imported()
    users, items = rows(graph, "user"), rows(graph, "item")
    assert users["age"] == [30, 40, 50]
    assert users["city=Rome"] == [1, 0, 1]
    assert items["price"] == [10, 20]
    assert rows(graph, "shop") == {}
    assert "churned" not in users
    # Every kind has columns of its own: nothing of users stands in the rows of items.
    assert int(graph.features.to_dense().count_nonzero()) == sum(
        np.count_nonzero(column) for kind in (users, items) for column in kind.values()
    )


def test_a_column_of_edges_is_averaged_over_the_edges_of_a_node(files: Path) -> None:
    graph, _ = imported()
    assert rows(graph, "item")["bought.rating"] == [4, 2]  # (5 + 3) / 2 and (1 + 3) / 2
    users = rows(graph, "user")
    assert users["rev_bought.rating"] == [3, 3, 3]  # the last bought nothing: the mean of all edges
    assert users["rev_bought.none"] == [0, 0, 1]


def test_counts_count_an_edge_once(files: Path) -> None:
    _, summary = imported()
    assert [(k.name, k.nodes, k.features) for k in summary.kinds] == [
        ("user", 3, 5),
        ("item", 2, 2),
        ("shop", 2, 0),
    ]
    assert [(r.name, r.edges, r.rows, r.duplicates, r.self_loops) for r in summary.relations] == [
        ("user-bought-item", 3, 4, 1, 0),
        ("user-follows-user", 3, 3, 0, 1),
        ("item-sold_by-shop", 3, 3, 0, 0),
    ]
    assert summary.edges == 9
    text = str(summary)
    assert "together 7 nodes and 9 edges of 3 relations" in text
    assert "shop: no table; its nodes are the ids that edges name" in text
    assert 'give rows_as_nodes="bought"' in text
    assert "means of columns of edges (bought.rating) are features of nodes, and cannot" in text


def test_a_saved_graph_of_kinds_is_the_same_when_it_is_loaded(files: Path) -> None:
    graph, _ = imported()
    save_graph(graph, "again")
    assert verify_graph("again") is None
    for memory in ("ram", "disk"):
        loaded = load_graph("again", memory=memory)  # type: ignore[arg-type]
        assert loaded.kinds == graph.kinds
        assert list(loaded.relations) == list(graph.relations)
        for name in graph.relations:
            assert dense(loaded, name) == dense(graph, name)
        assert torch.equal(loaded.features.to_dense(), graph.features.to_dense())
        assert loaded.names.features == graph.names.features
        assert loaded.names.ids_of("shop").equals(graph.names.ids_of("shop"))


@pytest.mark.parametrize(
    "name",
    ["indices_1.npy", "reverse_weights_0.npy", "ids_2.arrow", "features_1.npy"],
)
def test_a_damaged_file_of_a_kind_or_relation_is_found(files: Path, name: str) -> None:
    imported()
    file = Path("graph") / name
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    with refused():
        verify_graph("graph")


def test_an_edge_outside_of_the_kinds_of_its_relation_is_refused(files: Path) -> None:
    imported()
    file = Path("graph/indices_0.npy")
    indices = np.load(file)
    indices[0] = 3  # an item as the source of user-bought-item
    np.save(file, indices)
    with refused():
        load_graph("graph")


def test_a_column_names_the_relations_of_a_table(files: Path) -> None:
    text = "src,rel,dst\na,likes,b\nb,/x/knows,c\na,likes,c\n"
    (files / "triples.csv").write_text(text)
    spec = ImportSpec(edges=Path("triples.csv"), relation_column="rel", out=Path("graph"))
    summary = import_tables(spec)
    graph = load_graph("graph")
    assert dict(graph.kinds.sizes) == {"node": 3}
    assert list(graph.relations)[::2] == ["node-/x/knows-node", "node-likes-node"]
    assert dense(graph, "node-likes-node") == [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    assert graph.num_features == 0
    assert "1,000" not in str(summary)


def test_two_kinds_with_a_column_of_relations(files: Path) -> None:
    (files / "events.csv").write_text("user,item,type,stars\n1,1,saw,1\n2,1,saw,3\n2,2,bought,5\n")
    options = {"edges": ("user-item=events.csv",), "relation_column": "type"}
    graph, _ = imported(**options)
    assert list(graph.relations)[::2] == ["user-bought-item", "user-saw-item"]
    items = rows(graph, "item")
    assert items["saw.stars"] == [2, 3]  # the second was not seen: the mean of all edges
    assert items["bought.stars"] == [3, 5]
    assert items["saw.none"] == [0, 1]


def test_rows_of_edges_become_nodes(files: Path) -> None:
    graph, _ = imported(rows_as_nodes=("bought",))
    assert dict(graph.kinds.sizes) == {"user": 3, "item": 2, "shop": 2, "bought": 4}
    assert list(graph.relations)[:4:2] == ["user-from-bought", "bought-to-item"]
    assert rows(graph, "bought")["rating"] == [5, 1, 3, 3]
    assert graph.names.ids_of("bought").to_pylist() == [1, 2, 3, 4]
    assert [list(row).index(1) for row in dense(graph, "user-from-bought")[7:]] == [0, 0, 1, 0]


def test_settings_name_columns_of_their_kind(files: Path) -> None:
    (files / "users.csv").write_text("uid,age,price,churned\nx,30,1,a\ny,,2,b\nz,50,3,a\n")
    (files / "items.csv").write_text("sku,price,age\n1,10,7\n2,,8\n")
    (files / "orders.csv").write_text("who,what,n,weight\nx,1,2,1\ny,2,3,1\n")
    (files / "follows.csv").write_text("source,target\nx,y\n")
    graph, _ = imported(
        id=("user.uid", "item.sku"),
        source="bought.who",
        target="bought.what",
        fill=("user.age=0", "item.price=7+mark"),
        drop=("user.price", "bought.weight"),
        column=("item.age=category",),
        ratio=(0.6, 0.2, 0.2),
    )
    users, items = rows(graph, "user"), rows(graph, "item")
    assert users["age"] == [30, 0, 50]
    assert "price" not in users
    assert items["price"] == [10, 7]
    assert items["price.missing"] == [0, 1]
    assert items["age=7"] == [1, 0]
    assert not graph.relations["user-bought-item"].weighted


def test_a_name_without_a_kind_is_meant_of_every_table_that_has_it(files: Path) -> None:
    (files / "items.csv").write_text("sku,price,age\n1,10,7\n2,20,8\n")
    graph, _ = imported(drop=("age", "rating"))
    assert "age" not in rows(graph, "user")
    assert "age" not in rows(graph, "item")
    assert "bought.rating" not in rows(graph, "item")


def test_a_column_label_of_another_kind_is_a_feature(files: Path) -> None:
    (files / "items.csv").write_text("sku,label,split\n1,10,train\n2,20,test\n")
    graph, summary = imported()
    assert rows(graph, "item")["label"] == [10, 20]
    assert "item: ignored column: 'split'" in str(summary)


def test_dangling_ids_may_be_skipped_or_added(files: Path) -> None:
    (files / "orders.csv").write_text("user,item\n1,1\n9,2\n1,8\n")
    skipped, summary = imported("skipped", unknown_nodes="skip")
    assert skipped.relations["user-bought-item"].num_edges == 1
    assert summary.relations[0].skipped == 2
    assert any("skipped 2 of 3 rows" in warning for warning in summary.warnings)
    added, summary = imported("added", unknown_nodes="add")
    assert dict(added.kinds.sizes) == {"user": 4, "item": 3, "shop": 2}
    assert added.names.ids_of("item").to_pylist() == [1, 2, 8]
    assert rows(added, "item")["price"] == [10, 20, 15]
    assert rows(added, "item")["(not in the nodes table)"] == [0, 0, 1]
    assert rows(added, "user")["(not in the nodes table)"] == [0, 0, 0, 1]
    assert added.relations["user-bought-item"].num_edges == 3


def test_like_makes_the_same_features_of_other_tables(files: Path) -> None:
    first, _ = imported()
    (files / "users.csv").write_text("age,id,city\n20,7,Oslo\n60,8,Paris\n")
    (files / "items.csv").write_text("sku,price\n1,5\n")
    (files / "orders.csv").write_text("user,item,rating,weight\n7,1,2,1\n")
    (files / "follows.csv").write_text("source,target\n8,7\n")
    (files / "offers.csv").write_text("item,shop\n1,c\n")
    second, _ = imported("second", like=Path("graph"), label=())
    assert second.names.features == first.names.features
    assert second.names.classes == first.names.classes
    assert list(second.relations) == list(first.relations)
    assert second.target == "user"
    users = rows(second, "user")
    assert users["city=Oslo"] == [1, 0]
    assert users["city=Rome"] == [0, 0]
    assert users["rev_bought.rating"] == [2, 3]  # without orders: the mean of the first tables
    assert rows(second, "item")["bought.rating"] == [2]


def test_like_wants_the_same_kinds_and_relations(files: Path) -> None:
    imported()
    with refused():
        imported("second", like=Path("graph"), edges=EDGES[:2])


def test_numbers_and_several_classes_are_labels_of_a_kind(files: Path) -> None:
    (files / "items.csv").write_text("sku,price,tags\n1,10,a|b\n2,,b\n")
    prices, _ = imported(
        "prices", label=("item.price",), task="regression", ratio=(1.0, 0.0, 0.0), drop=("split",)
    )
    assert prices.labels is not None
    assert prices.labels[3] == 10
    assert int(prices.labelled.sum()) == 1
    tags, _ = imported(
        "tags", label=("item.tags",), label_delimiter="|", drop=("split",), fill=("item.price=0",)
    )
    assert tags.labels is not None
    assert tags.labels[3:5].tolist() == [[1, 1], [0, 1]]
    assert tags.labels[0].tolist() == [-1, -1]


def test_parquet_and_csv_make_the_same_graph(files: Path) -> None:
    from pyarrow import csv

    graph, _ = imported()
    for name in FILES:
        table = csv.read_csv(name)
        pq.write_table(pa.table(table), name.replace(".csv", ".parquet"))
    nodes = tuple(each.replace(".csv", ".parquet") for each in NODES)
    edges = tuple(each.replace(".csv", ".parquet") for each in EDGES)
    other, _ = imported("parquet", nodes=nodes, edges=edges)
    assert torch.equal(other.features.to_dense(), graph.features.to_dense())
    assert all(dense(other, name) == dense(graph, name) for name in graph.relations)


def test_a_features_file_belongs_to_a_kind(files: Path) -> None:
    np.save("x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save("shops.npy", np.ones((2, 1), np.float32))
    graph, _ = imported(features_file=("item=x.npy", "shop=shops.npy"), drop=("bought.rating",))
    assert dict(graph.kinds.widths) == {"user": 3, "item": 3, "shop": 1}
    assert list(rows(graph, "item").values()) == [[0, 3], [1, 4], [2, 5]]


def test_one_table_is_warned_about_if_its_columns_hold_two_kinds(tmp_path: Path) -> None:
    lines = "".join(f"{user},{item}\n" for user in range(1, 6) for item in range(1, 10))
    (tmp_path / "ratings.csv").write_text(f"user_id,movie\n{lines}")
    (tmp_path / "cites.csv").write_text(f"citing,cited\n{lines}")
    (tmp_path / "plain.csv").write_text(f"source,target\n{lines}")

    def warnings(name: str) -> list[str]:
        spec = ImportSpec(edges=tmp_path / f"{name}.csv", out=tmp_path / name)
        return [w for w in import_tables(spec).warnings if "different kinds" in w]

    [warning] = warnings("ratings")
    assert f'edges="user-NAME-movie={tmp_path}/ratings.csv"' in warning
    assert warnings("cites") == warnings("plain") == []


def test_data_frames_make_the_same_graph_as_files(files: Path) -> None:
    pandas = pytest.importorskip("pandas")
    graph, _ = imported()
    frames = {name: pandas.read_csv(name) for name in FILES}
    made = Graph.from_tables(
        nodes={"user": frames["users.csv"], "item": frames["items.csv"].set_index("sku")},
        edges={
            ("user", "bought", "item"): frames["orders.csv"],
            ("user", "follows", "user"): frames["follows.csv"],
            ("item", "sold_by", "shop"): frames["offers.csv"],
        },
        label="user.churned",
    )
    assert made.kinds == graph.kinds
    assert made.names.features == graph.names.features
    assert torch.equal(made.features.to_dense(), graph.features.to_dense())
    assert all(dense(made, name) == dense(graph, name) for name in graph.relations)


def test_mistakes_in_data_frames_name_their_table(files: Path) -> None:
    pandas = pytest.importorskip("pandas")
    users = pandas.DataFrame({"id": [1, 2], "age": [1.0, None]})
    follows = pandas.DataFrame({"source": [1], "target": [5]}, index=["first"])
    with refused() as caught:
        Graph.from_tables({"user": users}, {("user", "follows", "user"): follows})
    assert "'5' in row 'first'" in str(caught.value)


def test_settings_choose_the_columns_of_edges(files: Path) -> None:
    (files / "orders.csv").write_text("user,item,stars,split,n\n1,1,5,a,1\n2,2,1,b,2\n")
    every, _ = imported("every")
    assert {"bought.stars", "bought.n"} <= set(rows(every, "item"))
    assert not any("split" in name for name in rows(every, "item"))
    one, _ = imported("one", features=("bought.stars",), column=("bought.stars=category",))
    names = set(rows(one, "item"))
    assert {"bought.stars=5", "bought.stars=1", "price"} <= names
    assert "bought.n" not in names
    with refused():
        imported("none", column=("bought.user=category",))


def test_the_index_of_a_data_frame_has_the_ids_of_its_kind(files: Path) -> None:
    pandas = pytest.importorskip("pandas")
    users = pandas.DataFrame({"age": [1, 2]}, index=["x", "y"])
    items = pandas.DataFrame({"sku": [7, 8], "price": [1.0, 2.0], "id": ["a", "b"]})
    bought = pandas.DataFrame({"user": ["x", "y"], "item": [8, 7]})
    graph = Graph.from_tables(
        {"user": users, "item": items}, {("user", "bought", "item"): bought}, id="item.sku"
    )
    assert graph.names.ids_of("user").to_pylist() == ["x", "y"]
    assert graph.names.ids_of("item").to_pylist() == [7, 8]


def test_averages_on_disk_are_known_by_the_edges_of_all_relations(files: Path) -> None:
    (files / "nodes.csv").write_text("id,x\na,1\nb,2\n")
    (files / "one.csv").write_text("src,rel,dst\na,likes,b\n")
    (files / "two.csv").write_text("src,rel,dst\nb,likes,a\n")
    sources = []
    for name in ("one", "two"):
        spec = ImportSpec(
            nodes=Path("nodes.csv"),
            edges=Path(f"{name}.csv"),
            relation_column="rel",
            out=Path(name),
        )
        import_tables(spec)
        derived = load_graph(name, memory="disk").derived
        assert derived is not None
        sources.append(str(derived))
    assert sources[0].replace("one", "") != sources[1].replace("two", "")
    assert "indices_0" in sources[0]


def test_an_edge_to_another_kind_than_the_one_table_is_told_with_the_command(files: Path) -> None:
    (files / "orders.csv").write_text("user,item\n1,1\n2,7\n")
    with refused() as caught:
        import_tables(
            ImportSpec(
                nodes=Path("users.csv"), edges=Path("orders.csv"), label=("churned",), out=Path("g")
            )
        )
    assert 'nodes="user=users.csv" edges="user-NAME-item=orders.csv"' in str(caught.value)


def test_like_knows_the_relations_of_a_column(files: Path) -> None:
    (files / "first.csv").write_text("src,rel,dst,n\na,likes,b,1\nb,knows,c,2\n")
    (files / "second.csv").write_text("src,rel,dst,n\nx,knows,y,5\n")
    (files / "third.csv").write_text("src,rel,dst,n\nx,hates,y,5\n")

    def made(name: str, **options: object) -> Graph:
        spec = {"edges": Path(f"{name}.csv"), "relation_column": "rel", "out": Path(name)}
        import_tables(ImportSpec(**spec | options))  # type: ignore[arg-type]
        return load_graph(name)

    first, second = made("first"), made("second", like=Path("first"))
    assert list(second.relations) == list(first.relations)
    assert second.relations["node-likes-node"].num_edges == 0
    assert second.names.features == first.names.features
    with refused():
        made("third", like=Path("first"))


def test_like_makes_nodes_of_rows_again(files: Path) -> None:
    first, _ = imported("first", rows_as_nodes=("bought",))
    second, _ = imported("second", rows_as_nodes=("bought",), like=Path("first"))
    assert second.names.features == first.names.features
    assert torch.equal(second.features.to_dense(), first.features.to_dense())


def test_a_single_file_may_have_an_equals_sign_in_its_name(files: Path) -> None:
    (files / "a=b.csv").write_text(FILES["follows.csv"])
    import_tables(ImportSpec(edges=Path("a=b.csv"), out=Path("graph")))
    assert not load_graph("graph").kinds.named


def test_one_named_kind_has_its_relations(files: Path) -> None:
    graph, _ = imported(nodes=NODES[:1], edges=EDGES[1:2])
    assert dict(graph.kinds.sizes) == {"user": 3}
    assert rows(graph, "user")["age"] == [30, 40, 50]
    assert verify_graph("graph") is None


def test_a_column_of_a_kind_that_names_another_is_a_relation(files: Path) -> None:
    (files / "items.csv").write_text("sku,price,shop\n1,10,a\n2,20,\n")
    edges = (*EDGES[:2], "item-sold_by-shop=items.csv")
    graph, summary = imported(edges=edges)
    assert graph.names.ids_of("shop").to_pylist() == ["a"]
    sold_by = graph.relations["item-sold_by-shop"]
    assert (sold_by.num_edges, sold_by.adjacency.row_of_entry.tolist()) == (1, [5])
    assert sold_by.adjacency.indices.tolist() == [3]  # the second item has no shop: no edge
    assert not any("shop" in name or "sold_by" in name for name in rows(graph, "item"))
    assert summary.relations[2].skipped == 1
    pandas = pytest.importorskip("pandas")
    items = pandas.read_csv("items.csv").set_index("sku")
    made = Graph.from_tables({"item": items}, {("item", "sold_by", "shop"): items})
    assert made.relations["item-sold_by-shop"].num_edges == 1
    assert rows(made, "item") == {"price": [10, 20]}


def test_two_relations_may_share_a_file(files: Path) -> None:
    (files / "orders.csv").write_text("user,item,shop,stars\n1,1,a,5\n2,2,b,3\n")
    edges = ("user-bought-item=orders.csv", "user-went_to-shop=orders.csv")
    graph, _ = imported(edges=edges)
    assert graph.relations["user-went_to-shop"].num_edges == 2
    assert set(rows(graph, "shop")) == {"went_to.stars"}
    assert {"price", "bought.stars"} == set(rows(graph, "item"))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_small_batches_make_the_same_graph(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = GenerateSpec(
        nodes=300, degree=10, features=4, community=60, classes=3, kinds=True, tables=suffix
    )
    generate_kinds(spec, "tables")
    flags = shlex.split(import_command(spec, Path("tables")))
    nodes, edges = flags[3:6], flags[7:11]
    given = {"nodes": tuple(nodes), "edges": tuple(edges), "label": ("user.class",)}
    whole, _ = imported("whole", **given)
    for name in ("delimited.BLOCK", "delimited.WIDE_BLOCK"):
        monkeypatch.setattr(f"vrgcn.data.tables.{name}", 400)
    monkeypatch.setattr("vrgcn.data.tables.parquet.BATCH_ROWS", 17)
    for name in ("LOOKUP_ROWS", "LOOKUP_BYTES"):
        monkeypatch.setattr(f"vrgcn.data.tables.edges.{name}", 1)
    monkeypatch.setattr("vrgcn.data.tables.adjacency._CHUNK", 13)
    pieces, _ = imported("pieces", **given)
    for file in sorted(Path("whole").rglob("*.npy")):
        assert file.read_bytes() == Path("pieces", *file.parts[1:]).read_bytes(), file
    assert whole.names.features == pieces.names.features


def test_an_import_of_several_tables_holds_a_part_of_their_edges_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = GenerateSpec(nodes=2000, degree=120, features=2, kinds=True, tables="parquet")
    generate_kinds(spec, "tables")
    flags = shlex.split(import_command(spec, Path("tables")))
    monkeypatch.setattr("vrgcn.data.tables.edges.LOOKUP_ROWS", 4000)
    monkeypatch.setattr("vrgcn.data.tables.edges.LOOKUP_BYTES", 1 << 16)
    monkeypatch.setattr("vrgcn.data.tables.parquet.BATCH_ROWS", 4000)
    monkeypatch.setattr("vrgcn.data.tables.adjacency._CHUNK", 4000)
    monkeypatch.setattr("vrgcn.data.tables.adjacency.RANGE_ENTRIES", 4000)
    tracemalloc.start()
    imported(nodes=tuple(flags[3:6]), edges=tuple(flags[7:11]), label=("user.class",))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (
        peak < 1_500_000
    )  # the keys of the largest relation alone take 480,000, twice in a matrix
