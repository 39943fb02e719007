"""A live model's graph and tables in a folder, to go on from without computing anything again.

    graph/              the changed graph, as `save_graph` writes it, with the recipe of its import
    table-1.npy, ...    what each level propagates, a row for each node
    outputs.npy         of all nodes
    computed.npy        when each node's outputs were computed, in Unix seconds
    [hidden.npy]        (pairs, 2) known pairs that carry no messages, of a model of pairs
    live.json           which model the tables are of, the caller's note, checksums of all files

The folder appears complete or not at all, and every byte is checked when it is opened.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from vrgcn.data.store import load_graph, save_graph, write_array
from vrgcn.data.store_derived import verify_derived
from vrgcn.data.store_format import CHECKSUM, signed
from vrgcn.data.tables import recipe_file
from vrgcn.files.checksums import file_checksum, value_checksum
from vrgcn.files.mistakes import InputError
from vrgcn.files.npy import map_array
from vrgcn.files.parsing import read_json
from vrgcn.files.writing import new_folder
from vrgcn.graph.graph import Graph
from vrgcn.inference.saved import SavedModel
from vrgcn.live.known_pairs import with_pairs
from vrgcn.pairs.model import PairModel

if TYPE_CHECKING:
    from vrgcn.live.live import Live

FILE, GRAPH = "live.json", "graph"
OUTPUTS, COMPUTED, HIDDEN = "outputs", "computed", "hidden"
FORMAT, VERSION = "vrgcn-live", 1
_ROWS = 65_536  # that are read at a time


def save_live(live: Live, folder: Path, note: Any) -> None:
    """Write the state of a live model to a new folder. note: any value that JSON has"""
    state = live._world.state
    slots = state.alive.nonzero()[:, 0]
    described = {
        "format": FORMAT,
        "version": VERSION,
        "model": fingerprint(live.saved),
        "undirected": live.undirected,
        "note": json.loads(json.dumps(note)),
    }
    with new_folder(folder) as partial:
        graph = live.graph()
        # A store has splits of labelled nodes alone.
        labelled = graph if graph.labels is not None else graph.with_splits({})
        save_graph(labelled, partial / GRAPH)
        if graph.predicted is not None:
            write_array(partial, HIDDEN, graph.predicted.val.numpy())
        if live._recipes:
            recipe_file.write_recipes(live._recipes, partial / GRAPH)
        for (level, _), table in state.tables.tables.items():
            write_array(partial, f"table-{level}", table.read(slots, state.dtype).cpu().numpy())
        write_array(partial, OUTPUTS, state.outputs[slots].numpy())
        write_array(partial, COMPUTED, state.computed[slots, None].numpy())
        described["checksums"] = {name: file_checksum(partial / name) for name in _files(partial)}
        with open(partial / FILE, "w", encoding="utf-8") as file:
            json.dump(signed(described), file, indent=2)
            file.flush()
            os.fsync(file.fileno())


def read_description(folder: Path) -> dict[str, Any]:
    """Return the entries of live.json except its own checksum."""
    file = folder / FILE
    if not file.is_file():
        raise FileNotFoundError(f"{folder} has no {FILE}: it holds no live model")
    described = read_json(file)
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise InputError(f"{file} does not say format {FORMAT!r}")
    if described.get("version") != VERSION:
        raise InputError(f"{file} has version {described.get('version')!r}, not {VERSION}")
    if described.pop(CHECKSUM, None) != value_checksum(described):
        raise InputError(
            f"{file} is damaged, or was changed by hand: its checksum is another; restore {folder} "
            "from a backup"
        )
    return described


def verified_description(folder: Path, saved: SavedModel) -> dict[str, Any]:
    """Return the entries of live.json; raise if a byte of the folder is not what was written, or if
    it has tables of another model."""
    described = read_description(folder)
    for name, checksum in described["checksums"].items():
        file = folder / name
        if not file.is_file():
            raise FileNotFoundError(f"{file} is missing: restore {folder} from a backup")
        if file_checksum(file) != checksum:
            raise InputError(
                f"{file} is damaged: its checksum is not the one that {FILE} has of it; restore "
                f"{folder} from a backup"
            )
    verify_derived(folder / GRAPH)
    if described["model"] != fingerprint(saved):
        raise InputError(
            f"{folder} holds tables of another model: make them anew from the run, or open the "
            "folder with the model that it was saved with"
        )
    return described


def open_graph(
    folder: Path, saved: SavedModel, memory: Literal["ram", "disk"]
) -> tuple[Graph, recipe_file.Recipes | None]:
    """The graph of the folder, and the recipes of its import; None if it has none."""
    graph = load_graph(folder / GRAPH, memory=memory)
    if isinstance(saved.model, PairModel):
        hidden = torch.from_numpy(np.array(map_array(folder / f"{HIDDEN}.npy", read_only=True)))
        graph = with_pairs(graph, saved.model, hidden)
    there = (folder / GRAPH / recipe_file.FILE).is_file()
    return graph, recipe_file.read_recipes(folder / GRAPH) if there else None


def load_tables(live: Live, folder: Path) -> None:
    """Fill a live model's tables from a folder."""
    state = live._world.state
    slots = state.slots.of_graph()
    for level in range(state.evaluation.first_table, state.evaluation.depth):
        values = _mapped(folder, f"table-{level}", len(slots), state.evaluation.widths[level])
        table = state.tables.table(level, values.shape[1])
        for start, part in _parts(values):
            at = slots[start : start + len(part)].to(table.values.device)
            table.write(at, part.to(table.values.device), 0)
    outputs = _mapped(folder, OUTPUTS, len(slots), None)
    for start, part in _parts(outputs):
        state.make_outputs(part.shape[1], part.dtype)
        state.outputs[slots[start : start + len(part)]] = part
    computed = _mapped(folder, COMPUTED, len(slots), 1)
    state.computed[slots] = torch.from_numpy(np.array(computed[:, 0]))


def fingerprint(saved: SavedModel) -> str:
    """The same for models whose tables are the same on any graph."""
    digest = hashlib.sha256(f"{saved.propagation} {saved.scaling.digest}".encode())
    for name, tensor in saved.model.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _files(folder: Path) -> list[str]:
    """The files of a folder and of those in it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path.relative_to(folder).as_posix() for path in paths]


def _mapped(folder: Path, name: str, rows: int, width: int | None) -> np.ndarray[Any, Any]:
    file = folder / f"{name}.npy"
    try:
        values = map_array(file, read_only=True)
    except (ValueError, OSError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    if values.ndim != 2 or len(values) != rows or width not in (None, values.shape[1]):
        raise InputError(f"{file} has shape {values.shape}, and the graph {rows} nodes")
    return values


def _parts(values: np.ndarray[Any, Any]) -> Any:
    for start in range(0, len(values), _ROWS):
        part: Tensor = torch.from_numpy(np.array(values[start : start + _ROWS]))
        yield start, part
