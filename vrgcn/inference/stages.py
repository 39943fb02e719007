"""Chains of stages in files: each stage by its name, with its settings and its tensors.

    stages    [{"name": "exact", ...}, {"name": "smoothed", ...}, {"name": "calibrated", ...}]
    tensors   those of each stage, their names after its place in the list: "0.model.weight"

A new stage is a file with a class derived from `Stage` and a line in STAGES, or a class of another
package with an entry point of the group `vrgcn.stages`.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from vrgcn.files.kinds import NAMES, OBJECT, Kind, check_kinds, shown
from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import STAGES as PLUGINS
from vrgcn.files.plugins import check_own, is_plugin, known_names, load_plugin, plugin_package
from vrgcn.inference.own_models import Factory
from vrgcn.inference.stage import Stage
from vrgcn.tasks import is_task

if TYPE_CHECKING:
    from vrgcn.inference.saved import SavedModel

# name of the stage: module and class; the first two begin a chain
FIRST = {
    "exact": "vrgcn.inference.saved:SavedModel",
    "averaged": "vrgcn.inference.average:Average",
}
STAGES = {
    "smoothed": "vrgcn.inference.smoothing:Smoothing",
    "calibrated": "vrgcn.inference.calibration:Calibration",
}
_NAME = "name"
# entries of a file beside the stages
MEANING = {
    "task": Kind(is_task, "a task of vrgcn, or of a package that is installed"),
    "classes": NAMES,
    "features": NAMES,
}
CHAIN = Kind(
    lambda value: isinstance(value, list) and bool(value) and all(map(OBJECT.good, value)),
    "a list of at least one object",
)


class Source(NamedTuple):
    """What a chain is read with.

    task, classes, features: as in `SavedModel`
    folder: of the file; factory: makes models of the user's own, as in `load_model`
    """

    task: str
    classes: list[str] | None
    features: list[str] | None
    folder: Path
    factory: Factory | None


def written_chain(
    saved: SavedModel, folder: Path
) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """The entries and tensors of a saved model's stages. folder: that the file will be in"""
    settings, tensors = saved.written(folder)
    entries = [{_NAME: saved.name, **settings}]
    held = {f"0.{name}": tensor for name, tensor in tensors.items()}
    for index, stage in enumerate(saved.stages, start=1):
        entries.append({_NAME: stage.name, **stage.settings})
        held |= {f"{index}.{name}": tensor for name, tensor in stage.tensors.items()}
    return entries, held


def read_chain(
    where: str, entries: Sequence[dict[str, Any]], tensors: Mapping[str, Tensor], source: Source
) -> SavedModel:
    """The saved model of a file's entries and tensors; raise if they do not agree.

    where: the file, for errors
    """
    parts = tensors_by_place(where, tensors, len(entries), "stages")
    names = [entry.get(_NAME) for entry in entries]
    settings = [{k: v for k, v in entry.items() if k != _NAME} for entry in entries]
    saved = _first_stage(where, names[0]).of_chain(where, settings[0], parts[0], source)
    for name, own, held in zip(names[1:], settings[1:], parts[1:], strict=True):
        kind = find_stage(where, name)
        check_kinds(f"{where}: {name}", own, kind.kinds)
        refuse_unknown(where, own, kind.kinds, f"stage {name!r}")
        stage = kind.of_file(where, own, held, saved)
        refuse_unknown(where, held, stage.tensors, f"stage {name!r}")
        saved = saved.then(stage)
    return saved


def find_stage(where: str, name: object) -> type[Stage]:
    """The class of a stage after the first. where: the file that names it, for errors"""
    if isinstance(name, str) and name in STAGES:
        check_own(PLUGINS, name)
        kind = _named(STAGES[name])
    elif is_plugin(PLUGINS, name):
        assert isinstance(name, str)
        kind = load_plugin(PLUGINS, name)
        if not (isinstance(kind, type) and issubclass(kind, Stage) and kind.name == name):
            raise InputError(
                f"the stage {name!r} of {plugin_package(PLUGINS, name)} is no class of "
                f"vrgcn.inference.stage.Stage whose name is {name!r}"
            )
    else:
        raise InputError(
            f"{where}: stages after the first must be {known_names(PLUGINS, STAGES)}, not "
            f"{shown(name)}; if another package has it, install that"
        )
    stage: type[Stage] = kind
    return stage


def refuse_unknown(
    where: str, entries: Mapping[str, Any], known: Collection[str], what: str
) -> None:
    """Raise if a file has an entry, or a tensor, that `what` does not have."""
    unknown = entries.keys() - set(known)
    if unknown:
        raise InputError(f"{where}: no {what} has {shown(min(unknown))}")


def tensors_by_place(
    where: str, tensors: Mapping[str, Tensor], count: int, what: str
) -> list[dict[str, Tensor]]:
    """The tensors of each part of a list, by the names that it has for them.

    what: the parts are, for errors
    """
    by_place: list[dict[str, Tensor]] = [{} for _ in range(count)]
    places = {str(place): held for place, held in enumerate(by_place)}
    for name, tensor in tensors.items():
        place, _, own = name.partition(".")
        if place not in places:
            raise InputError(f"{where}: none of its {count} {what} has the tensor {name!r}")
        places[place][own] = tensor
    return by_place


def _first_stage(where: str, name: object) -> type[SavedModel]:
    if not (isinstance(name, str) and name in FIRST):
        raise InputError(
            f"{where}: the first stage must be {' or '.join(FIRST)}, not {shown(name)}"
        )
    first: type[SavedModel] = _named(FIRST[name])
    return first


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
