"""The files in the folder of a graph: its arrays by name, and `meta.json`, which describes them.

A new array is a line in the tables below; writing, mapping, checking and checksums follow them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from vrgcn.data.sources import META
from vrgcn.data.store_kept import KeptPlace, check_kept, kept_file, kept_shapes
from vrgcn.data.store_kinds import RelationPlace, check_described, kinds_of, relations_of
from vrgcn.files.checksums import value_checksum
from vrgcn.files.folder import OpenFolder, opened_folder
from vrgcn.files.kinds import (
    COUNT,
    FLAG,
    NAMES,
    POSITIVE,
    Kind,
    check_kinds,
    is_count,
    one_of,
    or_null,
)
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import parse_json
from vrgcn.graph.validation import SPLITS
from vrgcn.tasks import TASKS, find_task, is_task

FORMAT = "vrgcn-graph"
IDS = "ids.arrow"
VERSION = 1
CHECKSUM = "checksum"  # checksum of meta.json itself, without this entry
# A number alone must not make a model of terabytes: the most without as many nodes, or entries.
_MOST_CLASSES = 1 << 20
_MOST_FEATURES = 1 << 24

Meta = dict[str, Any]
Source = str | Path | OpenFolder  # path of a graph, or its folder, already open


@dataclass(frozen=True)
class BlockPlace:
    """The place of a block of features, and its layout. entries: of a sparse block, else None"""

    row: int
    column: int
    rows: int
    width: int
    entries: int | None

    def files(self, number: int) -> tuple[str, ...]:
        """Names of the arrays of block `number` of a folder."""
        names = ("features",) if self.entries is None else SPARSE_FEATURES
        return tuple(f"{name}_{number}" for name in names)


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


_FLOATS = ("float32", "float64")
_DENSE = ("float16", *_FLOATS)
SPARSE_FEATURES = ("feature_indptr", "feature_indices", "feature_values")
# Every array that a folder may hold, but for those of blocks.
ARRAYS = (
    *("indptr", "indices", "weights", "reverse_indptr", "reverse_indices", "reverse_weights"),
    *(*SPARSE_FEATURES, "features", "labels", *SPLITS),
)


def array_names(
    blocks: Sequence[BlockPlace] | None,
    relations: Sequence[RelationPlace] = (),
    kept: Sequence[KeptPlace] = (),
) -> list[str]:
    """Every array that a folder may hold. blocks: of its features, None if they are one matrix"""
    files = [block.files(number) for number, block in enumerate(blocks or ())]
    files += [names for number, each in enumerate(relations) for names in each.files(number)]
    own = [kept_file(number) for number in range(len(kept))]
    return [*ARRAYS, *(name for names in files for name in names), *own]


def blocks_of(meta: Meta) -> list[BlockPlace] | None:
    """The blocks of the features; None if they are one matrix."""
    if meta["feature_layout"] != "blocks":
        return None
    return [BlockPlace(**block) for block in meta["blocks"]]


def matrices(meta: Meta) -> list[Matrix]:
    """The sparse matrices of a folder with this `meta.json`."""
    nodes = meta["nodes"]

    def adjacency(*names: str) -> Matrix:
        return Matrix(names, nodes, meta["edges"], nodes, ("float32",), meta["weighted"], True)

    def relation(number: int, place: RelationPlace) -> Iterator[Matrix]:
        kinds = kinds_of(meta)
        ranges = kinds.range(place.target), kinds.range(place.source)
        for names, within in zip(place.files(number), (ranges, ranges[::-1]), strict=False):
            size = nodes, place.edges, nodes
            yield Matrix(names, *size, ("float32",), place.weighted, True, within)

    def features(names: tuple[str, ...], rows: int, entries: int, columns: int) -> Matrix:
        return Matrix(names, rows, entries, columns, _FLOATS, True, False)

    found = [] if "kinds" in meta else [adjacency("indptr", "indices", "weights")]
    for number, place in enumerate(relations_of(meta)):
        found += relation(number, place)
    if meta["reversed"]:
        found.append(adjacency("reverse_indptr", "reverse_indices", "reverse_weights"))
    if meta["feature_layout"] == "sparse":
        found.append(features(SPARSE_FEATURES, nodes, meta["feature_entries"], meta["width"]))
    for number, block in enumerate(blocks_of(meta) or ()):
        if block.entries is not None:
            found.append(features(block.files(number), block.rows, block.entries, block.width))
    return found


def shapes_and_kinds(meta: Meta) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
    """The arrays that a folder with this `meta.json` must have: shape, and types it may have."""
    nodes, integers = meta["nodes"], ("int64",)
    arrays: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {}
    for matrix in matrices(meta):
        arrays[matrix.indptr] = (matrix.rows + 1,), integers
        arrays[matrix.indices] = (matrix.entries,), integers
        if matrix.valued:
            arrays[matrix.names[2]] = (matrix.entries,), matrix.kinds
    if meta["feature_layout"] == "dense":
        arrays["features"] = (nodes, meta["width"]), _DENSE
    for number, block in enumerate(blocks_of(meta) or ()):
        if block.entries is None:
            arrays[block.files(number)[0]] = (block.rows, block.width), _FLOATS
    if meta["labelled"]:
        arrays["labels"] = find_task(meta["task"]).stored(nodes, meta["num_classes"])
    arrays |= kept_shapes(meta)
    return arrays | {name: ((meta["splits"][name],), integers) for name in SPLITS}


def signed(meta: Meta) -> Meta:
    """The same with its own checksum."""
    return meta | {CHECKSUM: value_checksum(meta)}


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
    meta = parse_json(folder.read(META), str(file))
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise InputError(f"{path} is not a saved graph: {file} does not say format {FORMAT!r}")
    version = meta.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError(
            f"{file} has version {version!r}, and this vrgcn reads version {VERSION}: import or "
            "save the graph again"
        )
    if meta.pop(CHECKSUM, None) != value_checksum(meta):
        raise InputError(
            f"{file} is damaged, or was changed by hand: its checksum is another; save the graph "
            "again"
        )
    check_kinds(str(file), meta, _KINDS)
    _check_agreement(file, meta)
    return meta


def content_checksum(meta: Meta) -> str:
    """Return the checksum of all files of a graph on disk except its splits."""
    sums = meta["checksums"]
    splits = [f"{name}.npy" for name in SPLITS]
    return value_checksum({name: value for name, value in sums.items() if name not in splits})


def _check_agreement(file: Path, meta: Meta) -> None:
    names, task = meta["names"], find_task(meta["task"])
    _check_blocks(file, meta)
    if "kinds" in meta:
        check_described(file, meta)
    check_kept(file, meta)
    sparse = meta["feature_layout"] == "sparse"
    wrong = {
        "numbers have no classes": not task.has_classes and meta["num_classes"] != 0,
        "feature_entries must be a count": sparse and meta["feature_entries"] is None,
        "width must be at least 1": not meta["width"] and "kinds" not in meta,
        "it has more classes than can be": meta["num_classes"] > max(_MOST_CLASSES, meta["nodes"]),
        "it has more features than can be": meta["width"]
        > max(_MOST_FEATURES, meta["feature_entries"] or 0),
        "classes have another number of names": not _one_each(
            names["classes"], meta["num_classes"]
        ),
        "features have another number of names": not _one_each(names["features"], meta["width"]),
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise InputError(f"{file}: {text}")


def _check_blocks(file: Path, meta: Meta) -> None:
    """Refuse blocks of features outside of their matrix, or in each other's place."""
    if meta["feature_layout"] != "blocks":
        return
    if not _BLOCKS.good(meta.get("blocks")):
        raise InputError(f"{file}: blocks must be {_BLOCKS.words}")
    blocks = blocks_of(meta) or []
    for number, one in enumerate(blocks):
        if one.row + one.rows > meta["nodes"] or one.column + one.width > meta["width"]:
            raise InputError(f"{file}: block {number} lies outside of the features")
        for two in blocks[:number]:
            rows = one.row < two.row + two.rows and two.row < one.row + one.rows
            columns = one.column < two.column + two.width and two.column < one.column + one.width
            if rows and columns:
                raise InputError(f"{file}: block {number} overlaps another one")


def _one_each(names: list[str] | None, count: int) -> bool:
    return names is None or len(names) == count


_BY_NAME = Kind(
    lambda value: isinstance(value, dict) and all(isinstance(v, str) for v in value.values()),
    "a text for each file",
)
_PLACE = {field.name: field.name == "entries" for field in fields(BlockPlace)}
_BLOCKS = Kind(
    lambda value: (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(block, dict)
            and block.keys() == _PLACE.keys()
            and all(is_count(block[n]) or (null and block[n] is None) for n, null in _PLACE.items())
            for block in value
        )
    ),
    f"objects of counts: {', '.join(_PLACE)} (null of a dense block)",
)
# The entries that every graph has.
_KINDS = {
    "nodes": POSITIVE,
    "edges": COUNT,
    "width": COUNT,
    "feature_layout": one_of("dense", "sparse", "blocks"),
    "feature_entries": or_null(COUNT),
    "num_classes": COUNT,
    "labelled": FLAG,
    "weighted": FLAG,
    "reversed": FLAG,
    "task": Kind(is_task, f"one of {', '.join(TASKS)}, or a task of an installed plug-in"),
    "splits": Kind(
        lambda value: isinstance(value, dict) and all(is_count(value.get(n)) for n in SPLITS),
        f"a count for each of {', '.join(SPLITS)}",
    ),
    "names": Kind(
        lambda value: (
            isinstance(value, dict)
            and FLAG.good(value.get("nodes"))
            and all(key in value and NAMES.good(value[key]) for key in ("classes", "features"))
        ),
        "nodes, true or false, and classes and features, lists of names or null",
    ),
    "dtypes": _BY_NAME,
    "checksums": _BY_NAME,
}
