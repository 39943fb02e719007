"""The first stage of most chains, `exact`: a module, its propagation and the scaling of features.

What a file says of it is read without trust: it must agree with its tensors. Nothing is built
before that is known: a file that claims a thousand million layers, or a layer of terabytes, is
refused by counting the tensors that it has.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vrgcn.baselines import BASELINES
from vrgcn.baselines.baseline import Baseline
from vrgcn.files.kinds import (
    COUNT,
    FLAG,
    NAMES,
    OBJECT,
    POSITIVE,
    SIZES,
    TEXT,
    TRIPLES,
    Kind,
    check_kinds,
    one_of,
    or_null,
)
from vrgcn.files.mistakes import InputError
from vrgcn.graph.forms import FORMS
from vrgcn.graph.propagation import PROPAGATIONS
from vrgcn.graph.scaling import KINDS, Scaling
from vrgcn.inference.node_tables import TENSORS as ID_TENSORS
from vrgcn.inference.node_tables import id_tensors, ids_of_tensors
from vrgcn.inference.own_models import describe_own, make_own
from vrgcn.inference.stages import Source, refuse_unknown
from vrgcn.models.dense import ACTIVATIONS, NORMS, tensors_of_centres
from vrgcn.models.lightgcn import LIGHT
from vrgcn.models.models import JUMPING, MODELS, GraphModel
from vrgcn.models.relational import RELATIONAL, RelationalModel, num_columns
from vrgcn.pairs.decoders import DECODERS
from vrgcn.pairs.model import ENCODERS, PairModel
from vrgcn.tasks import FLAGGED, find_task

if TYPE_CHECKING:
    from vrgcn.inference.saved import SavedModel

PAIRS = "pairs"  # the name of models that score pairs
_PREFIX = "model."
_SCALE = ("output_scale.mean", "output_scale.deviation")
_GROUPS = "scaling.groups"
# Tensors that scalings of some kinds have.
_SCALED = {
    "standard": ("mean", "deviation"),
    "blocks": ("mean", "deviation", "groups"),
    "clipped": ("mean", "deviation", "groups"),
}

Settings = dict[str, Any]
Tensors = dict[str, Tensor]


def written_exact(saved: SavedModel) -> tuple[Settings, Tensors]:
    """The settings and tensors of a model in its file."""
    own = type(saved.model) not in SAVED.values()
    itself = own or saved.own_matrix
    if saved.propagation not in PROPAGATIONS and not (itself and saved.propagation is None):
        raise InputError(f"propagation {saved.propagation!r} is none of {', '.join(PROPAGATIONS)}")
    settings = {
        **(describe_own(saved.model) if own else _describe(saved.model)),
        "propagation": saved.propagation,
        "scaling": saved.scaling.kind,
        "own_matrix": saved.own_matrix,
    }
    scaling = {name: getattr(saved.scaling, name) for name in _SCALED["blocks"]}
    return settings, {
        **{f"{_PREFIX}{name}": value for name, value in saved.model.state_dict().items()},
        **{f"scaling.{name}": value for name, value in scaling.items() if value is not None},
        **id_tensors(saved.nodes),
    }


def read_exact(where: str, settings: Settings, tensors: Tensors, source: Source) -> Settings:
    """The fields of a `SavedModel` of one model; raise if settings and tensors do not agree."""
    own = settings.get("model", "") is None
    kinds = _OWN_KINDS if own else _KINDS
    check_kinds(where, settings, kinds)
    refuse_unknown(where, settings, kinds, "model")
    if not own:
        _check_arguments(where, settings["model"], settings["arguments"])
    if settings["propagation"] is None and not (own or settings["own_matrix"]):
        raise InputError(f"{where}: does not say by what the model propagates")
    _check_agreement(where, settings, tensors, source)
    scaling = (tensors.get(f"scaling.{name}") for name in _SCALED["blocks"])
    return {
        "model": _make(where, settings, tensors, source).eval(),
        "propagation": settings["propagation"],
        "scaling": Scaling(settings["scaling"], *scaling),
        "own_matrix": settings["own_matrix"],
        "nodes": ids_of_tensors(where, tensors),
    }


def _describe(model: nn.Module) -> Settings:
    names = {kind: name for name, kind in SAVED.items()}
    return {"model": names[type(model)], "arguments": model.arguments}  # type: ignore[index]


def _make(where: str, settings: Settings, tensors: Tensors, source: Source) -> nn.Module:
    """The model that the settings describe, with its weights in their precision."""
    weights = {
        name.removeprefix(_PREFIX): value
        for name, value in tensors.items()
        if name.startswith(_PREFIX)
    }
    if settings["model"] is None:
        made = make_own(where, settings, source.factory)
        _fill(where, made, weights)
        return made
    if source.factory is not None:
        raise InputError(
            f"{where} holds {settings['model']}, one of vrgcn's models: load it without model="
        )
    return _build(where, settings, weights, source)


def _build(
    where: str, settings: Settings, weights: Tensors, source: Source
) -> GraphModel | RelationalModel | Baseline | PairModel:
    """The model with the file's weights."""
    arguments = settings["arguments"]
    # The tensors of a baseline are as many whatever its arguments say.
    layers = arguments.get("layers", 0) * arguments.get("dense", 0)
    if layers > len(weights):
        raise InputError(f"{where}: claims {layers:,} dense layers and has {len(weights)} tensors")
    try:
        with torch.device("meta"):  # shapes alone, whatever the widths
            model = SAVED[settings["model"]](**arguments)
        wanted = dict(model.state_dict())
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise InputError(f"{where}: describes a model that cannot be: {error}") from None
    numbers = source.task not in FLAGGED or not find_task(source.task).has_classes
    if numbers and any(name in weights for name in _SCALE):
        wanted |= dict.fromkeys(_SCALE, torch.empty((), device="meta"))
    wanted |= tensors_of_centres(model, weights)
    _check_weights(where, weights, wanted)
    # The file's own tensors become the model's: those on the meta device have no numbers.
    model.load_state_dict(weights, assign=True)
    if isinstance(model, Baseline):
        try:
            model.check_tensors()
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return model


def _fill(where: str, model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Load the weights of the file into a custom model, in their precision."""
    dtypes = {weights[name].dtype for name, _ in model.named_parameters() if name in weights}
    if len(dtypes) == 1:
        model.to(dtypes.pop())
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        kind = type(model).__name__
        raise InputError(f"{where}: its weights are not those of this {kind}: {error}") from None


def _check_weights(where: str, weights: Tensors, wanted: Tensors) -> None:
    """Refuse weights of other names, shapes or types than `wanted`, which may be without numbers.

    Floating-point weights may have another precision, all of them the same.
    """
    missing, foreign = wanted.keys() - weights.keys(), weights.keys() - wanted.keys()
    if missing:
        raise InputError(f"{where}: lacks the weights {min(missing)!r} of the model it describes")
    if foreign:
        raise InputError(f"{where}: the model that it describes has no weights {min(foreign)!r}")
    for name, own in wanted.items():
        given, floating = weights[name], own.is_floating_point()
        if given.shape != own.shape:
            raise InputError(
                f"{where}: {name} is {tuple(given.shape)}, and the model that the file "
                f"describes has {tuple(own.shape)}"
            )
        if not (given.is_floating_point() if floating else given.dtype == own.dtype):
            kind = "floating-point numbers" if floating else own.dtype
            raise InputError(f"{where}: {name} holds {given.dtype}, not {kind}")
    numbers = {name: value for name, value in weights.items() if value.is_floating_point()}
    dtypes = sorted({str(value.dtype) for name, value in numbers.items() if name not in _SCALE})
    if len(dtypes) > 1:
        raise InputError(f"{where}: has weights of several types: {', '.join(dtypes)}")
    deviation = numbers.get(_SCALE[1])
    if deviation is not None and not deviation > 0:
        raise InputError(f"{where}: {_SCALE[1]} must be above 0")


def _check_agreement(where: str, settings: Settings, tensors: Tensors, source: Source) -> None:
    columns = None if source.features is None else len(source.features)
    if settings["model"] is not None:
        columns = _check_names(where, settings["arguments"], source)
    wanted = {f"scaling.{name}" for name in _SCALED.get(settings["scaling"], ())}
    weights = {name for name in tensors if not name.startswith(_PREFIX)} - {*ID_TENSORS}
    if weights != wanted:
        raise InputError(
            f"{where}: scaling {settings['scaling']!r} has the tensors "
            f"{sorted(wanted)}, and the file {sorted(weights)}"
        )
    for name in sorted(wanted):
        shape = tuple(tensors[name].shape)
        if len(shape) != 1 or columns not in (None, *shape):
            raise InputError(f"{where}: {name} is {shape}, and the model takes {columns} features")
        if name != _GROUPS and not tensors[name].is_floating_point():
            raise InputError(
                f"{where}: {name} holds {tensors[name].dtype}, not floating-point numbers"
            )
        if name == "scaling.deviation" and not (tensors[name] > 0).all():
            raise InputError(f"{where}: {name} must be above 0")
    groups = tensors.get(_GROUPS)
    if groups is not None and (groups.dtype != torch.int64 or not _counts_up(groups)):
        raise InputError(f"{where}: {_GROUPS} must hold the numbers of groups, from 0 or 1 up")


def _counts_up(groups: Tensor) -> bool:
    """Whether each number from 1 to the largest is there."""
    numbers = groups.unique()
    return bool(numbers[0] >= 0 and numbers[-1] < len(numbers) + int(numbers[0] > 0))


def _check_names(where: str, arguments: Settings, source: Source) -> int:
    """How many features a model of ours takes; names must be as many, and outputs as it says."""
    if not find_task(source.task).has_classes and arguments["classes"] != 1:
        raise InputError(f"{where}: a model of numbers has one output and no classes")
    columns = num_columns(arguments)
    for key, count in (("classes", arguments["classes"]), ("features", columns)):
        names = getattr(source, key)
        if names is not None and len(names) != count:
            raise InputError(f"{where}: names {len(names)} {key}, and the model has {count}")
    assert columns is not None
    return columns


def _check_arguments(where: str, model: str, arguments: dict[str, Any]) -> None:
    if model in BASELINES:
        kinds = BASELINES[model].kinds
    elif model == PAIRS:
        encoder = arguments.get("encoder")
        network = _LIGHT if encoder in LIGHT else _ARGUMENTS
        kinds = (_RELATIONAL if encoder in RELATIONAL else network) | _OF_PAIRS
    else:
        kinds = _RELATIONAL if model in RELATIONAL else _ARGUMENTS
    check_kinds(where, arguments, kinds)
    refuse_unknown(where, arguments, kinds, "model")


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
    "own_matrix": FLAG,
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
    "linear_path": one_of("never", *FORMS),
}
_RELATIONAL = {
    **{
        name: kind
        for name, kind in _ARGUMENTS.items()
        if name in signature(RelationalModel).parameters
    },
    "layers": COUNT,
    "kinds": SIZES,
    "rows": SIZES,
    "relations": TRIPLES,
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
