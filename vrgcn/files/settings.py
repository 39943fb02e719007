"""Settings as fields of dataclasses: what a field says of itself, and checks of values.

Each component has its settings in a dataclass beside it. Dataclasses that stand for one value, such
as `TrainConfig`, inherit from several of these. A field says with `declared` what else is to be
known of it; nobody lists names of settings. No torch here: the command line reads settings before
it loads anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import Plugins, is_plugin, known_names

AUTO = "auto"
OFF = (None, False, AUTO, "none", "never")  # values by which a setting asks for nothing
T = TypeVar("T")
Resume = Literal["never", "run", "given", "always"]
_KEY = "declaration"


@dataclass(frozen=True)
class Declaration:
    """What a field says of its setting.

    resume: whether it may change when a run resumes: it decides when the run ends, what is measured
        beside it, what is kept and how fast it is. "run": of a single run, but not of a search,
        whose trials would not be comparable; "given": if it was given and is given; "always": of
        both
    lengthens: True if a larger value, or none, asks a finished run for more
    once: True if it does not apply to another training with the other settings of a run
    of_command: True if it is a word of the command, such as a folder, that runs do not keep
    of: kinds of targets that have it; () for all
    by_graph: True if its value is chosen for the graph unless it is given
    compared: True if a race of models of links chooses it, so that whoever gives it chooses
        the model, too
    whole: True if it needs the whole graph in one process
    """

    resume: Resume = "never"
    lengthens: bool = False
    once: bool = False
    of_command: bool = False
    of: tuple[str, ...] = ()
    by_graph: bool = False
    compared: bool = False
    whole: bool = False


def declared(default: T, **said: Any) -> T:
    """Return a field of a dataclass with what it says of itself: fields of `Declaration`."""
    entry: T = field(default=default, metadata={_KEY: Declaration(**said)})
    return entry


def declaration(entry: Field[Any]) -> Declaration:
    """Return what a field says of its setting."""
    declared_here: Declaration = entry.metadata.get(_KEY, Declaration())
    return declared_here


def declarations(kind: type) -> dict[str, Declaration]:
    """Return what each field of a dataclass says of its setting, including the fields of inner
    dataclasses, by name."""
    by_name: dict[str, Declaration] = {}
    hints = get_type_hints(kind)
    for each in fields(kind):
        hint = hints[each.name]
        if is_dataclass(hint) and isinstance(hint, type):
            by_name.update(declarations(hint))
        else:
            by_name[each.name] = declaration(each)
    return by_name


class Component:
    """Base of the settings of a component: their types are checked when they are made."""

    def __post_init__(self) -> None:
        check_types(self)


def check_types(settings: Any) -> None:
    """Refuse a setting that is not of its type: True is no whole number, a text no number."""
    for name, annotated in get_type_hints(type(settings), include_extras=True).items():
        hint, group = _without_marks(annotated)
        kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
        value = getattr(settings, name)
        if value is None and NoneType in kinds:
            continue
        if get_origin(kinds[0]) is Literal:
            _check_word(name, value, get_args(kinds[0]), group)
        elif kinds[0] in _WORDS and not _is(value, kinds[0]):
            raise InputError(f"{name} must be {_WORDS[kinds[0]]}, not {value!r}")


def _without_marks(annotated: Any) -> tuple[Any, str | None]:
    """Return the type of a setting, and the group of plug-ins that it may name."""
    if get_origin(annotated) is not Annotated:
        return annotated, None
    hint, *marks = get_args(annotated)
    return hint, next((mark.group for mark in marks if isinstance(mark, Plugins)), None)


def _check_word(name: str, value: Any, own: tuple[str, ...], group: str | None) -> None:
    """Refuse a word that is none of the setting's own, and no name of a plug-in."""
    if value in own or (group is not None and is_plugin(group, value)):
        return
    known = ", ".join(own) if group is None else known_names(group, own)
    raise InputError(f"{name} {value!r} is none of {known}")


_WORDS: dict[Any, str] = {bool: "True or False", int: "a whole number", float: "a number"}


def _is(value: Any, kind: type) -> bool:
    """True if a value is of a kind, NumPy's and PyTorch's own numbers among them."""
    if kind is bool:
        return any(value is known or value == known for known in (True, False))
    return is_whole(value) if kind is int else is_number(value)


def is_whole(value: Any) -> bool:
    """True for a whole number: 2.5 epochs would never be over, and True is not 1."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """True for a number; True is not 1."""
    return hasattr(value, "__float__") and not isinstance(value, bool)


def at_least(least: int, **values: float | None) -> None:
    """Raise if a named value is smaller than `least`; None stands for a default."""
    for name, value in _given(values):
        if not value >= least:
            raise InputError(f"{name} must be at least {least}, not {value}")


def positive(**values: float | None) -> None:
    """Raise if a named value is not positive and finite; None stands for a default."""
    for name, value in _given(values):
        if not 0 < value < float("inf"):
            raise InputError(f"{name} must be positive, not {value}")


def _given(values: dict[str, float | None]) -> Iterator[tuple[str, float]]:
    return ((name, value) for name, value in values.items() if value is not None)
