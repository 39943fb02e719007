"""Kinds of the entries of a file's JSON: tables of kinds, and one check for them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from vrgcn.files.mistakes import InputError


class Kind(NamedTuple):
    """good: whether a value will do; words: what is wanted, after "must be" """

    good: Callable[[Any], bool]
    words: str


def check_kinds(where: str, entries: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    """Refuse entries that are missing or of another kind. where: the file's name, for errors"""
    missing = [name for name in kinds if name not in entries]
    if missing:
        raise InputError(f"{where} lacks {', '.join(missing)}")
    for name, kind in kinds.items():
        if not kind.good(entries[name]):
            raise InputError(f"{where}: {name} must be {kind.words}, not {shown(entries[name])}")


def one_of(*names: str) -> Kind:
    return Kind(lambda v: isinstance(v, str) and v in names, f"one of {', '.join(names)}")


def or_null(kind: Kind) -> Kind:
    return Kind(lambda value: value is None or kind.good(value), f"{kind.words}, or null")


def is_count(value: Any) -> bool:
    """A whole number that can be a size; true is none."""
    return type(value) is int and 0 <= value < 1 << 60


def is_text(value: Any) -> bool:
    """Whether a value is a text that files can hold: none with half of a surrogate pair."""
    return isinstance(value, str) and value.encode(errors="ignore").decode() == value


def shown(value: Any) -> str:
    """A value in an error, however long it is."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


COUNT = Kind(is_count, "a count")
POSITIVE = Kind(lambda value: is_count(value) and value > 0, "a count of at least 1")
FLAG = Kind(lambda value: isinstance(value, bool), "true or false")
TEXT = Kind(is_text, "a text")
OBJECT = Kind(lambda value: isinstance(value, dict), "an object")


def list_of(kind: Kind) -> Kind:
    return Kind(
        lambda value: isinstance(value, list) and all(map(kind.good, value)),
        f"a list, each {kind.words}",
    )


def objects_of(optional: Mapping[str, Kind] | None = None, /, **kinds: Kind) -> Kind:
    """A list of objects that have these entries, may have optional ones, and have no other."""
    known = kinds | dict(optional or {})

    def good(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and kinds.keys() <= value.keys() <= known.keys()
            and all(known[name].good(entry) for name, entry in value.items())
        )

    return list_of(Kind(good, f"an object of {', '.join(kinds)}"))


SIZES = Kind(
    lambda value: isinstance(value, dict) and all(map(is_count, value.values())),
    "an object of whole numbers",
)
TRIPLES = Kind(
    lambda v: isinstance(v, list) and all(isinstance(r, list) and len(r) == 3 for r in v),
    "a list of source kind, relation and target kind",
)
NAMES = or_null(Kind(list_of(TEXT).good, "a list of names"))
