"""Parses the words of a command line into an options object, and explains words that do not fit.

No torch and no library is imported, so errors of the command line appear at once.

argparse was tried underneath and saves nothing: the loop over the words (55 lines) comes back. For
a flag with several values it takes too many words (`--sizes 3 4 GRAPH`) or too few (`--names=-1
?`), so the same loop would have to count the words first. Its errors are sentences that would have
to be matched and rephrased (`expected one argument`, `ignored explicit argument`). A missing
positional becomes None without an error. Types, choices, suggestions and help would stay ours in
any case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import MISSING
from difflib import get_close_matches
from typing import Any, NoReturn

from vrgcn.cli.flags import Flag, flags_of
from vrgcn.data.databases.url import place
from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import plugin_names

_FIRST = re.compile(r"(\w+):? ")
_FIELD = re.compile(r"(?<![\w'\"./=-])[a-z]+(_[a-z]+)+(?![\w'\"/=-])")  # not in quotes or paths


# Flags by which a file, a run, or what is predicted gives values to others.
_OF_RUNS = {"config", "resume", "target", "predict"}


class UsageError(Exception):
    """Raised for words of a command line that do not fit; the message is for the user who typed
    them."""


def parse(kind: Any, words: list[str]) -> Any:
    """Return the options that the words stand for."""
    return build_options(kind, read_words(kind, words))


def parse_with_files(options: type, words: list[str]) -> Any:
    """Return the options that the words and the files they name stand for."""
    given = read_words(options, words)
    if not given.keys() & _OF_RUNS:
        return build_options(options, given)
    from vrgcn.runs.run_settings import file_values
    from vrgcn.targets.spec import with_usual

    values = file_values(options, given) | given
    return build_options(options, with_usual(values) if given.get("resume") is None else values)


def build_options(kind: Any, values: dict[str, Any]) -> Any:
    """Return the options built from values by name."""
    from vrgcn.runs.config_file import build

    flags = flags_of(kind)
    _check_required(flags, values)
    try:
        return build(kind, values)
    except InputError as error:
        raise UsageError(_with_flags(str(error), flags)) from error


def read_words(kind: Any, words: list[str]) -> dict[str, Any]:
    """Return the values that words give to options, by name. If a flag is given twice, the last
    value counts, unless the flag may be repeated."""
    flags = flags_of(kind)
    values: dict[str, Any] = {}
    positionals = [flag for flag in flags if flag.positional]
    place = 0
    while place < len(words):
        word = words[place]
        if _is_flag(word):
            name, equals, value = word.partition("=")
            flag, switch = _find(name, flags)
            if flag.kind is bool:
                if equals:
                    raise UsageError(f"{name} takes no value: {flag.flag} or --no-{flag.flag[2:]}")
                values[flag.name] = switch
                place += 1
                continue
            waiting = any(p.name not in values for p in positionals)
            given = [value] if equals else []
            if flag.several or not equals:
                given += _values(flag, words[place + 1 :], waiting)
            converted = _convert(flag, given)
            before = values.get(flag.name, ()) if flag.repeated else ()
            values[flag.name] = (*before, *converted) if flag.repeated else converted
            place += 1 + len(given) - bool(equals)
        else:
            free = [p for p in positionals if p.name not in values]
            if not free:
                _refuse_word(word, words, place, flags)
            count = _count_plain(words[place:]) if free[0].several else 1
            values[free[0].name] = _convert(free[0], words[place : place + count])
            place += count
    return values


def _is_flag(word: str) -> bool:
    return word.startswith("--") and len(word) > 2


def _count_plain(words: list[str]) -> int:
    """Count the words before the next flag."""
    return next((n for n, word in enumerate(words) if _is_flag(word)), len(words))


def _values(flag: Flag, rest: list[str], waiting: bool) -> list[str]:
    """Return the words after a flag that are its values.

    waiting: True if a positional argument is still expected; a list of numbers ends before it
    """
    words = rest[: _count_plain(rest)]
    if not flag.several:
        if not words:
            raise UsageError(f"{flag.flag} needs a value: {flag.flag} {flag.value}")
        return words[:1]
    if waiting and flag.kind in (int, float):
        return words[: next((n for n, w in enumerate(words) if not _number(w)), len(words))]
    return words


def _number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _convert(flag: Flag, words: list[str]) -> Any:
    """Convert the values of a flag to their type."""
    if flag.optional and words == ["None"]:
        return None
    values = [_value(flag, word) for word in words]
    return tuple(values) if flag.several else values[0]


def _value(flag: Flag, word: str) -> Any:
    if flag.choices and word not in flag.choices:
        others = plugin_names(flag.plugins) if flag.plugins else []
        known = [*flag.choices, *others]
        if word not in known:
            hint = _did_you_mean(get_close_matches(word, known, n=1))
            raise UsageError(f"{flag.flag}: {word!r} is none of {', '.join(known)}{hint}")
    try:
        value = flag.kind(word)
    except ValueError as error:
        if flag.kind is place:
            raise UsageError(f"{flag.flag}: {error}") from None
        wanted = "a whole number" if flag.kind is int else "a number"
        raise UsageError(f"{flag.flag}: {word!r} is not {wanted}") from None
    if flag.kind is float and math.isnan(value):
        raise UsageError(f"{flag.flag}: {word!r} is not a number")
    return value


def _find(word: str, flags: tuple[Flag, ...]) -> tuple[Flag, bool]:
    """Return the flag that a word names, and for a switch whether it is turned on."""
    name = word.removeprefix("--").replace("-", "_")
    by_name = {flag.name.rstrip("_"): flag for flag in flags if not flag.positional}
    if name in by_name:
        return by_name[name], True
    off = by_name.get(name.removeprefix("no_"))
    if off is not None and off.kind is bool:
        return off, False
    hint = _did_you_mean([by_name[near].flag for near in similar(name, list(by_name))])
    raise UsageError(f"there is no option {word}{hint}")


_USUAL = {"lr": "learning_rate", "wd": "weight_decay"}  # names that everybody uses


def similar(name: str, known: list[str]) -> list[str]:
    """Return at most three known names that are similar to an unknown one.

    Names are similar where the field calls one by the other (lr: learning_rate), by their initials
    (bs: batch_size), by whole words that they share (num_layers: layers), or by their letters.
    """
    if _USUAL.get(name) in known:
        return [_USUAL[name]]
    parts = set(name.split("_"))
    initials = [k for k in known if "_" in k and "".join(w[0] for w in k.split("_")) == name]
    shared = [k for k in known if set(k.split("_")) <= parts or parts <= set(k.split("_"))]
    return (initials or shared or get_close_matches(name, known, n=3, cutoff=0.6))[:3]


def _did_you_mean(names: list[str]) -> str:
    return f"; did you mean {' or '.join(names)}?" if names else ""


def _refuse_word(word: str, words: list[str], place: int, flags: tuple[Flag, ...]) -> NoReturn:
    """Raise for a word that belongs to no flag."""
    if word.startswith("-") and len(word) > 1 and not _number(word):
        name = word.lstrip("-").replace("-", "_")
        known = [flag.name for flag in flags if not flag.positional]
        near = [name] if name in known else similar(name, known)
        meant = [f"--{k.replace('_', '-')}" for k in near]
        raise UsageError(f"there is no option {word}{_did_you_mean(meant)}")
    before = words[place - 1] if place else ""
    after = f" after {before}" if before else ""
    plain = [flag.flag for flag in flags if flag.positional]
    hint = f"; only {plain[0]} has no flag before it" if plain else ""
    if not plain:
        needed = [f"{flag.flag} {flag.value}" for flag in flags if flag.default is MISSING]
        hint = f"; everything here has a flag, such as {' '.join(needed)}" if needed else ""
    raise UsageError(f"{word!r}{after} belongs to no option{hint}")


def _check_required(flags: tuple[Flag, ...], values: dict[str, Any]) -> None:
    missing = [f for f in flags if f.default is MISSING and f.name not in values]
    # No word at all is an empty list; the command decides what that means.
    missing = [f for f in missing if not (f.positional and f.several)]
    for flag in flags:
        if flag.positional and flag.several and flag.default is MISSING:
            values.setdefault(flag.name, ())
    if missing:
        raise UsageError(missing_text((f.flag, f.value, f.positional, f.text) for f in missing))


def missing_text(flags: Iterable[tuple[str, str, bool, str]]) -> str:
    """Return the error for flags that are missing.

    flags: the flag, its value, whether it is positional, and its help
    """
    told = []
    for flag, value, positional, text in flags:
        first = re.split(r"[:;.(]", text)[0].strip()
        told.append(f"{flag}{'' if positional else f' {value}'} ({first[:1].lower()}{first[1:]})")
    return f"missing: {', '.join(told)}"


def _with_flags(message: str, flags: tuple[Flag, ...]) -> str:
    """Return an error of an options class with flags in place of fields: of the one that it begins
    with, and of those with an underscore in their names, which are no words of a sentence."""
    known = {flag.name: flag.flag for flag in flags}
    first = _FIRST.match(message)
    if first is not None and first[1] in known:
        message = known[first[1]] + message[first.end(1) :]
    return _FIELD.sub(lambda match: known.get(match[0], match[0]), message)
