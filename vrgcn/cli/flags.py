"""The flags of a command, read from its options class.

A field of a dataclass is a flag, and the text under it is its help; the fields of an inner
dataclass are flags of the same command. A field marked Positional is given without a flag; one
marked Repeated may be given several times. The type of a flag that several commands share carries
its text: Text is the text itself, TextOf names the field under which it stands.
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from vrgcn.data.databases.url import TableUrl, place
from vrgcn.files.plugins import Plugins

T = TypeVar("T")
_POSITIONAL = "positional"
Positional = Annotated[T, _POSITIONAL]
_REPEATED = "repeated"
Repeated = Annotated[T, _REPEATED]


class Text(str):
    """Marks a flag and holds its help text."""

    __slots__ = ()


class TextOf(NamedTuple):
    """Marks a flag whose help text stands under a field of another dataclass."""

    kind: type
    field: str


class FileWord(str):
    """A file or the address of a table, with the name of its kind before it where there are
    several: users.csv, user=sqlite:///shop.db#users."""

    __slots__ = ()


_WORDS: dict[object, str] = {
    int: "INT",
    float: "NUMBER",
    str: "TEXT",
    Path: "PATH",
    place: "PATH",
    FileWord: "PATH",
}


@dataclass(frozen=True)
class Flag:
    """One field of an options class.

    name: the name of the field; group: the heading it belongs to, such as "The training."
    kind: the type of one value: str, int, float, bool, Path or FileWord; or `place`
    choices: the allowed texts, if they are limited
    plugins: the group of entry points that have further texts; "" if there is none
    several: True if it takes any number of values; optional: True if it may be None
    repeated: True if giving it again adds to its values; otherwise the last one counts
    default: MISSING if the flag is required
    """

    name: str
    text: str
    group: str
    kind: Any
    choices: tuple[str, ...]
    several: bool
    optional: bool
    plugins: str
    positional: bool
    repeated: bool
    default: Any

    @property
    def flag(self) -> str:
        """The flag as the user types it: --batch-size, or GRAPH for a positional argument."""
        # A field cannot be called `for`: it is `for_`.
        name = self.name.rstrip("_")
        return name.upper() if self.positional else f"--{name.replace('_', '-')}"

    @property
    def value(self) -> str:
        """The placeholder of its value in a help text: PATH, or {gcn,mlp}; empty for a switch."""
        if self.kind is bool:
            return ""
        word = f"{{{','.join(self.choices)}}}" if self.choices else _WORDS[self.kind]
        return f"{word} ..." if self.several else word


@cache
def flags_of(options: type, group: str = "") -> tuple[Flag, ...]:
    """Return the flags of an options class, including those of inner classes, in the order of the
    fields."""
    hints = get_type_hints(options, include_extras=True)
    texts = field_texts(options)
    found: list[Flag] = []
    for field in fields(options):
        hint = hints[field.name]
        if is_dataclass(hint) and isinstance(hint, type):
            inner = flags_of(hint, (hint.__doc__ or "").splitlines()[0])
            made = _default(field)
            found += [_with_default(flag, made) for flag in inner]
        else:
            found.append(_flag(field, hint, texts.get(field.name, ""), group))
    return tuple(found)


def _flag(field: Field[Any], hint: Any, text: str, group: str) -> Flag:
    marks: list[Any] = []
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)
    parts = [part for part in get_args(hint) if part is not type(None)]
    optional = type(None) in get_args(hint)
    hint = place if TableUrl in parts else parts[0] if optional else hint
    several = get_origin(hint) is tuple
    hint = get_args(hint)[0] if several else hint
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    kind = str if choices else hint
    if kind is not bool and kind not in _WORDS:
        raise TypeError(f"{field.name}: a flag cannot be a {hint}")
    return Flag(
        *(field.name, text or _marked_text(marks), group, kind, choices, several, optional),
        plugins=next((mark.group for mark in marks if isinstance(mark, Plugins)), ""),
        positional=_POSITIONAL in marks,
        repeated=_REPEATED in marks,
        default=_default(field),
    )


def _marked_text(marks: list[Any]) -> str:
    """Return the help text that the type of a flag carries."""
    for mark in marks:
        if isinstance(mark, TextOf):
            return field_texts(mark.kind)[mark.field]
        if isinstance(mark, Text):
            return str(mark)
    return ""


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _with_default(flag: Flag, made: Any) -> Flag:
    """Return the flag of an inner class with the default that the outer class gives it."""
    return Flag(**(vars(flag) | {"default": getattr(made, flag.name)}))


def field_texts(options: type) -> dict[str, str]:
    """Return the text under each field of a dataclass and of its base classes."""
    texts: dict[str, str] = {}
    for kind in reversed(options.__mro__):
        if not is_dataclass(kind):
            continue
        body = _class(kind).body
        for field, below in pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                texts[field.target.id] = " ".join(str(below.value.value).split())
    return texts


def _class(kind: type) -> ast.ClassDef:
    for statement in _module(kind.__module__).body:
        if isinstance(statement, ast.ClassDef) and statement.name == kind.__name__:
            return statement
    raise TypeError(f"{kind.__name__} is not a class of its module's top level")


@cache
def _module(name: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[name]))
