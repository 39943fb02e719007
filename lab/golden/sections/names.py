"""Public names: signatures, members, fields and defaults; extras and the entry point."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import tomllib
from collections.abc import Iterator
from typing import Any

from lab.golden.contents import flattened
from lab.golden.public import public
from lab.golden.workspace import Workspace

# Names that the documents import from a module of the package.
DOCUMENTED = (
    "vrgcn.cli:main",
    "vrgcn.data.tables:ImportSpec",
    "vrgcn.data.tables:import_tables",
    "vrgcn.diagnostics.advice:advise",
    "vrgcn.diagnostics.diagnosis:diagnose",
    "vrgcn.engine.samplers:Sample",
    "vrgcn.pages.page:Page",
    "vrgcn.training.objective:TaskObjective",
)


def record(work: Workspace) -> None:
    """Record a text for each public name, and lists of them."""
    vrgcn = public()
    work.write("__all__", "\n".join(sorted(vrgcn.__all__)))
    work.write("dir", "\n".join(dir(vrgcn)))
    for name in dir(vrgcn):
        if name != "__version__":
            lines = described(name, getattr(vrgcn, name))
            work.write(f"vrgcn.{name}", work.masks.text("\n".join(lines)))
    for place in DOCUMENTED:
        work.write(f"documented {place}", work.masks.text("\n".join(_documented(place))))
    work.write("project", "\n".join(_project(work)))


def described(name: str, value: Any) -> Iterator[str]:
    """Describe a name: its signature and, for a class, its members."""
    if isinstance(value, dict):
        yield f"{name}: dict"
        yield from (f"  {key}: {item!r}" for key, item in value.items())
    elif inspect.isclass(value):
        yield f"class {name}{signature(value)}, a kind of {', '.join(_outer_bases(value))}"
        if dataclasses.is_dataclass(value):
            yield from _fields(value)
        yield from _members(value)
    else:
        yield f"{type(value).__name__} {name}{signature(value)}"


def signature(value: Any) -> str:
    """Return parameters, their kinds and defaults, without annotations, which may name modules that
    move."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(?)"
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
    ]
    return str(inspect.Signature(plain))


def _outer_bases(value: type) -> list[str]:
    return [base.__name__ for base in value.__mro__ if base.__module__.split(".")[0] != "vrgcn"]


def _fields(value: Any) -> Iterator[str]:
    for field in dataclasses.fields(value):
        default = "needed"
        if field.default is not dataclasses.MISSING:
            default = repr(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            default = repr(field.default_factory())
        yield f"  field {field.name}: {field.type} = {default}"


def _members(value: type) -> Iterator[str]:
    """Yield public members that the package itself defines, including inherited ones."""
    fields = set(getattr(value, "__dataclass_fields__", ()))
    found: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if base.__module__.split(".")[0] == "vrgcn":
            found |= vars(base)
    for name in sorted(found):
        if name.startswith("_") or name in fields:
            continue
        member = found[name]
        if isinstance(member, property):
            yield f"  property {name}"
        elif isinstance(member, classmethod | staticmethod):
            yield f"  {type(member).__name__} {name}{signature(member.__func__)}"
        elif inspect.isfunction(member):
            yield f"  method {name}{signature(member)}"
        else:
            plain = type(member).__module__ == "builtins"
            yield f"  attribute {name}{f' = {member!r}' if plain else ''}"


def _documented(place: str) -> Iterator[str]:
    module, _, name = place.partition(":")
    try:
        value = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        yield f"not importable: {error}"
        return
    yield from described(name, value)


def _project(work: Workspace) -> Iterator[str]:
    """Describe an installation: name, entry point, dependencies and extras."""
    project = tomllib.loads((work.code / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for key in ("name", "requires-python", "dependencies", "optional-dependencies", "scripts"):
        yield from flattened(project.get(key), key)
