"""The files in the folder of a graph: its arrays by name, and `meta.json`, which describes them.

A new array is a line in `Meta.matrices` or `Meta.arrays`; writing, mapping, checking and checksums
follow them. Kinds, relations, blocks and kept columns may have any name; their files are numbered
in their order. A graph of one table has one kind, called "", and one relation, "edges".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vrgcn.data.sources import META
from vrgcn.files.checksums import value_checksum
from vrgcn.files.folder import OpenFolder, opened_folder
from vrgcn.files.kinds import (
    COUNT,
    FLAG,
    NAMES,
    POSITIVE,
    TEXT,
    Kind,
    check_kinds,
    is_count,
    is_text,
    list_of,
    objects_of,
    one_of,
    or_null,
)
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import parse_json
from vrgcn.graph.dated import Dated
from vrgcn.graph.kept import COLUMN_KINDS, NODES, ColumnKind, dtype_of
from vrgcn.graph.kinds import ONE, Kinds
from vrgcn.graph.relations import Triple, relation_name
from vrgcn.graph.validation import SPLITS
from vrgcn.tasks import TASKS, find_task, is_task

FORMAT = "vrgcn-graph"
VERSION = 1
CHECKSUM = "checksum"  # checksum of meta.json itself, without this entry
# A number alone must not make a model of terabytes: the most without as many nodes, or entries.
_MOST_CLASSES = 1 << 20
_MOST_FEATURES = 1 << 24
_FLOATS = ("float32", "float64")
_DENSE = ("float16", *_FLOATS)
MATRIX = ("indptr", "indices", "weights")
DENSE_FEATURES = ("features",)
SPARSE_FEATURES = ("feature_indptr", "feature_indices", "feature_values")

Source = str | Path | OpenFolder  # path of a graph, or its folder, already open
Shape = tuple[tuple[int, ...], tuple[str, ...]]  # of an array, and the types it may have


def numbered(names: tuple[str, ...], number: int) -> tuple[str, ...]:
    """Names of the arrays of relation, block or kept column `number`."""
    return tuple(f"{name}_{number}" for name in names)


def ids_file(number: int) -> str:
    """The file with the user's own ids of the nodes of kind `number`."""
    return f"ids_{number}.arrow"


@dataclass(frozen=True)
class BlockPlace:
    """The place of a block of features, and its layout. entries: of a sparse block, else None"""

    row: int
    column: int
    rows: int
    width: int
    entries: int | None

    def files(self, number: int) -> tuple[str, ...]:
        return numbered(DENSE_FEATURES if self.entries is None else SPARSE_FEATURES, number)

    def overlaps(self, other: BlockPlace) -> bool:
        rows = self.row < other.row + other.rows and other.row < self.row + self.rows
        left, right = sorted((self, other), key=lambda block: block.column)
        return rows and right.column < left.column + left.width


@dataclass(frozen=True)
class RelationPlace:
    """A relation as `meta.json` describes it, without its reverse.

    edges: entries of its adjacency, which is one over the numbering of all nodes
    undirected: the adjacency is symmetric, so that the matrix of the reversed edges is not stored
    one_way: it has no reverse; the matrix of the reversed edges is stored for gradients
    """

    source: str
    name: str
    target: str
    edges: int
    weighted: bool
    undirected: bool = False
    one_way: bool = False

    @property
    def triple(self) -> Triple:
        return self.source, self.name, self.target

    def files(self, number: int) -> list[tuple[str, ...]]:
        """Names of the arrays of its matrix, and of that of the reversed edges."""
        prefixes = ("",) if self.undirected else ("", "reverse_")
        return [numbered(tuple(prefix + part for part in MATRIX), number) for prefix in prefixes]


@dataclass(frozen=True)
class KeptPlace:
    """A kept column: a value for each edge of a relation, in the order of its entries, or for each
    node of a kind.

    owner: the relation or kind, as in `Graph.kept`
    """

    owner: str
    name: str
    kind: ColumnKind
    classes: tuple[str, ...] = ()


def kept_file(number: int) -> str:
    """Name of the array of a kept column."""
    return f"kept_{number}"


@dataclass(frozen=True)
class Matrix:
    """A sparse matrix of a folder, and its size.

    names: of its arrays: starts of rows, columns, values
    kinds: the types that values may have
    valued: whether there are values; without them all are 1
    ascending: whether the columns of each row ascend, none twice
    within: the ranges of rows and of columns that have entries; None for all
    """

    names: tuple[str, ...]
    rows: int
    entries: int
    columns: int
    kinds: tuple[str, ...]
    valued: bool
    ascending: bool
    within: tuple[range, range] | None = None

    @property
    def indptr(self) -> str:
        return self.names[0]

    @property
    def indices(self) -> str:
        return self.names[1]


@dataclass(frozen=True)
class Meta:
    """What a folder holds.

    with_ids: the kinds whose nodes have ids of the user's own
    labelled: whether there are labels
    splits: the size of each split
    classes, features: names of classes and of feature columns
    dated: what is known of time; None if rows have no time of their own
    dtypes: NumPy's type of each array; checksums: of each file
    """

    kinds: Kinds
    with_ids: tuple[str, ...]
    relations: tuple[RelationPlace, ...]
    blocks: tuple[BlockPlace, ...]
    kept: tuple[KeptPlace, ...]
    task: str
    num_classes: int
    labelled: bool
    splits: Mapping[str, int]
    classes: list[str] | None
    features: list[str] | None
    dated: Dated | None
    dtypes: Mapping[str, str]
    checksums: Mapping[str, str]

    @staticmethod
    def of(entries: Mapping[str, Any]) -> Meta:
        """The contents of `meta.json`, all entries of which are of the right kind."""
        kinds = entries["kinds"]
        sizes = {kind["name"]: kind["nodes"] for kind in kinds}
        widths = {kind["name"]: kind["width"] for kind in kinds}
        return Meta(
            kinds=Kinds(sizes, entries["target"], widths),
            with_ids=tuple(kind["name"] for kind in kinds if kind["ids"]),
            relations=tuple(RelationPlace(**relation) for relation in entries["relations"]),
            blocks=tuple(BlockPlace(**block) for block in entries["blocks"]),
            kept=tuple(
                KeptPlace(**column | {"classes": tuple(column["classes"])})
                for column in entries["kept"]
            ),
            dated=None if entries["dated"] is None else Dated.read(entries["dated"]),
            **{name: entries[name] for name in _PLAIN},
        )

    def entries(self) -> dict[str, Any]:
        """The entries of `meta.json`, but for its own checksum."""
        kinds = [
            {
                "name": name,
                "nodes": size,
                "width": self.kinds.widths.get(name, 0),
                "ids": name in self.with_ids,
            }
            for name, size in self.kinds.sizes.items()
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "kinds": kinds,
            "target": self.kinds.target,
            "relations": [asdict(relation) for relation in self.relations],
            "blocks": [asdict(block) for block in self.blocks],
            "kept": [asdict(column) | {"classes": list(column.classes)} for column in self.kept],
            **({} if self.dated is None else {"dated": self.dated.entries()}),
            **{name: getattr(self, name) for name in _PLAIN},
        }

    @property
    def nodes(self) -> int:
        return self.kinds.num_nodes

    @property
    def width(self) -> int:
        return sum(self.kinds.widths.values())

    def id_files(self) -> dict[str, str]:
        """The files of ids, by kind."""
        places = {kind: ids_file(number) for number, kind in enumerate(self.kinds.names)}
        return {kind: places[kind] for kind in self.with_ids}

    @cached_property
    def rows(self) -> dict[str, int]:
        """How many values a kept column of each owner has."""
        edges = {relation_name(each.triple): each.edges for each in self.relations}
        return edges | {kind or NODES: size for kind, size in self.kinds.sizes.items()}

    def matrices(self) -> Iterator[Matrix]:
        """The sparse matrices."""
        nodes = self.nodes
        for number, place in enumerate(self.relations):
            ranges = self.kinds.range(place.target), self.kinds.range(place.source)
            for names, within in zip(place.files(number), (ranges, ranges[::-1]), strict=False):
                size = nodes, place.edges, nodes
                yield Matrix(names, *size, ("float32",), place.weighted, True, within)
        for number, block in enumerate(self.blocks):
            if block.entries is not None:
                size = block.rows, block.entries, block.width
                yield Matrix(block.files(number), *size, _FLOATS, True, False)

    def arrays(self) -> dict[str, Shape]:
        """The arrays that the folder must have."""
        integers = ("int64",)
        arrays: dict[str, Shape] = {}
        for matrix in self.matrices():
            arrays[matrix.indptr] = (matrix.rows + 1,), integers
            arrays[matrix.indices] = (matrix.entries,), integers
            if matrix.valued:
                arrays[matrix.names[2]] = (matrix.entries,), matrix.kinds
        dense = _DENSE if len(self.blocks) == 1 else _FLOATS
        for number, block in enumerate(self.blocks):
            if block.entries is None:
                arrays[block.files(number)[0]] = (block.rows, block.width), dense
        if self.labelled:
            arrays["labels"] = find_task(self.task).stored(self.nodes, self.num_classes)
        for number, column in enumerate(self.kept):
            dtype = str(dtype_of(column.kind)).removeprefix("torch.")
            arrays[kept_file(number)] = (self.rows[column.owner],), (dtype,)
        return arrays | {name: ((self.splits[name],), integers) for name in SPLITS}


_PLAIN = (
    *("task", "num_classes", "labelled", "splits", "classes", "features"),
    *("dtypes", "checksums"),
)


def signed(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The same entries of `meta.json` with their own checksum."""
    return {**entries, CHECKSUM: value_checksum(entries)}


@contextmanager
def opened_store(source: Source) -> Iterator[OpenFolder]:
    """The folder of a graph, all of whose files are read as of one moment."""
    if not isinstance(source, OpenFolder):
        source = Path(source)
        if not source.exists():
            raise FileNotFoundError(f"{source}: there is no such folder")
        if not source.is_dir():
            raise InputError(f"{source} is not a saved graph: it is a file")
    with opened_folder(source) as folder:
        yield folder


def read_meta(folder: OpenFolder) -> Meta:
    """The `meta.json` of a graph's folder, all entries of the right kind and in agreement."""
    path, file = folder.path, folder.path / META
    if not folder.is_file(META):
        raise InputError(f"{path} is not a saved graph: it has no {META}")
    entries = parse_json(folder.read(META), str(file))
    if not isinstance(entries, dict) or entries.get("format") != FORMAT:
        raise InputError(f"{path} is not a saved graph: {file} does not say format {FORMAT!r}")
    version = entries.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError(
            f"{file} has version {version!r}, and this vrgcn reads version {VERSION}: import or "
            "save the graph again"
        )
    if entries.pop(CHECKSUM, None) != value_checksum(entries):
        raise InputError(
            f"{file} is damaged, or was changed by hand: its checksum is another; save the graph "
            "again"
        )
    entries.setdefault("dated", None)
    check_kinds(str(file), entries, _KINDS)
    names = [kind["name"] for kind in entries["kinds"]]
    _refuse(file, _wrong_names(names, entries["target"]))
    meta = Meta.of(entries)
    _refuse(file, _wrong_relations(meta))
    _refuse(file, _wrong_features(meta))
    _refuse(file, _wrong_kept(meta))
    _refuse(file, _wrong_dated(meta))
    _refuse(file, _wrong_labels(meta))
    return meta


def content_checksum(meta: Meta) -> str:
    """Return the checksum of all files of a graph on disk except its splits."""
    splits = [f"{name}.npy" for name in SPLITS]
    sums = {name: value for name, value in meta.checksums.items() if name not in splits}
    return value_checksum(sums)


def _refuse(file: Path, wrong: Mapping[str, bool]) -> None:
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise InputError(f"{file}: {text}")


def _wrong_names(kinds: list[str], target: str | None) -> dict[str, bool]:
    return {
        "there must be a kind": not kinds,
        "two kinds have the same name": len(set(kinds)) < len(kinds),
        "several kinds must all have names": len(kinds) > 1 and ONE in kinds,
        "target is no kind": target not in (*kinds, *([] if kinds == [ONE] else [None])),
    }


def _wrong_relations(meta: Meta) -> dict[str, bool]:
    triples, kinds = [relation.triple for relation in meta.relations], meta.kinds.names
    ends = {kind for source, _, target in triples for kind in (source, target)}
    return {
        "without names of kinds there must be one relation": (
            not meta.kinds.named and len(triples) != 1
        ),
        "two relations have the same name": len(set(triples)) < len(triples),
        "a relation is called as a kind": any(relation_name(each) in kinds for each in triples),
        "a relation joins kinds that are not there": not ends <= set(kinds),
        "a relation is undirected and one-way": any(
            each.undirected and each.one_way for each in meta.relations
        ),
    }


def _wrong_features(meta: Meta) -> dict[str, bool]:
    wrong = {
        "width must be at least 1": not meta.width and not meta.kinds.named,
        "there are features and no block of them": meta.width > 0 and not meta.blocks,
        "it has more features than can be": meta.width
        > max(_MOST_FEATURES, *(block.entries or 0 for block in meta.blocks), 0),
        "features have another number of names": not _one_each(meta.features, meta.width),
    }
    for number, block in enumerate(meta.blocks):
        wrong[f"block {number} lies outside of the features"] = (
            block.row + block.rows > meta.nodes or block.column + block.width > meta.width
        )
        wrong[f"block {number} overlaps another one"] = any(
            block.overlaps(other) for other in meta.blocks[:number]
        )
    return wrong


def _wrong_kept(meta: Meta) -> dict[str, bool]:
    names = [(column.owner, column.name) for column in meta.kept]
    return {"two kept columns have the same name": len(set(names)) < len(names)} | {
        f"kept column {name!r} is of {owner!r}, which is not there": owner not in meta.rows
        for owner, name in names
    }


def _wrong_dated(meta: Meta) -> dict[str, bool]:
    dated = meta.dated
    if dated is None:
        return {}
    dates = {(column.owner, column.name) for column in meta.kept if column.kind == "date"}
    relations = {relation_name(each.triple) for each in meta.relations}
    named = {name for path in dated.paths for name in path.relations}
    return {
        "dated: the rows are no kind that has a time": dated.rows not in dated.times,
        "dated: a time is no kept column of dates": not dates.issuperset(dated.times.items()),
        "dated: a path names a relation that is not there": not named <= relations,
        "dated: the past targets are no kind": dated.past not in (None, *meta.kinds.names),
    }


def _wrong_labels(meta: Meta) -> dict[str, bool]:
    return {
        "numbers have no classes": not find_task(meta.task).has_classes and meta.num_classes != 0,
        "it has more classes than can be": meta.num_classes > max(_MOST_CLASSES, meta.nodes),
        "classes have another number of names": not _one_each(meta.classes, meta.num_classes),
    }


def _one_each(names: list[str] | None, count: int) -> bool:
    return names is None or len(names) == count


_BY_NAME = Kind(
    lambda value: isinstance(value, dict) and all(isinstance(v, str) for v in value.values()),
    "a text for each file",
)
_SIZES = Kind(
    lambda value: isinstance(value, dict) and all(is_count(value.get(n)) for n in SPLITS),
    f"a count for each of {', '.join(SPLITS)}",
)
_NAMED = Kind(lambda value: is_text(value) and bool(value), "a text that is not empty")
_KINDS = {
    "kinds": objects_of(name=TEXT, nodes=POSITIVE, width=COUNT, ids=FLAG),
    "target": or_null(TEXT),
    "relations": objects_of(
        {"one_way": FLAG},
        source=TEXT,
        name=TEXT,
        target=TEXT,
        edges=COUNT,
        weighted=FLAG,
        undirected=FLAG,
    ),
    "blocks": objects_of(row=COUNT, column=COUNT, rows=COUNT, width=COUNT, entries=or_null(COUNT)),
    "kept": objects_of(
        owner=_NAMED, name=_NAMED, kind=one_of(*COLUMN_KINDS), classes=list_of(TEXT)
    ),
    "dated": or_null(Kind(Dated.reads, "what a graph knows of time")),
    "task": Kind(is_task, f"one of {', '.join(TASKS)}, or a task of an installed plug-in"),
    "num_classes": COUNT,
    "labelled": FLAG,
    "splits": _SIZES,
    "classes": NAMES,
    "features": NAMES,
    "dtypes": _BY_NAME,
    "checksums": _BY_NAME,
}
