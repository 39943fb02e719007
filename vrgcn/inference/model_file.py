"""The file of a saved model, read without trust: it must agree with its checksum, and the stages
that it names with their tensors.

    format, version, checksum
    task, classes, features     what the outputs mean, and the columns that the model takes
    stages                      see `stages.py`
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vrgcn.files.checksums import value_checksum
from vrgcn.files.kinds import check_kinds, shown
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import parse_json
from vrgcn.files.tensors import DTYPES, map_tensors, size_of, tensor_checksum, write_tensors
from vrgcn.files.writing import new_file
from vrgcn.inference.own_models import Factory
from vrgcn.inference.stages import (
    CHAIN,
    MEANING,
    Source,
    read_chain,
    refuse_unknown,
    written_chain,
)

if TYPE_CHECKING:
    from vrgcn.inference.saved import SavedModel

FORMAT = "vrgcn-model"
VERSION = 1
CHECKSUM = "checksum"  # covers tensors and description
_KINDS = {**MEANING, "stages": CHAIN}

Description = dict[str, Any]
Tensors = dict[str, Tensor]


def write_saved(saved: SavedModel, path: Path) -> None:
    """Write a chain of stages with its checksum, a piece of a tensor at a time: all of it or
    nothing."""
    stages, tensors = written_chain(saved, path.parent)
    meaning = {name: getattr(saved, name) for name in MEANING}
    about = {"format": FORMAT, "version": VERSION, **meaning, "stages": stages}
    text = json.dumps(signed(about, tensors))
    # The widest numbers first: each begins at a multiple of its size, whatever the others are.
    tensors = dict(sorted(tensors.items(), key=lambda held: -held[1].element_size()))
    with new_file(path, size=size_of(tensors)) as file:
        write_tensors(file, tensors, {FORMAT: text})


def read_saved(path: Path, factory: Factory | None) -> SavedModel:
    """The chain of stages in a file. factory: makes models of the user's own, see `load_model`"""
    description, tensors = read_model_file(path)
    meaning = {name: description[name] for name in MEANING}
    source = Source(**meaning, folder=path.parent, factory=factory)
    try:
        return read_chain(str(path), description["stages"], tensors, source)
    except RecursionError:
        raise InputError(f"{path}: its stages are nested too deeply") from None


def read_model_file(path: Path) -> tuple[Description, Tensors]:
    """The file's description of the model, its entries checked, and all tensors, finite."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    with open(path, "rb") as file:
        tensors, metadata = map_tensors(file)
    if FORMAT not in metadata:
        raise InputError(f"{path}: was not written by vrgcn; it lacks the entry {FORMAT!r}")
    description = parse_json(metadata[FORMAT], f"{path}: its entry {FORMAT!r}")
    if not isinstance(description, dict):
        raise InputError(f"{path}: its entry {FORMAT!r} must be an object")
    version = description.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError(
            f"{path}: is of version {shown(version)}, and this vrgcn reads version {VERSION}: "
            "train the model again"
        )
    _check_checksum(path, description, tensors)
    check_kinds(str(path), description, _KINDS)
    refuse_unknown(str(path), description, {*_KINDS, "format", "version", CHECKSUM}, "model file")
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise InputError(f"{path}: {name} holds NaN or infinite numbers; train the model again")
    return description, tensors


def signed(description: Description, tensors: Tensors) -> Description:
    """The same with the checksum of it and of the tensors."""
    # Compared in the form that is read: JSON has no tuples, and its keys are texts.
    said = json.loads(json.dumps(description))
    said.pop(CHECKSUM, None)
    held = {
        name: [DTYPES.get(value.dtype), list(value.shape), tensor_checksum(value)]
        for name, value in tensors.items()
    }
    return said | {CHECKSUM: value_checksum({"description": said, "tensors": held})}


def _check_checksum(path: Path, description: Description, tensors: Tensors) -> None:
    try:
        right = signed(description, tensors)[CHECKSUM]
    except RecursionError:
        raise InputError(f"{path}: its entry {FORMAT!r} is nested too deeply") from None
    if description.get(CHECKSUM) != right:
        raise InputError(
            f"{path}: is damaged, or was changed by hand: its checksum is another; copy it "
            "again from where it was made, or train the model again"
        )
