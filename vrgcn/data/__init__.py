"""Graphs by name.

A new dataset is one line in `DATASETS` and a function that makes the Graph, imported when it is
asked for: from a seed if the graph is generated, from a folder if it has raw files. Nothing here
imports PyTorch: `vrgcn --help` and `vrgcn datasets` answer without that wait.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vrgcn.data.named import Raw
from vrgcn.files.mistakes import InputError

if TYPE_CHECKING:
    from vrgcn.graph.graph import Graph


class Size(NamedTuple):
    """The size of a dataset, as text. edges: entries of the adjacency, two for an undirected
    edge"""

    nodes: str
    edges: str
    features: str
    classes: str


class Dataset(NamedTuple):
    """One line of the table.

    make: seed -> Graph; or, for a dataset with raw files, their folder -> Graph.
    description: one line for people.
    cached: keep the graph on disk, because making it takes long.
    version: part of the cached graph's name; to be raised whenever `make` gives another graph.
    size: known before anything is made or read.
    source: who makes or publishes it.
    raw: its files; None for a graph that is generated.
    scaling: what the paper does to the features before training, a kind of `graph.scaling`; the
        graph itself has them as published.
    inductive: the paper trains on the edges among training nodes alone.
    """

    make: Callable[[Any], Graph]
    description: str
    cached: bool = False
    version: int = 1
    size: Size = Size("–", "–", "–", "–")
    source: str = "built-in"
    raw: Raw | None = None
    scaling: str = "none"
    inductive: bool = False


def _later(module: str, function: str, *given: str) -> Callable[[Any], Graph]:
    """A function of `vrgcn.data`, its first arguments given, its module imported when called."""

    def make(argument: Any) -> Graph:
        home = importlib.import_module(f"vrgcn.data.{module}")
        graph: Graph = getattr(home, function)(*given, argument)
        return graph

    return make


def _folders(*names: str) -> tuple[str, ...]:
    """Return possible folders of raw files, relative to the data root; downloads go to the
    first."""
    return tuple(f"{name}/{part}" for name in (*names, ".") for part in ("raw", "."))


_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


def _planetoid(name: str, size: Size) -> Dataset:
    files = tuple(f"ind.{name.lower()}.{part}" for part in _PARTS)
    return Dataset(
        _later("named", "planetoid", name),
        "papers and their citations; 20 training nodes a class",
        cached=True,
        size=size,
        source="PyG",
        raw=Raw(
            _folders(f"planetoid/{name}", f"Planetoid/{name}", name, name.lower()),
            files,
            url="https://github.com/kimiyoung/planetoid/raw/master/data",
        ),
        scaling="row",
    )


_NELL = Raw(
    _folders("nell", "NELL"),
    tuple(f"ind.nell.0.001.{part}" for part in _PARTS),
    url="http://www.cs.cmu.edu/~zhiliny/data/nell_data.tar.gz",
    beside=("known_labels.npz",),
)
_PPI = tuple(
    f"{split}_{part}"
    for split in ("train", "valid", "test")
    for part in ("feats.npy", "graph_id.npy", "graph.json", "labels.npy")
)
_TOY_PPI = tuple(f"toy-ppi-{x}" for x in ("G.json", "id_map.json", "class_map.json", "feats.npy"))

DATASETS: dict[str, Dataset] = {
    "communities": Dataset(
        _later("synthetic", "communities"),
        "synthetic: 20,000 nodes, average degree 50, 64 features, 16 classes",
        size=Size("20,000", "1.0M", "64", "16"),
    ),
    "sparse-communities": Dataset(
        _later("synthetic", "sparse_communities"),
        "synthetic: 30,000 nodes, average degree 3.5, 32 features, 12 classes; depth pays",
        size=Size("30,000", "105,000", "32", "12"),
    ),
    "reddit-like": Dataset(
        _later("synthetic", "reddit_like"),
        "synthetic, the size of Reddit: 232,965 nodes, 23M edges, 602 features, 41 classes",
        cached=True,
        size=Size("232,965", "23M", "602", "41"),
    ),
    "reddit-like-strong": Dataset(
        _later("synthetic", "reddit_like_strong"),
        "synthetic, the same size, with telling neighbours: ten of them suffice",
        cached=True,
        size=Size("232,965", "23M", "602", "41"),
    ),
    "cora": _planetoid("Cora", Size("2,708", "10,556", "1,433", "7")),
    "citeseer": _planetoid("CiteSeer", Size("3,327", "9,104", "3,703", "6")),
    "pubmed": _planetoid("PubMed", Size("19,717", "88,648", "500", "3")),
    "nell": Dataset(
        _later("nell", "nell"),
        "entities and relations as published, with text features; 105 training nodes",
        cached=True,
        size=Size("65,755", "251,550", "61,278", "186"),
        source="PyG",
        raw=_NELL,
        scaling="row",
    ),
    "nell-paper": Dataset(
        _later("nell", "nell_paper"),
        "NELL as in the paper: relations' two nodes joined, and no text features",
        cached=True,
        size=Size("65,755", "252,380", "64,681", "105"),
        source="PyG",
        raw=_NELL,
        scaling="row",
    ),
    "ppi": Dataset(
        _later("named", "ppi"),
        "proteins in 24 tissues, 20 of them for training; several classes per node",
        cached=True,
        size=Size("56,944", "1.6M", "50", "121"),
        source="PyG",
        raw=Raw(_folders("ppi", "PPI"), _PPI, url="https://data.dgl.ai/dataset/ppi.zip"),
        scaling="standard",
        inductive=True,
    ),
    "ppi-small": Dataset(
        _later("ppi_small", "ppi_small"),
        "PPI in the paper's size, GraphSAGE's toy-ppi: 5 tissues, 3 of them for training",
        cached=True,
        size=Size("14,755", "450,540", "50", "121"),
        source="GraphSAGE",
        raw=Raw(
            _folders("ppi-small", "ppi", "PPI"),
            _TOY_PPI,
            url="https://github.com/williamleif/GraphSAGE/tree/master/example_data",
            substitute=("toy_ppi_rebuilt.npz",),
            substitute_note="real edges and split; features and labels rebuilt from gene sets and "
            "harder than the published ones: not comparable with published scores",
            beside=("columns.json",),
        ),
        scaling="standard",
        inductive=True,
    ),
    "reddit": Dataset(
        _later("named", "reddit", "Reddit"),
        "posts, joined where the same person commented on both",
        cached=True,
        size=Size("232,965", "114,615,892", "602", "41"),
        source="PyG",
        raw=Raw(
            _folders("reddit", "Reddit"),
            ("reddit_data.npz", "reddit_graph.npz"),
            url="https://data.dgl.ai/dataset/reddit.zip",
        ),
        scaling="standard",
        inductive=True,
    ),
    "reddit2": Dataset(
        _later("named", "reddit", "Reddit2"),
        "the same posts with fewer edges, as many as in the paper's Table 1",
        cached=True,
        size=Size("232,965", "23,213,838", "602", "41"),
        source="PyG",
        raw=Raw(
            _folders("reddit2", "Reddit2"),
            ("adj_full.npz", "feats.npy", "class_map.json", "role.json"),
            url="https://github.com/GraphSAINT/GraphSAINT#datasets",
        ),
        scaling="standard",
        inductive=True,
    ),
}
OGB = "ogbn-"


def find_dataset(name: str) -> Dataset:
    """The line of the table called `name`, or one made up for a name that begins with `ogbn-`."""
    if name in DATASETS:
        return DATASETS[name]
    if name.startswith(OGB) and name != OGB:
        return Dataset(
            _later("ogb", "ogb", name),
            f"{name} of the Open Graph Benchmark",
            source="OGB",
            raw=Raw(("ogb",), (), url="https://ogb.stanford.edu"),
            scaling="standard",
        )
    raise InputError(
        f"there is no dataset {name!r}; there are {', '.join(DATASETS)}, and {OGB}* of OGB"
    )


def load_dataset(
    name: str,
    seed: int = 0,
    cache: str | Path | None = None,
    data_root: str | Path | None = None,
    verify: bool = False,
) -> Graph:
    """The graph called `name` in `DATASETS`, its features as published.

    seed: of the generator, for a graph that is generated.
    cache: the folder for graphs that take long to make; by default `cache_folder()`.
    data_root: the folder where raw files lie or go; by default `root_folder()`.
    verify: read all of a graph from the cache first, and refuse it if it was damaged there.
    """
    dataset = find_dataset(name)
    origin = seed if dataset.raw is None else dataset.raw.folder(root_folder(data_root))
    if not dataset.cached:
        return dataset.make(origin)
    from vrgcn.data.store import load_graph, save_graph, verify_graph
    from vrgcn.data.store_format import opened_store

    folder = Path(cache) if cache is not None else cache_folder()
    path = folder / _cached_name(name, dataset, origin)
    if not path.exists():
        graph = dataset.make(origin)
        path = folder / _cached_name(name, dataset, origin)  # raw files may be there only now
        with suppress(FileExistsError):  # another process may have made it meanwhile
            save_graph(graph, path)
        verify = False
    with opened_store(path) as opened:
        if verify:
            verify_graph(opened)
        return load_graph(opened)


def _cached_name(name: str, dataset: Dataset, origin: Any) -> str:
    from vrgcn.data.store_format import VERSION

    made_of = f"seed{origin}" if dataset.raw is None else dataset.raw.fingerprint(origin)
    return f"{name}-{made_of}-v{dataset.version}-store{VERSION}"


def root_folder(chosen: str | Path | None = None) -> Path:
    """The folder for raw files: the chosen one, or else `$VRGCN_DATA`, or else `data`."""
    return Path(chosen or os.environ.get("VRGCN_DATA") or "data")


def cache_folder() -> Path:
    """`$VRGCN_CACHE`, or else `vrgcn` in `$XDG_CACHE_HOME`, which is `~/.cache` if not set."""
    chosen = os.environ.get("VRGCN_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vrgcn"
