"""Models of other packages, by name: `--model mine`.

A plug-in of the group `vrgcn.models` is a class, or a function, that returns a model. It is called
by name with `in_features`, `classes` (the number of outputs) and those settings of `ModelConfig`
that it has parameters for, such as `hidden`, `layers` and `dropout`; with `**settings`, all. These
arguments are saved with the model, and it is made by them again when it is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, get_args, get_type_hints

import torch
from torch import nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import MODELS, is_plugin, load_plugin, plugin_package
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import declarations
from vrgcn.graph.randomness import default_generator
from vrgcn.models.config import ModelConfig

_ATTRIBUTE = "made_by"
_OWN = get_args(get_type_hints(ModelConfig)["model"])
# Settings that are not the model's: its name, and one of relational models.
_OTHERS = ("model", "bases")


class MadeBy(NamedTuple):
    """The name of the plug-in that made a model, and the arguments that it was called with."""

    name: str
    arguments: dict[str, Any]


def build_plugin(config: ModelConfig, in_features: int, classes: int, seed: int) -> nn.Module:
    """Build the model of a plug-in with weights that depend only on the seed."""
    factory = load_plugin(MODELS, config.model)
    arguments = {
        "in_features": in_features,
        "classes": classes,
        **_settings(config, factory),
    }
    with default_generator(torch.device("cpu"), seed):
        return make_plugin(config.model, arguments, factory)


def make_plugin(
    name: str, arguments: Mapping[str, Any], factory: Callable[..., Any] | None = None
) -> nn.Module:
    """Return the model that a plug-in makes of some arguments.

    factory: the plug-in, if it is loaded already
    """
    factory = load_plugin(MODELS, name) if factory is None else factory
    who = f"the model {name!r} of {plugin_package(MODELS, name)}"
    try:
        model = factory(**arguments)
    except TypeError as error:
        raise InputError(f"{who} cannot be made of {', '.join(arguments)}: {error}") from error
    if not isinstance(model, nn.Module):
        raise InputError(f"{who} is {type(model).__name__}, and no torch.nn.Module")
    setattr(model, _ATTRIBUTE, MadeBy(name, dict(arguments)))
    return model


def made_by(model: nn.Module) -> MadeBy | None:
    """Return the plug-in that made a model; None for any other model."""
    maker = getattr(model, _ATTRIBUTE, None)
    return maker if isinstance(maker, MadeBy) else None


def is_plugin_model(name: str) -> bool:
    """True if a model's name is that of a plug-in, and none of vrgcn's own."""
    return name not in _OWN and is_plugin(MODELS, name)


def _settings(config: ModelConfig, factory: Callable[..., Any]) -> dict[str, Any]:
    """Return the settings that a plug-in has parameters for; raise for others that were given."""
    parameters = inspect.signature(factory).parameters
    every = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    settings, usual, said = asdict(config), asdict(ModelConfig()), declarations(ModelConfig)
    own = [name for name in settings if name not in _OTHERS and not said[name].of]
    taken = {name: settings[name] for name in own if every or name in parameters}
    for name in own:
        value = settings[name]
        if name not in taken and not said[name].by_graph and value != usual[name]:
            raise InputError(
                f"{setting(name, value)}: the model {config.model!r} of "
                f"{plugin_package(MODELS, config.model)} has no such setting: leave it out"
            )
    return taken
