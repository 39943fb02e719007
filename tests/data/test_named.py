"""Public data sets: real ones where they are at hand, small ones in the same raw formats."""

from __future__ import annotations

import json
import pickle
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tests.messages import refused
from vrgcn.data import DATASETS, load_dataset, root_folder
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_sparse


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root; nothing is cached outside the test."""
    monkeypatch.setenv("VRGCN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    return set(map(tuple, graph.edge_index().T.tolist()))


def both_ways(pairs: list[tuple[int, int]]) -> set[tuple[int, int]]:
    return {*pairs, *((v, u) for u, v in pairs)}


# Small data sets in the published formats


def write_planetoid(folder: Path, name: str, extra: int = 0) -> dict[str, np.ndarray]:
    """700 labelled rows, the first 6 of training; 20 test nodes; `extra` nodes (NELL's relations).

    Returns what a reader must find: features and classes of the 720 nodes, and the test nodes.
    """
    rng = np.random.default_rng(0)
    width, classes, first, count = 8, 3, 700, 20
    features = rng.integers(0, 2, (first + count, width)).astype(np.float32)
    label = rng.integers(0, classes, first + count)
    onehot = np.eye(classes, dtype=np.int32)[label]
    test = rng.permutation(np.arange(first, first + count))
    graph = {node: [(node + 1) % (first + count), node] for node in range(first + count)}
    graph |= {first + count + i: [i] for i in range(extra)}
    folder.mkdir(parents=True)
    parts = {
        "x": sp.csr_matrix(features[:6]),
        "allx": sp.csr_matrix(features[:first]),
        "tx": sp.csr_matrix(features[test]),  # in the order of test.index
        "y": onehot[:6],
        "ally": onehot[:first],
        "ty": onehot[test],
        "graph": graph,
    }
    for part, value in parts.items():
        (folder / f"ind.{name}.{part}").write_bytes(pickle.dumps(value))
    (folder / f"ind.{name}.test.index").write_text("".join(f"{node}\n" for node in test))
    return {"features": features, "label": label, "test": test}


def write_nell(folder: Path) -> dict[str, np.ndarray]:
    """As above, with 5 relations, and every other row after the training rows without a label."""
    written = write_planetoid(folder, "nell.0.001", extra=5)
    file = folder / "ind.nell.0.001.ally"
    ally = pickle.loads(file.read_bytes())
    ally[6::2] = 0
    file.write_bytes(pickle.dumps(ally))
    return written


def write_ppi(folder: Path) -> None:
    """Two training graphs, one for validation, one for test.

    Node number i has feature i, and the classes: i is 1 modulo 2, i is 1 modulo 3.
    """
    folder.mkdir(parents=True)
    sizes = {"train": [4, 3], "valid": [3], "test": [5]}
    number, tissue = 0, 1
    for split, counts in sizes.items():
        total = sum(counts)
        ids = np.repeat(np.arange(tissue, tissue + len(counts)), counts)
        starts = np.cumsum([0, *counts[:-1]])
        # A path through each graph, and one loop, which PyG leaves out.
        links = [
            {"source": int(start + i), "target": int(start + i + 1)}
            for start, count in zip(starts, counts, strict=True)
            for i in range(count - 1)
        ] + [{"source": 0, "target": 0}]
        described = {
            "directed": False,
            "multigraph": False,
            "graph": {},
            "nodes": [{"id": i} for i in range(total)],
            "links": links,
        }
        (folder / f"{split}_graph.json").write_text(json.dumps(described))
        np.save(folder / f"{split}_graph_id.npy", ids)
        numbers = np.arange(number, number + total)[:, None]
        np.save(folder / f"{split}_feats.npy", numbers * 1.0)
        np.save(folder / f"{split}_labels.npy", (numbers % [2, 3] == 1).astype(np.int64))
        number, tissue = number + total, tissue + len(counts)


def write_reddit(folder: Path) -> None:
    folder.mkdir(parents=True)
    np.savez(
        folder / "reddit_data.npz",
        feature=np.arange(12.0).reshape(6, 2),
        label=np.array([0, 1, 2, 0, 1, 2]),
        node_types=np.array([1, 1, 2, 3, 3, 1]),
    )
    pairs = np.array(sorted(both_ways([(0, 1), (1, 2), (3, 5)]))).T
    adjacency = sp.coo_matrix((np.ones(pairs.shape[1]), tuple(pairs)), shape=(6, 6))
    sp.save_npz(folder / "reddit_graph.npz", adjacency)


def write_reddit2(folder: Path) -> None:
    folder.mkdir(parents=True)
    pairs = np.array(sorted(both_ways([(0, 1), (1, 2), (3, 5)]))).T
    A = sp.csr_matrix((np.ones(pairs.shape[1]), tuple(pairs)), shape=(6, 6))
    np.savez(
        folder / "adj_full.npz", data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape
    )
    np.save(folder / "feats.npy", np.arange(12.0).reshape(6, 2))
    classes = {str(node): node % 3 for node in range(6)}
    (folder / "class_map.json").write_text(json.dumps(classes))
    (folder / "role.json").write_text(json.dumps({"tr": [0, 1, 5], "va": [2], "te": [3, 4]}))


def write_toy_ppi(folder: Path) -> None:
    """Four nodes a, b, c, d whose rows are 2, 0, 3, 1; links name places in the list of nodes."""
    folder.mkdir(parents=True)
    nodes = [
        {"id": "a", "val": False, "test": False},
        {"id": "b", "val": True, "test": False},
        {"id": "c", "val": False, "test": True},
        {"id": "d", "val": False, "test": False},
    ]
    links = [{"source": 0, "target": 3}, {"source": 1, "target": 1}, {"source": 2, "target": 0}]
    (folder / "toy-ppi-G.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    (folder / "toy-ppi-id_map.json").write_text(json.dumps({"a": 2, "b": 0, "c": 3, "d": 1}))
    classes = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1], "d": [1, 1, 1]}
    (folder / "toy-ppi-class_map.json").write_text(json.dumps(classes))
    np.save(folder / "toy-ppi-feats.npy", np.arange(8.0).reshape(4, 2))


# Planetoid


@pytest.mark.parametrize(
    ("name", "shape", "train"),
    [
        ("cora", (2_708, 1_433), 140),
        ("citeseer", (3_327, 3_703), 120),
        ("pubmed", (19_717, 500), 60),
    ],
)
def test_citation_graphs_have_the_public_split_and_features_as_published(
    real_data: Path, graph_cache: Path, name: str, shape: tuple[int, int], train: int
) -> None:
    before = sorted(real_data.rglob("*"))
    graph = load_dataset(name, data_root=real_data, cache=graph_cache)
    assert graph.features.shape == shape
    assert [len(graph.split(s)) for s in ("train", "val", "test")] == [train, 500, 1_000]
    assert torch.bincount(graph.labels[graph.train]).tolist() == [20] * graph.num_classes
    if name == "cora":
        assert set(graph.features.unique().tolist()) == {0.0, 1.0}
    assert sorted(real_data.rglob("*")) == before  # nothing written beside the raw files


@pytest.mark.parametrize(
    "folder", ["planetoid/Cora/raw", "planetoid/Cora", "Cora/raw", "cora/raw", "raw", "."]
)
def test_raw_files_are_found_in_folders_as_people_have_them(
    root: Path, capfd: pytest.CaptureFixture[str], folder: str
) -> None:
    root.parent.mkdir(exist_ok=True)
    written = write_planetoid(root / folder, "cora")
    graph = load_dataset("cora", data_root=root)
    assert torch.equal(graph.features, torch.from_numpy(written["features"]))
    assert graph.labels.tolist() == written["label"].tolist()
    assert graph.test.tolist() == sorted(written["test"])
    assert edges_of(graph) == {(node, (node + 1) % 720) for node in range(720)}
    assert capfd.readouterr() == ("", "")


def test_the_files_asked_for_are_those_that_pyg_reads() -> None:
    from torch_geometric import datasets

    kinds = {"cora": "Planetoid", "citeseer": "Planetoid", "pubmed": "Planetoid", "nell": "NELL"}
    kinds |= {"ppi": "PPI", "reddit": "Reddit", "reddit2": "Reddit2"}
    for name, kind in kinds.items():
        unmade = object.__new__(getattr(datasets, kind))  # initialising it would read files
        unmade.name, unmade.split = name, "public"
        assert sorted(DATASETS[name].raw.files) == sorted(unmade.raw_file_names)


def test_the_data_root_is_the_one_chosen_or_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VRGCN_DATA", raising=False)
    assert root_folder() == Path("data")
    monkeypatch.setenv("VRGCN_DATA", "/somewhere")
    assert root_folder() == Path("/somewhere")
    assert root_folder("here") == Path("here")


def test_a_graph_is_read_once_and_again_when_a_raw_file_has_changed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reddit(root / "reddit")
    first = load_dataset("reddit", data_root=root)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch_geometric", None)  # an import would fail
        assert torch.equal(load_dataset("reddit", data_root=root).features, first.features)
    file = root / "reddit" / "reddit_data.npz"
    arrays = dict(np.load(file))
    np.savez(file, **(arrays | {"feature": arrays["feature"] + 1}))
    assert torch.equal(load_dataset("reddit", data_root=root).features, first.features + 1)


# NELL


def test_nell_keeps_sparse_features_and_only_labels_that_are_known(
    real_data: Path, graph_cache: Path
) -> None:
    graph = load_dataset("nell", data_root=real_data, cache=graph_cache)
    assert is_sparse(graph.features)
    assert graph.features.shape == (65_755, 61_278)
    assert (len(graph.train), len(graph.test)) == (105, 969)
    known = np.load(real_data / "nell" / "known_labels.npz")
    assert np.array_equal(graph.labels.numpy(), known["label"])
    assert np.array_equal(graph.val.numpy(), np.sort(known["val_suggested"]))


def test_nell_without_a_list_validates_on_known_labels_outside_train_and_test(root: Path) -> None:
    written = write_nell(root / "nell" / "raw")
    graph = load_dataset("nell", data_root=root)
    label = np.concatenate([written["label"], np.full(5, -1)])
    label[6:700:2] = -1
    assert graph.labels.tolist() == label.tolist()
    # Rows 7, 9, ..., 699 have a label, fewer than the 500 wanted; test nodes are not among them.
    assert graph.val.tolist() == list(range(7, 700, 2))
    assert graph.features.shape == (725, 8 + 5)
    dense = graph.features.to_dense()
    assert torch.equal(dense[:720, :8], torch.from_numpy(written["features"]))
    assert torch.equal(dense[720:, 8:], torch.eye(5))  # a relation is its own feature


def test_nell_takes_the_validation_nodes_of_the_file_beside_it(root: Path) -> None:
    raw = root / "nell" / "raw"
    write_nell(raw)
    np.savez(root / "nell" / "known_labels.npz", val_suggested=np.array([11, 7, 9]))
    assert load_dataset("nell", data_root=root).val.tolist() == [7, 9, 11]
    np.savez(root / "nell" / "known_labels.npz", val_suggested=np.array([7, 8]))
    with refused():
        load_dataset("nell", data_root=root)


def write_bipartite_nell(folder: Path, *, split_relation: bool = False) -> dict[str, np.ndarray]:
    """NELL's shape: 720 entities without an edge among them, and two relations of two nodes each,
    the first of which has every entity on both of its sides or one.

    split_relation: number the relations' nodes so that another node stands between two
    """
    written = write_planetoid(folder, "nell.0.001", extra=6)
    entities = len(written["label"])
    r1, r2, s1, s2 = (
        (entities, entities + 2, entities + 3, entities + 4)
        if split_relation
        else (entities, entities + 1, entities + 3, entities + 4)
    )
    lone = entities + 5  # an entity without label: the numbering of a component begins with one
    graph = {node: [r1 if node % 2 else r2] for node in range(entities)}
    graph |= {node: [r1, s1] for node in range(0, 40, 2)}
    graph |= {1: [r1, r2], lone: [s2], 3: [s2, r1]}
    others = set(range(entities, lone)) - {r1, r2, s1, s2}
    graph |= {node: [r1] for node in others}
    ends = {r1: [], r2: [], s1: [], s2: []}
    for node, its in graph.items():
        for relation in its:
            ends[relation].append(node)
    graph |= ends
    (folder / "ind.nell.0.001.graph").write_bytes(pickle.dumps(graph))
    return written | {"pairs": np.array([[r1, r2], [s1, s2]])}


def test_nell_as_in_the_paper_joins_relations_and_has_columns_in_place_of_text(root: Path) -> None:
    written = write_bipartite_nell(root / "nell" / "raw")
    published, paper = (load_dataset(name, data_root=root) for name in ("nell", "nell-paper"))
    pairs = set(map(tuple, written["pairs"].tolist()))
    assert edges_of(paper) - edges_of(published) == both_ways(list(pairs))
    assert edges_of(published) < edges_of(paper)
    taken = {*published.train.tolist(), *published.test.tolist()}
    dense = paper.features.to_dense()
    assert dense.shape == (726, 726 - len(taken))
    assert dense.sum(0).eq(1).all()
    has = dense.sum(1)
    assert {node for node in range(726) if has[node] == 0} == taken
    for split in ("train", "val", "test"):
        assert torch.equal(paper.split(split), published.split(split))
    assert torch.equal(paper.labels, published.labels)  # all three classes occur


def test_nell_of_other_files_is_not_taken_for_the_papers(root: Path) -> None:
    write_bipartite_nell(root / "nell" / "raw", split_relation=True)
    with refused():
        load_dataset("nell-paper", data_root=root)


def test_a_nell_that_is_not_bipartite_is_refused(root: Path) -> None:
    raw = root / "nell" / "raw"
    write_bipartite_nell(raw)
    graph = pickle.loads((raw / "ind.nell.0.001.graph").read_bytes())
    graph[1] = [*graph[1], 5]  # both of the first relation
    (raw / "ind.nell.0.001.graph").write_bytes(pickle.dumps(graph))
    with refused():
        load_dataset("nell-paper", data_root=root)


def test_the_papers_nell_is_that_of_its_authors(real_data: Path, graph_cache: Path) -> None:
    """Up to the numbering of nodes and classes: colour refinement, begun with training and test
    nodes and their classes' sizes, comes to as many nodes of each colour."""
    file = real_data / "nell" / "authors.npz"
    if not file.is_file():
        pytest.skip("authors.npz is not here")
    ours = load_dataset("nell-paper", data_root=real_data, cache=graph_cache)
    assert ours.num_classes == 105
    with np.load(file) as arrays:
        theirs = {name: arrays[name].astype(np.int64) for name in arrays}
    edges = np.stack([theirs["source"], theirs["target"]])
    edges = np.concatenate([edges, edges[::-1]], axis=1)
    label = np.full(len(ours.labels), -1)
    label[: len(theirs["label"])] = theirs["label"]
    first = refined(ours.edge_index().numpy(), ours.labels.numpy(), ours.train, ours.test)
    second = refined(edges, label, theirs["train"], theirs["test"])
    assert np.array_equal(np.sort(first), np.sort(second))
    assert len(np.unique(first)) > 10_000
    # A graph with one edge moved would not pass.
    edges[0, 0] = (edges[0, 0] + 1) % len(label)
    moved = refined(edges, label, theirs["train"], theirs["test"])
    assert not np.array_equal(np.sort(first), np.sort(moved))


def refined(
    edges: np.ndarray, label: np.ndarray, train: np.ndarray, test: np.ndarray
) -> np.ndarray:
    """(nodes,) colours by six rounds of refinement: a node's next colour hashes its own and the
    multiset of its neighbours'."""
    colour = np.zeros(len(label), dtype=np.uint64)
    split = np.concatenate([train, test])
    counts = np.bincount(label[split])
    colour[test] = 1_000 + counts[label[test]]
    colour[train] = 2_000 + counts[label[train]]

    def mixed(x: np.ndarray) -> np.ndarray:
        x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        return x ^ (x >> np.uint64(32))

    for _ in range(6):
        total = np.zeros_like(colour)
        np.add.at(total, edges[1], mixed(mixed(colour + np.uint64(77)))[edges[0]])
        colour = mixed(colour * np.uint64(31) + total * np.uint64(0x9E3779B97F4A7C15))
    return colour


# PPI


def test_ppi_is_one_graph_of_its_tissues_split_by_tissue(root: Path) -> None:
    write_ppi(root / "ppi" / "raw")
    graph = load_dataset("ppi", data_root=root)
    assert graph.features[:, 0].tolist() == list(range(15))
    number = torch.arange(15)
    assert torch.equal(graph.labels, torch.stack([number % 2 == 1, number % 3 == 1], 1).float())
    splits = [graph.split(s).tolist() for s in ("train", "val", "test")]
    assert splits == [[*range(7)], [*range(7, 10)], [*range(10, 15)]]
    paths = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (7, 8), (8, 9)]
    paths += [(10, 11), (11, 12), (12, 13), (13, 14)]
    assert edges_of(graph) == both_ways(paths)


def test_ppi_small_reads_graphsages_files(root: Path) -> None:
    write_toy_ppi(root / "ppi")
    graph = load_dataset("ppi-small", data_root=root)
    # a, b, c, d are rows 2, 0, 3, 1
    assert edges_of(graph) == {(2, 1), (1, 2), (0, 0), (3, 2), (2, 3)}
    assert graph.features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert graph.labels.tolist() == [[0, 1, 0], [1, 1, 1], [1, 0, 0], [0, 0, 1]]
    splits = [graph.split(s).tolist() for s in ("train", "val", "test")]
    assert splits == [[1, 2], [0], [3]]


def test_ppi_small_rebuilt_says_so_and_yields_to_the_published_files(
    real_data: Path, root: Path
) -> None:
    raw = DATASETS["ppi-small"].raw
    folder = raw.folder(real_data)
    if raw.present(folder) != raw.substitute:
        pytest.skip("the published toy-ppi is here, not the rebuilt one")
    graph = load_dataset("ppi-small", data_root=real_data)
    assert [len(graph.split(s)) for s in ("train", "val", "test")] == [9_716, 1_825, 3_214]
    assert (graph.num_features, graph.num_classes, graph.multilabel) == (50, 121, True)
    assert graph.names.nodes[0].as_py() == "blood:4790"
    assert graph.names.classes[1] == "GO_ENZYME_BINDING"
    inside = graph.among(graph.train)
    joins = torch.isin(graph.edge_index(), graph.train).all(0)
    assert inside.num_edges == int(joins.sum())
    assert "rebuilt from gene sets" in raw.note(folder)

    write_toy_ppi(root / "ppi")
    (root / "ppi" / "toy_ppi_rebuilt.npz").symlink_to(folder / "toy_ppi_rebuilt.npz")
    assert load_dataset("ppi-small", data_root=root).num_nodes == 4
    assert raw.note(raw.folder(root)) is None


# Reddit


@pytest.mark.parametrize(("name", "write"), [("reddit", write_reddit), ("reddit2", write_reddit2)])
def test_reddit_in_either_format(root: Path, name: str, write) -> None:
    write(root / name / "raw")
    graph = load_dataset(name, data_root=root)
    assert edges_of(graph) == both_ways([(0, 1), (1, 2), (3, 5)])
    assert graph.features.tolist() == np.arange(12.0).reshape(6, 2).tolist()
    assert graph.labels.tolist() == [0, 1, 2, 0, 1, 2]
    splits = [graph.split(s).tolist() for s in ("train", "val", "test")]
    assert splits == [[0, 1, 5], [2], [3, 4]]


# Without the files


def refuse(*_: object, **__: object) -> None:
    raise OSError("Name or service not known")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch_geometric.datasets as kinds

    monkeypatch.setattr("torch_geometric.io.fs.cp", refuse)
    for module in ("nell", "ppi", "reddit"):
        monkeypatch.setattr(sys.modules[f"{kinds.__name__}.{module}"], "download_url", refuse)
    reddit2 = sys.modules[f"{kinds.__name__}.reddit2"]
    monkeypatch.setattr(reddit2, "download_google_url", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    "name",
    ["cora", "citeseer", "pubmed", "nell", "nell-paper", "ppi", "ppi-small", "reddit", "reddit2"],
)
def test_without_files_and_network_the_error_lists_which_files_to_put_where(
    root: Path, name: str
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset(name, data_root=root)
    message = str(caught.value)
    raw = DATASETS[name].raw
    assert raw.url in message
    for file in raw.files:
        assert f"\n  {root / raw.folders[0] / file}" in message
    if name != "ppi-small":
        assert "OSError: Name or service not known" in message
    # Files put exactly there are found.
    assert raw.folder(root) == root / raw.folders[0]


def test_downloaded_files_go_to_the_data_root_when_all_are_there(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch_geometric.datasets import Planetoid

    write_planetoid(tmp_path / "web", "cora")
    broken = [True]

    def download(self: Planetoid) -> None:
        for place, file in enumerate(sorted((tmp_path / "web").iterdir())):
            if broken[0] and place == 3:
                raise OSError("connection lost")
            Path(self.raw_dir, file.name).write_bytes(file.read_bytes())

    monkeypatch.setattr(Planetoid, "download", download)
    with refused(FileNotFoundError):
        load_dataset("cora", data_root=root)
    assert not root.exists()
    broken[0] = False
    assert load_dataset("cora", data_root=root).num_nodes == 720
    names = sorted(file.name for file in (root / "planetoid" / "Cora" / "raw").iterdir())
    assert names == sorted(DATASETS["cora"].raw.files)
    monkeypatch.setattr(Planetoid, "download", refuse)
    assert load_dataset("cora", data_root=root).num_nodes == 720


def test_a_raw_file_cut_short_is_named_with_its_folder(root: Path) -> None:
    folder = root / "planetoid" / "Cora" / "raw"
    write_planetoid(folder, "cora")
    file = folder / "ind.cora.allx"
    file.write_bytes(file.read_bytes()[:50])
    with refused():
        load_dataset("cora", data_root=root)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("toy-ppi-G.json", b"[" * 100_000, "G.json is not valid JSON: it is nested too deeply"),
        ("toy-ppi-G.json", b'{"nodes": [], "links": []', "G.json is not valid JSON"),
        ("toy-ppi-G.json", b'{"links": []}', "KeyError: 'nodes'"),
        ("toy-ppi-id_map.json", b'{"a": 2, "b": 0, "c": 3, "d": -1}', "a row of its own"),
        ("toy-ppi-id_map.json", b'{"a": 2}', "KeyError"),
        ("toy-ppi-class_map.json", b"[]", "AttributeError"),
        ("toy-ppi-feats.npy", b"\x93NUMPY\x01\x00", "feats.npy: its header is damaged"),
        ("toy-ppi-feats.npy", b"PK\x03\x04....", "feats.npy: it is an archive"),
    ],
)
def test_damaged_files_of_ppi_small_are_refused_with_their_place(
    root: Path, file: str, content: bytes, message: str
) -> None:
    write_toy_ppi(root / "ppi")
    (root / "ppi" / file).write_bytes(content)
    with refused() as told:
        load_dataset("ppi-small", data_root=root)
    assert message in str(told.value)


def test_a_link_of_ppi_small_that_leads_nowhere_is_refused(root: Path) -> None:
    write_toy_ppi(root / "ppi")
    file = root / "ppi" / "toy-ppi-G.json"
    described = json.loads(file.read_text())
    described["links"].append({"source": -1, "target": 0})  # Python would take the last node
    file.write_text(json.dumps(described))
    with refused():
        load_dataset("ppi-small", data_root=root)


def test_rebuilt_files_of_ppi_small_are_looked_at_before_they_are_read(root: Path) -> None:
    (root / "ppi").mkdir(parents=True)
    np.savez(root / "ppi" / "toy_ppi_rebuilt.npz", edges=np.array([{}, None], dtype=object))
    with refused():
        load_dataset("ppi-small", data_root=root)


@pytest.mark.parametrize(
    "arrays",
    [
        {"other": np.arange(3)},
        {"val_suggested": np.array([0.5, 7])},
        {"val_suggested": np.array([7, 7])},
        {"val_suggested": np.array([7, None])},
    ],
)
def test_a_list_of_validation_nodes_that_is_none_is_refused_by_its_name(
    root: Path, arrays: dict[str, np.ndarray]
) -> None:
    write_nell(root / "nell" / "raw")
    np.savez(root / "nell" / "known_labels.npz", **arrays)
    with refused():
        load_dataset("nell", data_root=root)


# OGB


def test_ogb_is_asked_for_when_it_is_needed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ogb", None)
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", None)
    with refused():
        load_dataset("ogbn-arxiv", data_root=root)


def test_a_graph_of_ogb_has_its_split_and_its_failure_a_place_for_the_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch_geometric.data import Data

    def dataset(name: str, root: str) -> SimpleNamespace:
        if name != "ogbn-arxiv":
            raise EOFError  # the prompt about a large download ends so without a terminal
        data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1], [1, 2]]))
        data.y = torch.tensor([[0], [1], [1], [0]])
        split = {"train": torch.tensor([3, 0]), "valid": torch.tensor([1])}
        split["test"] = torch.tensor([2])
        return type("Fake", (list,), {"get_idx_split": lambda self: split})([data])

    fake = ModuleType("ogb.nodeproppred")
    fake.PygNodePropPredDataset = dataset
    monkeypatch.setitem(sys.modules, "ogb", ModuleType("ogb"))
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", fake)
    graph = load_dataset("ogbn-arxiv", data_root=root)
    assert edges_of(graph) == {(0, 1), (1, 2)}
    assert graph.labels.tolist() == [0, 1, 1, 0]
    splits = [graph.split(s).tolist() for s in ("train", "val", "test")]
    assert splits == [[0, 3], [1], [2]]
    with refused():
        load_dataset("ogbn-mag", data_root=root)


class FakeOgb:
    """Reads as ogb does: what it made before, then a split that is a pickle, then tables."""

    def __init__(self, name: str, root: str) -> None:
        self.home = Path(root) / name.replace("-", "_")
        made = self.home / "processed" / "geometric_data_processed.pt"
        if made.exists():
            pickle.loads(made.read_bytes())
        made.parent.mkdir(exist_ok=True)
        made.write_bytes(pickle.dumps(1))

    def __getitem__(self, place: int) -> object:
        from torch_geometric.data import Data

        edges = np.loadtxt(self.home / "raw" / "edge.csv", dtype=np.int64, delimiter=",")
        return Data(x=torch.eye(3), edge_index=torch.from_numpy(edges.T), y=torch.arange(3) % 2)

    def get_idx_split(self) -> dict[str, torch.Tensor]:
        return {name: torch.tensor([i]) for i, name in enumerate(("train", "valid", "test"))}


class Harm:
    def __reduce__(self) -> object:
        return print, ("harm",)


@pytest.fixture
def ogb_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = root / "ogb" / "ogbn_arxiv"
    (home / "raw").mkdir(parents=True)
    (home / "raw" / "edge.csv").write_text("0,1\n1,2\n")
    fake = ModuleType("ogb.nodeproppred")
    fake.PygNodePropPredDataset = FakeOgb
    monkeypatch.setitem(sys.modules, "ogb", ModuleType("ogb"))
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", fake)
    return home


def test_what_ogb_pickled_before_is_not_read_again(ogb_files: Path, root: Path, capsys) -> None:
    (ogb_files / "processed").mkdir()
    made = ogb_files / "processed" / "geometric_data_processed.pt"
    made.write_bytes(pickle.dumps(Harm()))
    graph = load_dataset("ogbn-arxiv", data_root=root)
    assert edges_of(graph) == {(0, 1), (1, 2)}
    assert capsys.readouterr().out == ""
    assert made.read_bytes() == pickle.dumps(Harm())  # and left as it was


def test_raw_files_of_ogb_are_looked_at_before_ogb_sees_them(ogb_files: Path, root: Path) -> None:
    split = ogb_files / "split" / "time" / "split_dict.pt"
    split.parent.mkdir(parents=True)
    split.write_bytes(pickle.dumps(Harm()))
    with refused():
        load_dataset("ogbn-arxiv", data_root=root)
    split.unlink()
    np.savez(ogb_files / "raw" / "data.npz", x=np.array([None], dtype=object))
    with refused():
        load_dataset("ogbn-arxiv", data_root=root)


@pytest.mark.parametrize("number", ["1e999", "12345678901234567890123"])
def test_a_number_that_no_array_holds_is_told(root: Path, number: str) -> None:
    write_toy_ppi(root / "ppi")
    file = root / "ppi" / "toy-ppi-G.json"
    file.write_text(re.sub(r'"source": \d+', f'"source": {number}', file.read_text(), count=1))
    with refused():
        load_dataset("ppi-small", data_root=root)
