"""The files in the folder of a graph: its arrays by name, and `meta.json`, which describes them.

A new array is a line in the tables below; writing, mapping, checking and checksums follow them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
    Kind,
    check_kinds,
    is_count,
    one_of,
    or_null,
)
from vrgcn.files.parsing import parse_json
from vrgcn.graph.validation import SPLITS
from vrgcn.tasks import TASKS, find_task, flagged_task

FORMAT = "vrgcn-graph"
IDS = "ids.arrow"
VERSION = 3  # written; it has checksums
VERSIONS = (1, 2, VERSION)  # read; 2 had labels that are numbers
CHECKSUM = "checksum"  # checksum of meta.json itself, without this entry
# A number alone must not make a model of terabytes: the most without as many nodes, or entries.
_MOST_CLASSES = 1 << 20
_MOST_FEATURES = 1 << 24

Meta = dict[str, Any]
Source = str | Path | OpenFolder  # path of a graph, or its folder, already open


@dataclass(frozen=True)
class Matrix:
    """A sparse matrix of a row for each node: the names of its three arrays.

    entries, columns: keys of `meta.json` that count them
    kinds: the types that values may have
    present, valued: whether a folder has the matrix, and values for it; without them all are 1
    ascending: whether the columns of each row ascend, none twice
    """

    indptr: str
    indices: str
    values: str
    entries: str
    columns: str
    kinds: tuple[str, ...]
    present: Callable[[Meta], bool]
    valued: Callable[[Meta], bool]
    ascending: bool

    @property
    def names(self) -> tuple[str, str, str]:
        return self.indptr, self.indices, self.values


def _weighted(meta: Meta) -> bool:
    return bool(meta["weighted"])


def _sparse(meta: Meta) -> bool:
    return bool(meta["feature_layout"] == "sparse")


_FLOATS = ("float32", "float64")
_DENSE = ("float16", *_FLOATS)
# fmt: off
MATRICES = (
    Matrix("indptr", "indices", "weights", "edges", "nodes", ("float32",),
           lambda meta: True, _weighted, ascending=True),
    Matrix("reverse_indptr", "reverse_indices", "reverse_weights", "edges", "nodes", ("float32",),
           lambda meta: bool(meta["reversed"]), _weighted, ascending=True),
    Matrix("feature_indptr", "feature_indices", "feature_values", "feature_entries", "width",
           _FLOATS, _sparse, _sparse, ascending=False),
)
# fmt: on

# Every array that a folder may hold.
ARRAYS = (*(name for matrix in MATRICES for name in matrix.names), "features", "labels", *SPLITS)


def shapes_and_kinds(meta: Meta) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
    """The arrays that a folder with this `meta.json` must have: shape, and types it may have."""
    nodes, integers = meta["nodes"], ("int64",)
    arrays: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {}
    for matrix in MATRICES:
        if matrix.present(meta):
            arrays[matrix.indptr] = (nodes + 1,), integers
            arrays[matrix.indices] = (meta[matrix.entries],), integers
            if matrix.valued(meta):
                arrays[matrix.values] = (meta[matrix.entries],), matrix.kinds
    if not _sparse(meta):
        arrays["features"] = (nodes, meta["width"]), _DENSE
    if meta["labelled"]:
        arrays["labels"] = find_task(meta["task"]).stored(nodes, meta["num_classes"])
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
            raise ValueError(f"{source} is not a saved graph: it is a file")
    with opened_folder(source) as folder:
        yield folder


def read_meta(folder: OpenFolder) -> Meta:
    """The `meta.json` of a graph's folder, all entries of the right kind and in agreement."""
    path, file = folder.path, folder.path / META
    if not folder.is_file(META):
        raise ValueError(f"{path} is not a saved graph: it has no {META}")
    meta = parse_json(folder.read(META), str(file))
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ValueError(f"{path} is not a saved graph: {file} does not say format {FORMAT!r}")
    version = meta.get("version")
    if type(version) is not int or version not in VERSIONS:
        raise ValueError(
            f"{file} has version {version!r} and this vrgcn reads version "
            f"{', '.join(map(str, VERSIONS[:-1]))} or {VERSIONS[-1]}; save the graph again"
        )
    if version >= 3 and meta.pop(CHECKSUM, None) != value_checksum(meta):
        raise ValueError(
            f"{file} is damaged, or was changed by hand: its checksum is another; save the graph "
            "again"
        )
    if "task" not in meta:  # a folder from before there were labels that are numbers
        meta["task"] = flagged_task(multilabel=meta.get("multilabel") is True)
    meta.setdefault("reversed", False)  # a folder from before there were histories of gradients
    check_kinds(str(file), meta, _KINDS)
    _check_agreement(file, meta)
    return meta


def content_checksum(meta: Meta) -> str | None:
    """Return the checksum of all files of a graph on disk except its splits; None for one without
    checksums."""
    sums = meta.get("checksums")
    if sums is None:
        return None
    splits = [f"{name}.npy" for name in SPLITS]
    return value_checksum({name: value for name, value in sums.items() if name not in splits})


def _check_agreement(file: Path, meta: Meta) -> None:
    names, task = meta["names"], find_task(meta["task"])
    wrong = {
        "multilabel does not agree with task": meta["multilabel"] != task.several,
        "numbers have no classes": not task.has_classes and meta["num_classes"] != 0,
        "feature_entries must be a count": _sparse(meta) and meta["feature_entries"] is None,
        "it has more classes than can be": meta["num_classes"] > max(_MOST_CLASSES, meta["nodes"]),
        "it has more features than can be": meta["width"]
        > max(_MOST_FEATURES, meta["feature_entries"] or 0),
        "classes have another number of names": not _one_each(
            names["classes"], meta["num_classes"]
        ),
        "features have another number of names": not _one_each(names["features"], meta["width"]),
        "it has no checksums": meta["version"] >= 3 and not _BY_NAME.good(meta.get("checksums")),
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise ValueError(f"{file}: {text}")


def _one_each(names: list[str] | None, count: int) -> bool:
    return names is None or len(names) == count


_BY_NAME = Kind(
    lambda value: isinstance(value, dict) and all(isinstance(v, str) for v in value.values()),
    "a text for each file",
)
# Each entry that every version has.
_KINDS = {
    "nodes": POSITIVE,
    "edges": COUNT,
    "width": POSITIVE,
    "feature_layout": one_of("dense", "sparse"),
    "feature_entries": or_null(COUNT),
    "num_classes": COUNT,
    "labelled": FLAG,
    "multilabel": FLAG,
    "weighted": FLAG,
    "reversed": FLAG,
    "task": one_of(*TASKS),
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
}
