"""Read and write recipes of imports, which lie beside the graph.

import.json            columns, options, classes, and what each encoder learned
import.safetensors     means of the features, and the arrays of the encoders of texts

There is a recipe for each kind and each table of edges, under its name: "" and "edges" in a graph
of one table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vrgcn.data.tables.encoders import find_encoder, is_encoder
from vrgcn.data.tables.recipe import OPTIONS, ImportRecipe
from vrgcn.files.checksums import file_checksum, value_checksum
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_json
from vrgcn.files.setting_names import setting
from vrgcn.files.tensors import read_tensors, write_tensors

FILE = "import.json"
ARRAYS = "import.safetensors"
FORMAT = "vrgcn-import"
VERSION = 1
CHECKSUM = "checksum"  # checksum of import.json without this entry
ARRAYS_CHECKSUM = "arrays_checksum"
_MEAN = "mean"
_KEPT = (
    *("id", "label", "split", "source", "target", "weight"),
    *("features", "marked", "task", "classes"),
    *("relation_column", "relations", "marks"),
)

Recipes = Mapping[str, ImportRecipe]  # by kind or relation
Arrays = dict[str, NDArray[Any]]


def write_recipes(recipes: Recipes, folder: Path) -> None:
    """Write the recipes into the folder of a graph."""
    arrays: Arrays = {}
    tables = []
    for place, (name, recipe) in enumerate(recipes.items()):
        own: Arrays = {}
        tables.append({"table": name, **_described(recipe, own)})
        arrays |= {f"{place}/{key}": array for key, array in own.items()}
    description = {"format": FORMAT, "version": VERSION, "tables": tables}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    with open(folder / ARRAYS, "wb") as file:
        description[ARRAYS_CHECKSUM] = write_tensors(file, tensors)
        file.flush()
        os.fsync(file.fileno())
    with open(folder / FILE, "wb") as file:
        signed = description | {CHECKSUM: value_checksum(description)}
        file.write(json.dumps(signed, indent=2).encode())
        file.flush()
        os.fsync(file.fileno())


def _described(recipe: ImportRecipe, arrays: Arrays) -> dict[str, Any]:
    """Return a recipe as JSON values; its arrays are added to `arrays`."""
    arrays[_MEAN] = recipe.mean
    columns = []
    for place, encoder in enumerate(recipe.encoders):
        columns.append({"column": encoder.column, "kind": encoder.kind, **encoder.state()})
        for name, array in encoder.arrays().items():
            arrays[f"{place}.{name}"] = np.ascontiguousarray(array)
    return {
        **{name: getattr(recipe, name) for name in (*_KEPT, "options")},
        "columns": columns,
    }


def read_recipes(folder: Path, decimal: str | None = None) -> Recipes:
    """Read the recipes of the graph in a folder.

    decimal: replaces the recipes' decimal comma or point; None to keep it
    """
    file, arrays = folder / FILE, folder / ARRAYS
    if not folder.is_dir():
        raise FileNotFoundError(f"{setting('like')}: there is no folder {folder}")
    for needed in (file, arrays):
        if not needed.is_file():
            raise FileNotFoundError(
                f"{setting('like')}: {folder} has no {needed.name}; only graphs that "
                "`vrgcn import` wrote have one"
            )
    found = read_json(file)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{setting('like')}: {file} does not say format {FORMAT!r}")
    version = found.get("version")
    if version != VERSION:
        raise InputError(
            f"{setting('like')}: {file} has version {version!r}; this vrgcn reads {VERSION}"
        )
    checksum = found.pop(CHECKSUM, None)
    whole = checksum == value_checksum(found)
    if not whole or found.get(ARRAYS_CHECKSUM) != file_checksum(arrays):
        damaged = arrays if whole else file
        raise InputError(
            f"{setting('like')}: {damaged} is damaged, or was changed by hand: its checksum is "
            "another; import the graph again"
        )
    try:
        tensors = {name: tensor.numpy() for name, tensor in read_tensors(arrays).items()}
        return {
            table["table"]: _recipe(
                folder,
                _with_decimal(table, decimal),
                {
                    name.removeprefix(f"{place}/"): tensor
                    for name, tensor in tensors.items()
                    if name.startswith(f"{place}/")
                },
            )
            for place, table in enumerate(found["tables"])
        }
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"{setting('like')}: {file} cannot be read: {error!r}") from None


def _with_decimal(found: dict[str, Any], decimal: str | None) -> dict[str, Any]:
    """Return the stored recipe with another decimal in its options and in the columns that have
    one."""
    if decimal is None:
        return found
    columns = [c | {"decimal": decimal} if "decimal" in c else c for c in found["columns"]]
    return found | {"columns": columns, "options": found["options"] | {"decimal": decimal}}


def _recipe(folder: Path, found: dict[str, Any], arrays: Arrays) -> ImportRecipe:
    encoders = []
    for place, column in enumerate(found["columns"]):
        own = {
            name.partition(".")[2]: array
            for name, array in arrays.items()
            if name.startswith(f"{place}.")
        }
        if not is_encoder(column["kind"]):
            name, kind = column["column"], column["kind"]
            raise InputError(
                f"column {name!r} is of the unknown kind {kind!r}; if a plug-in made it, install "
                "its package"
            )
        made = find_encoder(column["kind"]).from_state(column["column"], column, own)
        encoders.append(made)
    options = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in found["options"].items()
        if name in OPTIONS
    }
    kept = {name: found[name] for name in _KEPT}
    kept["label"] = tuple(kept["label"])
    width = sum(len(encoder.names) for encoder in encoders) + kept["marked"]
    if encoders and arrays[_MEAN].shape != (width,):
        raise InputError(f"its columns make {width} features, and it has {arrays[_MEAN].shape}")
    return ImportRecipe(
        origin=str(folder), options=options, encoders=encoders, mean=arrays[_MEAN], **kept
    )
