"""Parts of a graph on disk: a folder for each, and `parts.json`, which describes all of them.

    parts.json             format, version, counts, the graph's fingerprint, checksums of the files
    shared.safetensors     what needs all training nodes: scaling of features, weights of classes
    [ids.arrow]            the user's own node ids, of the whole graph
    part-00000/            a graph as `vrgcn import` writes it, of the part's own nodes (ascending)
                           and after them its halo (by owner, then ascending), with every edge that
                           has an end among the own nodes; and
        part.safetensors   nodes         (local nodes,) their numbers in the whole graph
                           row_sums, column_sums  (local nodes,) of the whole graph's adjacency
                           halo_indptr   (parts + 1,) where the halo nodes of each owner begin
                           send_indptr   (parts + 1,) and send_indices: own nodes by the part that
                                         has them in its halo, in the order they have there

A process reads `parts.json`, `shared.safetensors` and its own part.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vrgcn.data.sources import META, PARTS
from vrgcn.data.store import load_graph, verify_graph
from vrgcn.files.checksums import stream_checksum, value_checksum
from vrgcn.files.folder import OpenFolder, opened_folder
from vrgcn.files.kinds import COUNT, NAMES, POSITIVE, Kind, check_kinds, or_null
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import parse_json
from vrgcn.files.tensors import map_tensors
from vrgcn.files.writing import write_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling
from vrgcn.runs.card import Facts, listed

FORMAT, VERSION = "vrgcn-parts", 1
SHARED, ARRAYS, IDS = "shared.safetensors", "part.safetensors", "ids.arrow"
CHECKSUM = "checksum"  # checksum of parts.json itself, without this entry

Description = dict[str, Any]

_DICT = Kind(lambda value: isinstance(value, dict), "an object")
_KINDS = {
    "parts": POSITIVE,
    "nodes": POSITIVE,
    "edges": COUNT,
    "scaling": Kind(lambda value: isinstance(value, str), "a text"),
    "classes": or_null(NAMES),
    "graph": _DICT,
    "files": _DICT,
}


@dataclass(frozen=True)
class Part:
    """One part of a graph.

    number, parts: the number of this part, and how many parts there are
    graph: own nodes, then the halo; splits contain only own nodes
    nodes: (local nodes,) their numbers in the whole graph
    own: number of nodes that are the part's own
    halo_indptr, send_indptr, send_indices: see above
    shared: tensors of shared.safetensors
    description: parts.json
    """

    number: int
    parts: int
    graph: Graph
    nodes: Tensor
    own: int
    halo_indptr: Tensor
    send_indptr: Tensor
    send_indices: Tensor
    shared: dict[str, Tensor]
    description: Description

    @property
    def checksum(self) -> str:
        """Checksum of the values that all processes must agree on."""
        return str(self.description[CHECKSUM])

    def scaled(self, kind: str) -> tuple[Graph, Scaling]:
        """Return the graph with its features scaled as those of the whole graph would be."""
        kind = self.description["scaling"] if kind == "auto" else kind
        scaling = Scaling(kind)
        if kind == "standard":
            if "scaling.mean" not in self.shared:
                raise InputError("scaling 'standard' needs training nodes to learn from")
            scaling = Scaling(kind, self.shared["scaling.mean"], self.shared["scaling.deviation"])
        return scaling.apply_to(self.graph), scaling


def part_facts(description: Description) -> Facts:
    """Return what the card of a run says about a graph in parts. description: parts.json"""
    size = f"{description['nodes']:,} nodes and {description['edges']:,} edges"
    classes = description["classes"]
    known = [] if classes is None else [f"{len(classes):,} classes: {listed(classes)}"]
    parts = f"{description['parts']} parts, one for each process"
    return {"Data": [f"{size} in {parts}", *known]}


def part_folder(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}"


def read_parts(folder: Path | OpenFolder) -> Description:
    """Read `parts.json` and check the types of all entries."""
    with opened_folder(folder) as opened:
        file = opened.path / PARTS
        described = parse_json(opened.read(PARTS), str(file))
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise InputError(
            f"{file.parent} has no parts of a graph: {file} is not of format {FORMAT!r}"
        )
    if described.get("version") != VERSION:
        raise InputError(
            f"{file} has version {described.get('version')!r} and this vrgcn reads version "
            f"{VERSION}; run vrgcn partition again"
        )
    noted = described.pop(CHECKSUM, None)
    if noted != value_checksum(described):
        raise InputError(f"{file} is damaged, or was changed by hand: run vrgcn partition again")
    check_kinds(str(file), described, _KINDS)
    return described | {CHECKSUM: noted}


def write_description(folder: Path, described: Description) -> None:
    signed = described | {CHECKSUM: value_checksum(described)}
    write_text(folder / PARTS, json.dumps(signed, indent=1) + "\n")


def load_part(folder: Path | OpenFolder, number: int, *, verify: bool = False) -> Part:
    """Load one part, its arrays mapped into memory. All files come from one folder, even if another
    folder takes its name meanwhile.

    folder: of all parts; already open if it is watched
    verify: read all of it first, and raise if a byte differs from what was written
    """
    with opened_folder(folder) as whole:
        described = read_parts(whole)
        _check_file(whole, SHARED, described["files"].get(SHARED))
        shared = _read_tensors(whole, SHARED)
        with opened_part(whole, number) as mine:
            name = mine.path.name
            for file in (ARRAYS, META):
                _check_file(mine, file, described["files"].get(f"{name}/{file}"))
            if verify:
                verify_graph(mine)
            graph, arrays = load_graph(mine), _read_tensors(mine, ARRAYS)
    graph = graph.replace(sums=(arrays["row_sums"], arrays["column_sums"]))
    return Part(
        number,
        described["parts"],
        graph,
        arrays["nodes"],
        graph.num_nodes - int(arrays["halo_indptr"][-1]),
        arrays["halo_indptr"],
        arrays["send_indptr"],
        arrays["send_indices"],
        {name: value.clone() for name, value in shared.items()},
        described,
    )


def opened_part(whole: OpenFolder, number: int) -> OpenFolder:
    """Open the folder of one part. whole: the folder of all parts"""
    name = part_folder(whole.path, number).name
    _check_there(whole, f"{name}/{ARRAYS}")
    return whole.within(name)


def _check_there(folder: OpenFolder, name: str) -> None:
    if not folder.is_file(name):
        raise FileNotFoundError(f"{folder.path / name} is missing; {PARTS} says that it is there")


def _check_file(folder: OpenFolder, name: str, noted: str | None) -> None:
    _check_there(folder, name)
    with folder.open(name) as file:
        checksum = stream_checksum(file)
    if checksum != noted:
        raise InputError(
            f"{folder.path / name} is damaged, or of another partition: its checksum is not the "
            f"one that {PARTS} has of it; copy the folders of one partition together"
        )


def _read_tensors(folder: OpenFolder, name: str) -> dict[str, Tensor]:
    with folder.open(name) as file:
        return map_tensors(file)[0]


def no_shared() -> dict[str, Tensor]:
    return {"none": torch.zeros(1)}  # an empty safetensors file cannot be mapped
