"""Conversion of settings between dataclasses, one flat dict, and a TOML file."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_toml
from vrgcn.files.writing import write_text

T = TypeVar("T")


def flatten(settings: Any) -> dict[str, Any]:
    """Return a dataclass as one flat dict that includes the fields of inner dataclasses."""
    flat = {}
    for entry in fields(settings):
        value = getattr(settings, entry.name)
        flat.update(flatten(value) if is_dataclass(value) else {entry.name: value})
    return flat


def setting_types(kind: type) -> dict[str, Any]:
    """Return the type of every field of a dataclass, including those of inner dataclasses."""
    types: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is ClassVar:
            continue
        inner = is_dataclass(hint) and isinstance(hint, type)
        types.update(setting_types(hint) if inner else {name: hint})
    return types


def build(kind: type[T], values: Mapping[str, Any]) -> T:
    """Build a dataclass from a flat dict; missing fields get their defaults."""
    given: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for entry in fields(kind):  # type: ignore[arg-type]
        inner = hints[entry.name]
        if is_dataclass(inner) and isinstance(inner, type):
            usual = entry.default_factory() if callable(entry.default_factory) else inner()
            own = {f.name: getattr(usual, f.name) for f in fields(inner)}
            given[entry.name] = inner(**own | {k: v for k, v in values.items() if k in own})
        elif entry.name in values:
            given[entry.name] = values[entry.name]
    return kind(**given)


def read_values(path: Path, kind: type, left_out: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of a TOML file, each in the type that the class declares.

    kind: a dataclass whose fields, including those of inner dataclasses, are the settings
    left_out: entries of the file to ignore
    """
    types = {k: v for k, v in setting_types(kind).items() if k != "config"}
    return {
        name: typed(value, types[name], f"{path}: {name}")
        for name, value in read_toml(path).items()
        if name not in left_out and check_known(name, types, f"{path}: ")
    }


def check_known(name: str, known: Mapping[str, Any], where: str = "") -> bool:
    """Raise if a setting does not exist; otherwise return True."""
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; there are {sorted(known)}"
        raise InputError(f"{where}there is no option {name!r}{hint}")
    return True


def typed(value: Any, hint: Any, where: str) -> Any:
    """Return a value of a TOML file in the type of a setting; errors begin with `where`."""
    kinds = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is UnionType:
        hint = kinds[0]
    if hint is bool:
        if not isinstance(value, bool):
            raise InputError(f"{where} must be true or false, not {value!r}")
        return value
    several = get_origin(hint) is tuple
    values = value if isinstance(value, list) else [value]
    plain = all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in values)
    if not values or not plain or (len(values) > 1 and not several):
        raise InputError(f"{where} must be a text, a number, true, false or a list of these")
    one = get_args(hint)[0] if several else hint
    found = tuple(_single(v, one, where) for v in values)
    return found if several else found[0]


def _single(value: str | float, kind: Any, where: str) -> Any:
    if kind not in (int, float):  # a text, one of several texts, or a path
        return Path(str(value)) if kind is Path else str(value)
    wanted = "a whole number" if kind is int else "a number"
    try:
        number = kind(str(value))
    except ValueError:
        raise InputError(f"{where}: {value!r} is not {wanted}") from None
    if math.isnan(number):
        raise InputError(f"{where}: {value!r} is not {wanted}")
    return number


def write_settings(path: Path, values: Mapping[str, Any]) -> None:
    """Write settings as a TOML file. Settings that are None are left out."""
    write_text(path, settings_text(values))


def as_written(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a file that `write_settings` wrote gives them back."""
    return tomllib.loads(settings_text(values))


def settings_text(values: Mapping[str, Any]) -> str:
    """Return the text that `write_settings` writes."""
    return "".join(f"{name} = {toml_value(v)}\n" for name, v in values.items() if v is not None)


def toml_value(value: Any) -> str:
    """Return a plain value as TOML text; Python's standard library reads TOML but does not write
    it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    # TOML strings are JSON strings, except for one character that JSON does not escape.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
