"""Custom models in model files: the class that they were made by, and how they are rebuilt.

A file cannot define a class. It keeps the class's name, for information, and the model's
`arguments` if it has them; the user names the class or function to call. Nothing is unpickled, and
only what the user names is imported.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from torch import nn

from vrgcn.files.mistakes import InputError
from vrgcn.models.plugins import is_plugin_model, made_by, make_plugin

Factory = str | nn.Module | Callable[..., nn.Module]


def describe_own(model: nn.Module) -> dict[str, Any]:
    """The description of a model of the user's own in a file: its class, and `model.arguments`
    where that is a dict that JSON can hold; of a plug-in's, the arguments that it was made of."""
    kind, plugin = type(model), made_by(model)
    arguments = getattr(model, "arguments", None) if plugin is None else plugin.arguments
    try:
        kept = arguments if isinstance(arguments, dict) else None
        json.dumps(kept)
    except (TypeError, ValueError):
        kept = None
    name = f"{kind.__module__}:{kind.__qualname__}"
    named = None if plugin is None else plugin.name
    return {"model": None, "class": name, "arguments": kept, "plugin": named}


def make_own(where: str, description: dict[str, Any], factory: Factory | None) -> nn.Module:
    """The model that the user's class or function makes."""
    if factory is None and description["plugin"] is not None:
        return _of_plugin(where, description)
    if factory is None:
        kind = description["class"]
        raise InputError(
            f"{where} holds a model of your own, of the class {kind}; say what makes it: "
            f'load_model(path, model={kind.split(":")[-1]}) or model="{kind}". Nothing is imported '
            "that you do not name"
        )
    if isinstance(factory, nn.Module):
        return factory
    make = _named(factory) if isinstance(factory, str) else factory
    arguments = description["arguments"] or {}
    try:
        model = make(**arguments)
    except TypeError as error:
        given = ", ".join(arguments) or "no arguments, for the model had no dict `arguments`"
        raise TypeError(
            f"{where}: cannot make the model ({error}); it was called with {given}. Give a "
            "function that needs no more: load_model(path, model=lambda: Mine(64, 128, 7))"
        ) from None
    if not isinstance(model, nn.Module):
        raise TypeError(f"model={factory!r} made {model!r}, which is no torch.nn.Module")
    return model


def _of_plugin(where: str, description: dict[str, Any]) -> nn.Module:
    """The model that an installed plug-in makes."""
    name = description["plugin"]
    if not is_plugin_model(name):
        raise InputError(
            f"{where} holds the model {name!r} of another package, which is not installed here: "
            f"install it, or say what makes the model: load_model(path, "
            f'model="{description["class"]}")'
        )
    return make_plugin(name, description["arguments"] or {})


def _named(name: str) -> Callable[..., nn.Module]:
    """The object that a text such as "mymodels:Residual" names."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise InputError(f'model={name!r}: write "module:name", such as "mymodels:Residual"')
    try:
        value: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(f"model={name!r}: {error}; is its folder on the path?") from None
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise InputError(f"model={name!r}: {module} has no {attribute}")
        value = getattr(value, part)
    if not callable(value):
        raise TypeError(f"model={name!r} is neither a class nor a function")
    made: Callable[..., nn.Module] = value
    return made
