"""A generated store: users, items and shops, with four relations between them, in pieces.

Nodes of every kind belong to communities, and an edge stays inside a community with probability
`homophily`. A community has one class, which is the label of its users. Users and items have
features around the centre of their class; shops have none. The same description and seed make the
same store, as a graph or as tables to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from vrgcn.data.generate_spec import GenerateSpec
from vrgcn.data.store import write_array, write_meta
from vrgcn.data.store_format import BlockPlace, RelationPlace
from vrgcn.data.tables.adjacency import EdgeFile, write_adjacency
from vrgcn.data.tables.growing import GrowingArray
from vrgcn.files.writing import new_folder
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.names import Names
from vrgcn.graph.validation import SPLITS

PIECE = 1 << 20  # edges, and rows of features, that are drawn at a time
USER, ITEM, SHOP = "user", "item", "shop"
SHARES = {USER: 0.6, ITEM: 0.35, SHOP: 0.05}  # of the nodes
# Kinds at the ends, name, and share of the edges.
RELATIONS = (
    (USER, "bought", ITEM, 0.5),
    (USER, "viewed", ITEM, 0.2),
    (USER, "follows", USER, 0.25),
    (ITEM, "sold_by", SHOP, 0.05),
)
FILES = {USER: "users", ITEM: "items", SHOP: "shops"}
_CLASS, _ORDER, _CENTRES, _SPLIT, _EDGES, _FEATURES = range(10, 16)  # random streams
_CONTRAST = 0.5  # distance of the centres of two classes, in deviations of a feature

Int64s = NDArray[np.int64]
Tell = Callable[[float], None]


def generate_kinds(spec: GenerateSpec, path: str | Path, on_piece: Tell | None = None) -> int:
    """Write the store to the new folder `path`; gives the number of its edges.

    on_piece: told the share of the work that is done, 0 to 1
    """
    store = Store(spec)
    tell = on_piece or (lambda done: None)
    with new_folder(path) as folder:
        if spec.tables == "none":
            return _write_graph(store, folder, tell)
        return _write_tables(store, folder, spec.tables, tell)


@dataclass(frozen=True)
class Store:
    """What a store consists of, drawn piece by piece."""

    spec: GenerateSpec

    @property
    def sizes(self) -> dict[str, int]:
        nodes = self.spec.nodes
        shops, items = (max(1, round(SHARES[kind] * nodes)) for kind in (SHOP, ITEM))
        return {USER: nodes - items - shops, ITEM: items, SHOP: shops}

    @property
    def widths(self) -> dict[str, int]:
        return {USER: self.spec.features, ITEM: max(1, self.spec.features // 2), SHOP: 0}

    @property
    def groups(self) -> int:
        """Communities, each with nodes of every kind."""
        return max(1, min(-(-self.spec.nodes // self.spec.community), *self.sizes.values()))

    def edges(self, number: int) -> Iterator[tuple[Int64s, Int64s]]:
        """Pieces of the edges of a relation: numbers of sources and targets within their kinds."""
        source, _, target, share = RELATIONS[number]
        count = round(share * self.spec.nodes * self.spec.degree / 2)
        orders = self._order(source), self._order(target)
        for piece, start in enumerate(range(0, count, PIECE)):
            rng = self._random(_EDGES, number, piece)
            some = min(PIECE, count - start)
            ends = self._piece(source, target, some, rng)
            ends_of_edges = [order[end] for order, end in zip(orders, ends, strict=True)]
            other = (
                ends_of_edges[0] != ends_of_edges[1] if source == target else np.ones(some, bool)
            )
            yield ends_of_edges[0][other], ends_of_edges[1][other]

    def _piece(
        self, source: str, target: str, count: int, rng: np.random.Generator
    ) -> tuple[Int64s, Int64s]:
        """Places of the ends of edges; some nodes of a community are much more popular."""
        starts = rng.integers(self.sizes[source], size=count)
        inside = rng.random(count) < self.spec.homophily
        group = np.where(inside, self._group(source)[starts], rng.integers(self.groups, size=count))
        first, end = self._range(target, group), self._range(target, group + 1)
        return starts, first + ((end - first) * rng.random(count) ** 2).astype(np.int64)

    def _group(self, kind: str) -> Int64s:
        """(nodes of the kind,) the community of each place."""
        return np.arange(self.sizes[kind]) * self.groups // self.sizes[kind]

    def _range(self, kind: str, group: Int64s) -> Int64s:
        """The first place of communities."""
        return -(-group * self.sizes[kind] // self.groups)

    def _order(self, kind: str) -> Int64s:
        """(nodes of the kind,) the number of the node at each place."""
        if self.spec.order == "communities":
            return np.arange(self.sizes[kind])
        return self._random(_ORDER, list(FILES).index(kind)).permutation(self.sizes[kind])

    def classes(self, kind: str) -> Int64s:
        """(nodes of the kind,) the class of each node's community."""
        drawn = self._random(_CLASS).integers(self.spec.classes, size=self.groups)
        classes = np.empty(self.sizes[kind], np.int64)
        classes[self._order(kind)] = drawn[self._group(kind)]
        return classes

    def features(self, kind: str) -> Iterator[NDArray[np.float32]]:
        """Pieces of the features of a kind, (rows, width)."""
        number, width = list(FILES).index(kind), self.widths[kind]
        shape = self.spec.classes, width
        centres = _CONTRAST * self._random(_CENTRES, number).standard_normal(shape, np.float32)
        classes, rows = self.classes(kind), max(1, PIECE // max(width, 1))
        for piece, start in enumerate(range(0, len(classes), rows)):
            some = classes[start : start + rows]
            noise = self._random(_FEATURES, number, piece)
            yield centres[some] + noise.standard_normal((len(some), width), dtype=np.float32)

    def splits(self) -> list[Int64s]:
        """Numbers of the users of each split, ascending."""
        ends = np.cumsum([0.0, self.spec.train, self.spec.val, self.spec.test])
        drawn = self._random(_SPLIT).random(self.sizes[USER])
        return [np.flatnonzero((drawn >= low) & (drawn < high)) for low, high in pairwise(ends)]

    def _random(self, *what: int) -> np.random.Generator:
        return np.random.default_rng((self.spec.seed, *what))


def _write_graph(store: Store, folder: Path, tell: Tell) -> int:
    kinds = Kinds(store.sizes, USER, store.widths)
    places = []
    for number, (source, name, target, _) in enumerate(RELATIONS):
        pairs = EdgeFile("generated edges", folder, kinds.num_nodes, False, number)
        first, other = kinds.range(source).start, kinds.range(target).start
        for starts, ends in store.edges(number):
            pairs.append(starts + first, ends + other, None)
        entries = write_adjacency(pairs, directed=True).entries
        places.append(RelationPlace(source, name, target, entries, weighted=False))
        tell(0.8 * (number + 1) / len(RELATIONS))
    blocks: list[BlockPlace] = []
    for kind in (USER, ITEM):
        rows, columns = kinds.range(kind), kinds.columns(kind)
        block = BlockPlace(rows.start, columns.start, len(rows), len(columns), None)
        [name] = block.files(len(blocks))
        with GrowingArray(folder / f"{name}.npy", np.float32, (len(columns),)) as file:
            for piece in store.features(kind):
                file.append(piece)
        blocks.append(block)
    labels = np.full(kinds.num_nodes, -1, np.int64)
    labels[: store.sizes[USER]] = store.classes(USER)
    write_array(folder, "labels", labels)
    for name, ids in zip(SPLITS, store.splits(), strict=True):
        write_array(folder, name, ids)
    write_meta(
        *(folder, kinds, Names(kinds=kinds), places, blocks),
        num_classes=store.spec.classes,
        task="classes",
    )
    tell(1.0)
    return sum(place.edges for place in places)


def _write_tables(store: Store, folder: Path, suffix: str, tell: Tell) -> int:
    split = np.full(store.sizes[USER], "", dtype="<U5")
    for name, ids in zip(SPLITS, store.splits(), strict=True):
        split[ids] = name
    for kind, file in FILES.items():
        with _TableFile(folder / f"{file}.{suffix}") as table:
            start = 0
            for piece in store.features(kind):
                rows = slice(start, start + len(piece))
                columns: dict[str, Any] = {"id": np.arange(rows.start, rows.stop) + 1}
                columns |= {f"f{index}": column for index, column in enumerate(piece.T)}
                if kind == USER:
                    columns |= {"class": store.classes(USER)[rows], "split": split[rows]}
                table.write(columns)
                start = rows.stop
    edges = 0
    for number, (source, name, target, _) in enumerate(RELATIONS):
        ends = (source, target) if source != target else ("source", "target")
        with _TableFile(folder / f"{name}.{suffix}") as table:
            for pair in store.edges(number):
                table.write({end: numbers + 1 for end, numbers in zip(ends, pair, strict=True)})
                edges += len(pair[0])
        tell((number + 1) / len(RELATIONS))
    return edges


class _TableFile:
    """A CSV or Parquet file that is written in pieces."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def __enter__(self) -> _TableFile:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, columns: dict[str, Any]) -> None:
        table = pa.table({name: pa.array(np.ascontiguousarray(c)) for name, c in columns.items()})
        if self._writer is None:
            parquet = self._path.suffix == ".parquet"
            kind = pa.parquet.ParquetWriter if parquet else pa.csv.CSVWriter
            self._writer = kind(self._path, table.schema)
        self._writer.write_table(table)


def import_command(spec: GenerateSpec, folder: Path) -> str:
    """Return the command that imports the tables in a folder."""
    nodes = " ".join(f"{kind}={folder / file}.{spec.tables}" for kind, file in FILES.items())
    edges = " ".join(
        f"{source}-{name}-{target}={folder / name}.{spec.tables}"
        for source, name, target, _ in RELATIONS
    )
    return f"vrgcn import --nodes {nodes} --edges {edges} --label {USER}.class --out GRAPH"
