"""`Average`: several saved models that predict together, and the folder that keeps them.

The outputs are those whose probabilities, or numbers, are the weighted mean of the members'. Each
member scales features and propagates in its own way. For prediction, evaluation and reports an
average is a saved model like any other; it has no layers of its own.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from torch import nn

from vrgcn.files.checksums import file_checksum, value_checksum
from vrgcn.files.kinds import OBJECT, TEXT, Kind, check_kinds, or_null, shown
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_json
from vrgcn.files.tensors import read_tensors, size_of, tensor_checksum, write_tensors
from vrgcn.files.writing import new_file, write_text
from vrgcn.graph.graph import Graph
from vrgcn.inference import AVERAGE
from vrgcn.inference.calibration import Calibration
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.inference.smoothing import Smoothing

FORMAT, VERSION = "vrgcn-average", 1
_CHECKSUM, _TENSORS = "checksum", "tensors"
_SMOOTHING, _CALIBRATION = "smoothing.safetensors", "calibration.safetensors"
_MEMBERS = "members"  # the folder of their files

P = TypeVar("P", Smoothing, Calibration)


@dataclass(frozen=True)
class Average(SavedModel):
    """members: by name; weights: of each, above 0, their sum is 1
    best: the folder of the best single model, for errors; None where nobody knows

    `model` has the members' modules, so that they move to a device together.
    """

    members: dict[str, SavedModel] | None = None
    weights: tuple[float, ...] = ()
    best: str | None = None

    @staticmethod
    def of_members(
        members: dict[str, SavedModel], weights: dict[str, float], best: str | None = None
    ) -> Average:
        """weights: of some of the members, whole or broken numbers; the others are left out"""
        kept = {name: members[name] for name, weight in weights.items() if weight > 0}
        if not kept:
            raise InputError("an average needs a member whose weight is above 0")
        _check_alike(kept)
        first, total = next(iter(kept.values())), sum(weights[name] for name in kept)
        return Average(
            nn.ModuleList(member.model for member in kept.values()),
            multilabel=first.multilabel,
            classes=first.classes,
            features=first.features,
            regression=first.regression,
            own_task=first.own_task,
            members=kept,
            weights=tuple(weights[name] / total for name in kept),
            best=best,
        )

    @property
    def first(self) -> SavedModel:
        """A member; all of them take the same columns and know the same classes."""
        assert self.members is not None
        return next(iter(self.members.values()))

    @property
    def num_features(self) -> int | None:
        return self.first.num_features

    @property
    def num_classes(self) -> int | None:
        return self.first.num_classes

    def prepare(self, graph: Graph, scaled: Path | None = None) -> Graph:
        """The graph as it is: each member has its own scaling."""
        return graph

    def refuse_layers(self) -> NoReturn:
        """Refuse to look inside."""
        one = "" if self.best is None else f", such as the best of them: {self.best}"
        raise InputError(
            f"an average of {len(self.weights)} models has no layers of its own to embed nodes "
            f"by; name a single model{one}"
        )


def save_average(average: Average, folder: Path) -> None:
    """Write an average to a folder: its members, and last what says how they are weighed."""
    assert average.members is not None
    (folder / _MEMBERS).mkdir(parents=True, exist_ok=True)
    entries = []
    for (name, member), weight in zip(average.members.items(), average.weights, strict=True):
        file = f"{_MEMBERS}/{name}.safetensors"
        save_model(member, folder / file)
        checksum = file_checksum(folder / file)
        entries.append({"name": name, "file": file, "weight": weight, _CHECKSUM: checksum})
    # Relative: both may be moved together.
    best = None if average.best is None else os.path.relpath(average.best, folder)
    about: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "best": best,
        "members": entries,
        "smoothing": _written(folder / _SMOOTHING, average.smoothing),
        "calibration": _written(folder / _CALIBRATION, average.calibration),
    }
    about[_CHECKSUM] = value_checksum(about)
    write_text(folder / AVERAGE, json.dumps(about, indent=1) + "\n")


def _written(file: Path, part: Smoothing | Calibration | None) -> dict[str, Any] | None:
    """Write the tensors of a part of an average; return its entry of average.json."""
    if part is None:
        return None
    tensors = part.tensors
    with new_file(file, size=size_of(tensors)) as opened:
        write_tensors(opened, tensors)
    sums = {name: tensor_checksum(tensor) for name, tensor in tensors.items()}
    return {**part.settings, _TENSORS: sums}


def load_average(folder: Path) -> Average:
    """The average in a folder."""
    path = folder / AVERAGE
    about = read_json(path)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f"{path}: was not written by vrgcn; it lacks the entry {FORMAT!r}")
    if about.get("version") != VERSION:
        raise InputError(
            f"{path}: is of version {shown(about.get('version'))}, and this vrgcn reads version "
            f"{VERSION}: run the search again"
        )
    said = {name: value for name, value in about.items() if name != _CHECKSUM}
    if about.get(_CHECKSUM) != value_checksum(said):
        raise InputError(
            f"{path}: is damaged, or was changed by hand: its checksum is another; copy it again "
            "from where it was made, or run the search again"
        )
    check_kinds(str(path), about, _KINDS)
    for entry in about["members"]:
        check_kinds(str(path), entry, _MEMBER)
    members = {entry["name"]: _load_member(folder, entry) for entry in about["members"]}
    weights = {entry["name"]: entry["weight"] for entry in about["members"]}
    best = None if about["best"] is None else os.path.normpath(folder / about["best"])
    try:
        average = Average.of_members(members, weights, best)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    # As they were written: dividing by a sum that is nearly 1 would change last bits.
    return replace(
        average,
        weights=tuple(weights.values()),
        smoothing=_read(folder / _SMOOTHING, about["smoothing"], Smoothing),
        calibration=_read(folder / _CALIBRATION, about["calibration"], Calibration),
    )


def _load_member(folder: Path, entry: dict[str, Any]) -> SavedModel:
    """Load a member; raise if another model has the name of its file."""
    file = folder / entry["file"]
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing; {AVERAGE} says that the average has it")
    if file_checksum(file) != entry[_CHECKSUM]:
        raise InputError(
            f"{file}: is damaged, or is another model: its checksum is not the one in {AVERAGE}; "
            "copy the average again from where it was made, or run the search again"
        )
    return load_model(file)


def _read(file: Path, about: dict[str, Any] | None, kind: type[P]) -> P | None:
    """Read a part of an average, its smoothing or its calibration; None where average.json has
    none."""
    if about is None:
        return None
    tensors = read_tensors(file)
    if {name: tensor_checksum(tensor) for name, tensor in tensors.items()} != about.get(_TENSORS):
        raise InputError(f"{file}: is damaged: its checksum is another; copy it again")
    settings = {name: value for name, value in about.items() if name != _TENSORS}
    check_kinds(f"{file.parent / AVERAGE}: {file.stem}", settings, kind.kinds)
    return kind.of_file(file, settings, tensors)


def _check_alike(members: dict[str, SavedModel]) -> None:
    """Refuse members that predict, or take, something else than the first."""
    (first, one), *others = members.items()
    for name, other in others:
        for what in ("task", "classes", "features", "num_classes", "num_features"):
            mine, theirs = getattr(one, what), getattr(other, what)
            if mine != theirs:
                raise InputError(
                    f"{name} cannot be averaged with {first}: its {what} is {shown(theirs)}, and "
                    f"not {shown(mine)}"
                )


def _inside(value: Any) -> bool:
    """Whether a text is the path of a file below a folder."""
    if not isinstance(value, str):
        return False
    return not Path(value).is_absolute() and ".." not in Path(value).parts


_KINDS = {
    "members": Kind(
        lambda value: isinstance(value, list) and bool(value) and all(map(OBJECT.good, value)),
        "a list of at least one object",
    ),
    "best": or_null(TEXT),
    "smoothing": or_null(OBJECT),
    "calibration": or_null(OBJECT),
}
_MEMBER = {
    "name": TEXT,
    "file": Kind(_inside, "the path of a file in the same folder"),
    "weight": Kind(
        lambda value: type(value) in (int, float) and 0 < value <= 1, "above 0 and at most 1"
    ),
    _CHECKSUM: TEXT,
}
