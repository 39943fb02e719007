"""The file of a saved model, read without trust: what it says must agree with its tensors, and both
with its checksum.

Nothing is built before that is known: a file that claims a thousand million layers, or a layer of
terabytes, is refused by counting the tensors that it has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vrgcn.baselines import BASELINES
from vrgcn.baselines.baseline import Baseline
from vrgcn.files.checksums import value_checksum
from vrgcn.files.kinds import (
    COUNT,
    FLAG,
    NAMES,
    OBJECT,
    POSITIVE,
    TEXT,
    Kind,
    check_kinds,
    one_of,
    or_null,
    shown,
)
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import parse_json
from vrgcn.files.tensors import DTYPES, map_tensors, size_of, tensor_checksum, write_tensors
from vrgcn.files.writing import new_file
from vrgcn.graph.propagation import PROPAGATIONS
from vrgcn.graph.scaling import KINDS
from vrgcn.inference.calibration import Calibration, is_calibration
from vrgcn.inference.node_tables import TENSORS as ID_TENSORS
from vrgcn.inference.smoothing import Smoothing, is_smoothing
from vrgcn.models.dense import ACTIVATIONS, NORMS
from vrgcn.models.lightgcn import LIGHT
from vrgcn.models.models import JUMPING, MODELS, GraphModel
from vrgcn.models.relational import RELATIONAL, RelationalModel, num_columns
from vrgcn.pairs.decoders import DECODERS
from vrgcn.pairs.model import ENCODERS, PairModel
from vrgcn.tasks import is_task

FORMAT = "vrgcn-model"
VERSION = 1
CHECKSUM = "checksum"  # covers tensors and description
_PREFIX = "model."
PAIRS = "pairs"  # the name of models that score pairs
_SCALE = ("output_scale.mean", "output_scale.deviation")
_GROUPS = "scaling.groups"
# Tensors that scalings of some kinds have.
_SCALED = {
    "standard": ("mean", "deviation"),
    "blocks": ("mean", "deviation", "groups"),
}

Description = dict[str, Any]
Tensors = dict[str, Tensor]


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
    own = description.get("model", "") is None
    check_kinds(str(path), description, _OWN_KINDS if own else _KINDS)
    if not own:
        _check_arguments(path, description["model"], description["arguments"])
    if description["propagation"] is None and not (own or description["own_matrix"]):
        raise InputError(f"{path}: does not say by what the model propagates")
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise InputError(f"{path}: {name} holds NaN or infinite numbers; train the model again")
    _check_agreement(path, description, tensors)
    return description, tensors


def write_model_file(path: Path, description: Description, tensors: Tensors) -> None:
    """Write a model with its checksum, a piece of a tensor at a time: all of it or nothing."""
    text = json.dumps(signed(description, tensors))
    with new_file(path, size=size_of(tensors)) as file:
        write_tensors(file, tensors, {FORMAT: text})


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


def weights_of(tensors: Tensors) -> Tensors:
    """The model's own weights, by the names that the model has for them."""
    return {
        name.removeprefix(_PREFIX): value
        for name, value in tensors.items()
        if name.startswith(_PREFIX)
    }


def build_saved(
    path: Path, description: Description, tensors: Tensors
) -> GraphModel | RelationalModel | Baseline | PairModel:
    """The model with the file's weights."""
    weights, arguments = weights_of(tensors), description["arguments"]
    # The tensors of a baseline are as many whatever its arguments say.
    layers = arguments.get("layers", 0) * arguments.get("dense", 0)
    if layers > len(weights):
        raise InputError(f"{path}: claims {layers:,} dense layers and has {len(weights)} tensors")
    try:
        with torch.device("meta"):  # shapes alone, whatever the widths
            model = SAVED[description["model"]](**arguments)
        wanted = dict(model.state_dict())
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise InputError(f"{path}: describes a model that cannot be: {error}") from None
    numbers = description["regression"] or description["task"] is not None
    if numbers and any(name in weights for name in _SCALE):
        wanted |= dict.fromkeys(_SCALE, torch.empty((), device="meta"))
    _check_weights(path, weights, wanted)
    # The file's own tensors become the model's: those on the meta device have no numbers.
    model.load_state_dict(weights, assign=True)
    if isinstance(model, Baseline):
        try:
            model.check_tensors()
        except ValueError as error:
            raise InputError(f"{path}: {error}") from None
    return model


def smoothing_of(path: Path, description: Description, tensors: Tensors) -> Smoothing | None:
    """The smoothing that the file describes; None where it has none."""
    settings = _settings_of(path, description, "smoothing", Smoothing.kinds)
    if settings is None:
        return None
    found = Smoothing.of_file(path, settings, tensors)
    outputs = (description["arguments"] or {}).get("classes")
    if description["model"] is not None and found.errors.shape[1] != outputs:
        raise InputError(
            f"{path}: its smoothing is of {found.errors.shape[1]} outputs, and the model has "
            f"{outputs}"
        )
    return found


def calibration_of(path: Path, description: Description, tensors: Tensors) -> Calibration | None:
    """The calibration that the file describes; None where it has none."""
    settings = _settings_of(path, description, "calibration", Calibration.kinds)
    return None if settings is None else Calibration.of_file(path, settings, tensors)


def _settings_of(
    path: Path, description: Description, part: str, kinds: Mapping[str, Kind]
) -> Description | None:
    settings: Description | None = description[part]
    if settings is not None:
        check_kinds(f"{path}: {part}", settings, kinds)
        unknown = settings.keys() - kinds.keys()
        if unknown:
            raise InputError(f"{path}: no {part} has {shown(min(unknown))}")
    return settings


def _is_beside(tensor: str) -> bool:
    """True for tensors that are neither the model's nor of the scaling."""
    return is_smoothing(tensor) or is_calibration(tensor)


def _check_weights(path: Path, weights: Tensors, wanted: Tensors) -> None:
    """Refuse weights of other names, shapes or types than `wanted`, which may be without numbers.

    Floating-point weights may have another precision, all of them the same.
    """
    missing, foreign = wanted.keys() - weights.keys(), weights.keys() - wanted.keys()
    if missing:
        raise InputError(f"{path}: lacks the weights {min(missing)!r} of the model it describes")
    if foreign:
        raise InputError(f"{path}: the model that it describes has no weights {min(foreign)!r}")
    for name, own in wanted.items():
        found, floating = weights[name], own.is_floating_point()
        if found.shape != own.shape:
            raise InputError(
                f"{path}: {name} is {tuple(found.shape)}, and the model that the file "
                f"describes has {tuple(own.shape)}"
            )
        if not (found.is_floating_point() if floating else found.dtype == own.dtype):
            kind = "floating-point numbers" if floating else own.dtype
            raise InputError(f"{path}: {name} holds {found.dtype}, not {kind}")
    numbers = {name: value for name, value in weights.items() if value.is_floating_point()}
    dtypes = {value.dtype for name, value in numbers.items() if name not in _SCALE}
    if len(dtypes) > 1:
        raise InputError(f"{path}: has weights of several types: {', '.join(map(str, dtypes))}")
    deviation = numbers.get(_SCALE[1])
    if deviation is not None and not deviation > 0:
        raise InputError(f"{path}: {_SCALE[1]} must be above 0")


def _check_agreement(path: Path, description: Description, tensors: Tensors) -> None:
    if description["regression"] and description["multilabel"]:
        raise InputError(f"{path}: a model predicts numbers or several classes, not both")
    columns = None if description["features"] is None else len(description["features"])
    if description["model"] is not None:
        columns = _check_names(path, description)
    wanted = {f"scaling.{name}" for name in _SCALED.get(description["scaling"], ())}
    found = {name for name in tensors if not name.startswith(_PREFIX) and not _is_beside(name)} - {
        *ID_TENSORS
    }
    if found != wanted:
        raise InputError(
            f"{path}: scaling {description['scaling']!r} has the tensors "
            f"{sorted(wanted)}, and the file {sorted(found)}"
        )
    for name in sorted(wanted):
        shape = tuple(tensors[name].shape)
        if len(shape) != 1 or columns not in (None, *shape):
            raise InputError(f"{path}: {name} is {shape}, and the model takes {columns} features")
        if name != _GROUPS and not tensors[name].is_floating_point():
            raise InputError(
                f"{path}: {name} holds {tensors[name].dtype}, not floating-point numbers"
            )
        if name == "scaling.deviation" and not (tensors[name] > 0).all():
            raise InputError(f"{path}: {name} must be above 0")
    groups = tensors.get(_GROUPS)
    if groups is not None and (groups.dtype != torch.int64 or not _counts_up(groups)):
        raise InputError(f"{path}: {_GROUPS} must hold the numbers of groups, from 0 or 1 up")


def _counts_up(groups: Tensor) -> bool:
    """Whether each number from 1 to the largest is there."""
    found = groups.unique()
    return bool(found[0] >= 0 and found[-1] < len(found) + int(found[0] > 0))


def _check_names(path: Path, description: Description) -> int:
    """How many features a model of ours takes; names must be as many, and outputs as it says."""
    arguments = description["arguments"]
    if description["regression"] and arguments["classes"] != 1:
        raise InputError(f"{path}: a model of numbers has one output and no classes")
    columns = num_columns(arguments)
    for key, count in (("classes", arguments["classes"]), ("features", columns)):
        names = description[key]
        if names is not None and len(names) != count:
            raise InputError(f"{path}: names {len(names)} {key}, and the model has {count}")
    assert columns is not None
    return columns


def _check_arguments(path: Path, model: str, arguments: dict[str, Any]) -> None:
    if model in BASELINES:
        kinds = BASELINES[model].kinds
    elif model == PAIRS:
        encoder = arguments.get("encoder")
        network = _LIGHT if encoder in LIGHT else _ARGUMENTS
        kinds = (_RELATIONAL if encoder in RELATIONAL else network) | _OF_PAIRS
    else:
        kinds = _RELATIONAL if model in RELATIONAL else _ARGUMENTS
    check_kinds(str(path), arguments, kinds)
    unknown = arguments.keys() - kinds.keys()
    if unknown:
        raise InputError(f"{path}: no model has {shown(min(unknown))}")


# Models that files name: they are made without a class of the user's.
SAVED: dict[str, type[GraphModel] | type[RelationalModel] | type[Baseline] | type[PairModel]] = {
    **MODELS,
    **RELATIONAL,
    **BASELINES,
    PAIRS: PairModel,
}
_KINDS = {
    "model": one_of(*SAVED),
    "arguments": OBJECT,
    "propagation": or_null(one_of(*PROPAGATIONS)),
    "scaling": one_of(*KINDS),
    "multilabel": FLAG,
    "regression": FLAG,
    "own_matrix": FLAG,
    "classes": NAMES,
    "features": NAMES,
    "smoothing": or_null(OBJECT),
    "calibration": or_null(OBJECT),
    "task": or_null(Kind(is_task, "a task of a package that is installed")),
}
_OWN_KINDS = _KINDS | {
    "model": Kind(lambda value: value is None, "null"),
    "class": TEXT,
    "arguments": or_null(OBJECT),
    "plugin": or_null(TEXT),
}
_ARGUMENTS = {
    "in_features": POSITIVE,
    "hidden": POSITIVE,
    "classes": POSITIVE,
    "layers": POSITIVE,
    "dense": POSITIVE,
    "dropout": Kind(
        lambda v: isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < 1,
        "at least 0 and below 1",
    ),
    "order": one_of("after", "before"),
    "layer_norm": FLAG,
    "bias": FLAG,
    "activation": one_of(*ACTIVATIONS),
    "transform_first": FLAG,
    "learned_rows": FLAG,
    "neighbour_labels": FLAG,
    "skip": FLAG,
    "sparse_features": FLAG,
    "node_embeddings": FLAG,
    "nodes": COUNT,
    "label_hops": Kind(lambda v: type(v) is int and v in (1, 2), "1 or 2"),
    "norm": one_of("auto", *NORMS),
    "jumping": one_of(*JUMPING),
}
_COUNTS = Kind(
    lambda v: isinstance(v, dict) and all(type(n) is int and n >= 0 for n in v.values()),
    "an object of whole numbers",
)
_RELATIONAL = {
    **{
        name: kind
        for name, kind in _ARGUMENTS.items()
        if name in signature(RelationalModel).parameters
    },
    "layers": COUNT,
    "kinds": _COUNTS,
    "rows": _COUNTS,
    "relations": Kind(
        lambda v: isinstance(v, list) and all(isinstance(r, list) and len(r) == 3 for r in v),
        "a list of source kind, relation and target kind",
    ),
    "target": Kind(
        lambda v: (
            isinstance(v, str) or (isinstance(v, list) and all(isinstance(k, str) for k in v))
        ),
        "a text, or a list of texts",
    ),
    "bases": COUNT,
}
_LIGHT = {"in_features": COUNT, **dict.fromkeys(("classes", "nodes", "layers"), POSITIVE)}
# Arguments of a model of pairs beside those of the network in it.
_OF_PAIRS = {
    "encoder": one_of(*ENCODERS),
    "decoder": one_of(*DECODERS),
    "relation": TEXT,
    "directed": FLAG,
    "directions": NAMES,
    "values": or_null(COUNT),
}
