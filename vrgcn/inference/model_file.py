"""The file of a saved model, read without trust: what it says must agree with its tensors.

Nothing is built before that is known: a file that claims a thousand million layers, or a layer of
terabytes, is refused by counting the tensors that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from vrgcn.files.parsing import parse_json
from vrgcn.graph.propagation import PROPAGATIONS
from vrgcn.graph.scaling import KINDS
from vrgcn.models.models import ACTIVATIONS, MODELS, GraphModel

FORMAT = "vrgcn-model"
VERSIONS = (1, 2)  # that are read; 2 predicts numbers, and is written for them alone
_PREFIX = "model."
_SCALE = ("output_scale.mean", "output_scale.deviation")

Description = dict[str, Any]
Tensors = dict[str, Tensor]


def read_model_file(path: Path) -> tuple[Description, Tensors]:
    """What the file says of the model, its entries of the right kind, and all tensors, finite."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = (file.metadata() or {}).get(FORMAT)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OverflowError) as error:
        raise ValueError(f"{path}: not a safetensors file, or not all of one: {error}") from None
    if metadata is None:
        raise ValueError(f"{path}: was not written by vrgcn; it lacks the entry {FORMAT!r}")
    description = parse_json(metadata, f"{path}: its entry {FORMAT!r}")
    if not isinstance(description, dict):
        raise ValueError(f"{path}: its entry {FORMAT!r} must be an object")
    version = description.get("version")
    if type(version) is not int or version not in VERSIONS:
        raise ValueError(
            f"{path}: is of version {_shown(version)}, and this vrgcn reads "
            f"{' and '.join(map(str, VERSIONS))}"
        )
    description.setdefault("regression", False)  # files from before there was regression
    _check_kinds(path, description, _KINDS)
    _check_kinds(path, description["arguments"], _ARGUMENTS)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(f"{path}: {name} holds {tensor.dtype}, not floating-point numbers")
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{path}: {name} holds NaN or infinite numbers; train the model again")
    _check_agreement(path, description, tensors)
    return description, tensors


def build_saved(path: Path, description: Description, tensors: Tensors) -> GraphModel:
    """The model with the file's weights."""
    weights = {
        name.removeprefix(_PREFIX): value
        for name, value in tensors.items()
        if name.startswith(_PREFIX)
    }
    arguments = description["arguments"]
    layers = arguments["layers"] * arguments["dense"]
    if layers > len(weights):
        raise ValueError(f"{path}: claims {layers:,} dense layers and has {len(weights)} tensors")
    try:
        with torch.device("meta"):  # shapes alone, whatever the widths
            model = MODELS[description["model"]](**arguments)
        wanted = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{path}: describes a model that cannot be: {error}") from None
    if description["regression"] and any(name in weights for name in _SCALE):
        wanted |= dict.fromkeys(_SCALE, ())
    _check_shapes(path, weights, wanted)
    # The file's own tensors become the model's: those on the meta device have no numbers.
    model.load_state_dict(weights, assign=True)
    return model


def _check_shapes(path: Path, weights: Tensors, wanted: dict[str, tuple[int, ...]]) -> None:
    missing, foreign = wanted.keys() - weights.keys(), weights.keys() - wanted.keys()
    if missing:
        raise ValueError(f"{path}: lacks the weights {min(missing)!r} of the model it describes")
    if foreign:
        raise ValueError(f"{path}: the model that it describes has no weights {min(foreign)!r}")
    for name, shape in wanted.items():
        if tuple(weights[name].shape) != shape:
            raise ValueError(
                f"{path}: {name} is {tuple(weights[name].shape)}, and the model that the file "
                f"describes has {shape}"
            )
    dtypes = {value.dtype for name, value in weights.items() if name not in _SCALE}
    if len(dtypes) > 1:
        raise ValueError(f"{path}: has weights of several types: {', '.join(map(str, dtypes))}")


def _check_agreement(path: Path, description: Description, tensors: Tensors) -> None:
    arguments = description["arguments"]
    if description["regression"] and (description["multilabel"] or arguments["classes"] != 1):
        raise ValueError(f"{path}: a model of numbers has one output and no classes")
    for key, count in (("classes", arguments["classes"]), ("features", arguments["in_features"])):
        names = description[key]
        if names is not None and len(names) != count:
            raise ValueError(f"{path}: names {len(names)} {key}, and the model has {count}")
    wanted = (
        {"scaling.mean", "scaling.deviation"} if description["scaling"] == "standard" else set()
    )
    found = {name for name in tensors if not name.startswith(_PREFIX)}
    if found != wanted:
        raise ValueError(
            f"{path}: scaling {description['scaling']!r} has the tensors "
            f"{sorted(wanted)}, and the file {sorted(found)}"
        )
    for name in sorted(wanted):
        if tuple(tensors[name].shape) != (arguments["in_features"],):
            raise ValueError(
                f"{path}: {name} is {tuple(tensors[name].shape)}, and the model takes "
                f"{arguments['in_features']} features"
            )
    for name in ("scaling.deviation", _PREFIX + _SCALE[1]):
        if name in tensors and not (tensors[name] > 0).all():
            raise ValueError(f"{path}: {name} must be above 0")


def _check_kinds(
    path: Path, entries: dict[str, Any], kinds: dict[str, tuple[Callable[[Any], bool], str]]
) -> None:
    for name, (good, kind) in kinds.items():
        if name not in entries:
            raise ValueError(f"{path}: does not say {name!r}")
        if not good(entries[name]):
            raise ValueError(f"{path}: {name} must be {kind}, not {_shown(entries[name])}")
    if kinds is _ARGUMENTS and entries.keys() - kinds.keys():
        raise ValueError(f"{path}: no model has {_shown(min(entries.keys() - kinds.keys()))}")


def _one_of(*names: str) -> tuple[Callable[[Any], bool], str]:
    return lambda value: isinstance(value, str) and value in names, f"one of {', '.join(names)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_FLAG = (lambda value: isinstance(value, bool), "true or false")
_COUNT = (lambda value: type(value) is int and 0 < value < 1 << 40, "a count of at least 1")
_NAMES = (
    lambda v: v is None or (isinstance(v, list) and all(isinstance(name, str) for name in v)),
    "a list of names, or null",
)
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "model": _one_of(*MODELS),
    "arguments": (lambda value: isinstance(value, dict), "an object"),
    "propagation": _one_of(*PROPAGATIONS),
    "scaling": _one_of(*KINDS),
    "multilabel": _FLAG,
    "regression": _FLAG,
    "classes": _NAMES,
    "features": _NAMES,
}
_ARGUMENTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("in_features", "hidden", "classes", "layers", "dense"), _COUNT),
    "dropout": (
        lambda v: isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < 1,
        "at least 0 and below 1",
    ),
    "order": _one_of("after", "before"),
    "layer_norm": _FLAG,
    "bias": _FLAG,
    "activation": _one_of(*ACTIVATIONS),
}
