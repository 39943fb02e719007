"""The flags of a command, read from its options class.

A field of a dataclass is a flag, and the text under it is its help; the fields of an inner
dataclass are flags of the same command. A field marked Positional is given without a flag; one
marked Repeated may be given several times. The type of a flag that several commands share carries
its text: Text is the text itself, TextOf names the field under which it stands.

Commands with many flags show their help in layers. A string such as \"\"\"Group model: what the
network looks like.\"\"\" above fields puts the fields below it into a group. A text of several
paragraphs marks a flag that people use: its first paragraph is the flag's line in the short help.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
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


_HEADING = re.compile(r"Group (\w+)(?:: (.+))?\.", re.DOTALL)
_PARAGRAPHS = re.compile(r"\n\s*\n")


class FlagGroup(NamedTuple):
    """Flags that are explained together. title: what they are about; "" if another heading of the
    group says it"""

    name: str = ""
    title: str = ""


class Note(NamedTuple):
    """What the strings in a class say about a field."""

    group: FlagGroup = FlagGroup()
    text: str = ""


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

    name: the name of the field; owner: its class; marks: what its type carries
    kind: the type of one value: str, int, float, bool, Path or FileWord; or `place`
    choices: the allowed texts, if they are limited
    plugins: the group of entry points that have further texts; "" if there is none
    several: True if it takes any number of values; optional: True if it may be None
    repeated: True if giving it again adds to its values; otherwise the last one counts
    default: MISSING if the flag is required
    """

    name: str
    owner: type
    marks: tuple[Any, ...]
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

    # Classes are parsed for their texts only if somebody reads one: commands mostly do not.

    @property
    def group(self) -> FlagGroup:
        """The group it belongs to; its name is "" if there is none."""
        return field_notes(self.owner).get(self.name, Note()).group

    @property
    def text(self) -> str:
        """Its help."""
        return " ".join(self._paragraphs)

    @property
    def summary(self) -> str:
        """One short line, if the flag is one that people use; otherwise ""."""
        return self._paragraphs[0] if len(self._paragraphs) > 1 else ""

    @property
    def _paragraphs(self) -> list[str]:
        text = field_notes(self.owner).get(self.name, Note()).text or _marked_text(self.marks)
        return [_one_line(part) for part in _PARAGRAPHS.split(text)]

    @property
    def value(self) -> str:
        """The placeholder of its value in a help text: PATH, or {gcn,mlp}; empty for a switch."""
        if self.kind is bool:
            return ""
        word = f"{{{','.join(self.choices)}}}" if self.choices else _WORDS[self.kind]
        return f"{word} ..." if self.several else word


@cache
def flags_of(options: type) -> tuple[Flag, ...]:
    """Return the flags of an options class, including those of inner classes, in the order of the
    fields."""
    hints = get_type_hints(options, include_extras=True)
    flags: list[Flag] = []
    for field in fields(options):
        hint = hints[field.name]
        if is_dataclass(hint) and isinstance(hint, type):
            made = _default(field)
            flags += [replace(flag, default=getattr(made, flag.name)) for flag in flags_of(hint)]
        else:
            flags.append(_flag(options, field, hint))
    return tuple(flags)


def _flag(options: type, field: Field[Any], hint: Any) -> Flag:
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
        name=field.name,
        owner=options,
        marks=tuple(marks),
        kind=kind,
        choices=choices,
        several=several,
        optional=optional,
        plugins=next((mark.group for mark in marks if isinstance(mark, Plugins)), ""),
        positional=_POSITIONAL in marks,
        repeated=_REPEATED in marks,
        default=_default(field),
    )


def _marked_text(marks: Sequence[Any]) -> str:
    """Return the help text that the type of a flag carries."""
    for mark in marks:
        if isinstance(mark, TextOf):
            return field_notes(mark.kind)[mark.field].text
        if isinstance(mark, Text):
            return str(mark)
    return ""


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def field_texts(options: type) -> dict[str, str]:
    """Return the text under each field of a dataclass and of its base classes."""
    return {name: _one_line(note.text) for name, note in field_notes(options).items()}


@cache
def field_notes(options: type) -> dict[str, Note]:
    """Return the group and the text of each field of a dataclass and of its base classes."""
    notes: dict[str, Note] = {}
    for kind in reversed(options.__mro__):
        if not is_dataclass(kind):
            continue
        group = FlagGroup()
        for statement, below in pairwise([*_class(kind).body, ast.Pass()]):
            if heading := _HEADING.fullmatch(_string(statement)):
                group = FlagGroup(heading[1], _one_line(heading[2] or ""))
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name, text = statement.target.id, _string(below)
                text = "" if _HEADING.fullmatch(text) else text
                before = notes.get(name, Note())
                notes[name] = Note(group if group.name else before.group, text or before.text)
    return notes


def _string(statement: ast.stmt) -> str:
    """Return the text of a statement that is only a string; "" for any other one."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value).strip()
    return ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _class(kind: type) -> ast.ClassDef:
    for statement in _module(kind.__module__).body:
        if isinstance(statement, ast.ClassDef) and statement.name == kind.__name__:
            return statement
    raise TypeError(f"{kind.__name__} is not a class of its module's top level")


@cache
def _module(name: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[name]))
