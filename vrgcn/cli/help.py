"""Help texts of commands, in 80 columns.

The help of a command with few flags is complete. With many flags it has layers: `--help` has a
line for each flag that people use and the names of the others, `--help GROUP` explains one group
of flags, and `--help all` explains every flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING
from difflib import get_close_matches
from pathlib import Path
from textwrap import fill, wrap
from typing import Any

from vrgcn.cli.flags import Flag, flags_of
from vrgcn.cli.parsing import UsageError

WIDTH = 80
ALL = "all"
_INDENT = 6
_FEW = 25  # flags whose explanations are read at once


def command_help(kind: type, command: str, summary: str, layer: str = "") -> str:
    """Return the help of a command.

    kind: its options class; summary: what it does, in one sentence
    layer: a group of flags, or ALL; "": the first layer
    """
    flags = _sorted_flags(kind)
    groups = _groups(flags)
    known = layers(kind)
    if layer and layer not in (*known, ALL):
        raise UsageError(f"--help {layer}: {_unknown(layer, command, flags, known)}")
    words = [_usage(flag) for flag in flags if flag.positional]
    usage = f"usage: vrgcn {command} {' '.join([*words, '[OPTIONS]'])}"
    if layer not in ("", ALL):
        return "\n".join([usage, *_explained(groups[layer])])
    if known and not layer:
        lines = [*_used(groups), *_others(groups, command)]
    else:
        lines = [line for flag in flags if flag.positional for line in _entry(flag)]
        lines = ["", *lines] if lines else []
        for group in groups.values():
            lines += _explained([flag for flag in group if not flag.positional])
    return "\n".join([usage, "", fill(summary, WIDTH), *lines])


def layers(kind: type) -> tuple[str, ...]:
    """Return what may follow --help: ALL and the groups of flags; nothing if there are few flags.

    kind: the options class of a command
    """
    flags = _sorted_flags(kind)
    return (ALL, *_groups(flags)) if len(flags) > _FEW else ()


def _sorted_flags(kind: type) -> list[Flag]:
    """Return the flags of an options class, the positional ones first."""
    return sorted(flags_of(kind), key=lambda flag: not flag.positional)


def _groups(flags: Sequence[Flag]) -> dict[str, list[Flag]]:
    """Return the flags by group: first those without a group, last the groups that few need."""
    ordered = sorted(flags, key=lambda flag: (flag.group.name != "", not flag.summary))
    groups: dict[str, list[Flag]] = {flag.group.name: [] for flag in ordered}
    for flag in flags:
        groups[flag.group.name].append(flag)
    return groups


def _heading(flags: Sequence[Flag]) -> str:
    """Return the line above the flags of a group."""
    name = flags[0].group.name
    title = next((flag.group.title for flag in flags if flag.group.title), "")
    return f"{name.capitalize()}: {title}" if title else f"{name.capitalize() or 'Options'}:"


def _explained(flags: Sequence[Flag]) -> list[str]:
    """Return the flags of a group, if there are any, with their explanations."""
    lines = [line for flag in flags for line in _entry(flag)]
    return ["", _heading(flags), *lines] if lines else []


def _used(groups: dict[str, list[Flag]]) -> list[str]:
    """Return a line for each flag that people use, by group."""
    width = max(len(_short_head(f)) for group in groups.values() for f in group if f.summary)
    lines = []
    for group in groups.values():
        used = [flag for flag in group if flag.summary]
        if used:
            lines += ["", _heading(group)]
            lines += [f"  {_short_head(flag):<{width}}  {_short_text(flag)}" for flag in used]
    return lines


def _others(groups: dict[str, list[Flag]], command: str) -> list[str]:
    """Return the names of the other flags, by group."""
    width = max(map(len, groups))
    explained = f"vrgcn {command} --help GROUP or --help {ALL}"
    lines = ["", f"Other options by group, explained by {explained}:"]
    for name, group in groups.items():
        others = [flag.flag.removeprefix("--") for flag in group if not flag.summary]
        if others:
            lines += wrap(
                f"  {name:<{width}}  {', '.join(others)}",
                WIDTH,
                subsequent_indent=" " * (width + 4),
                break_on_hyphens=False,
            )
    return lines


def _short_head(flag: Flag) -> str:
    return _head(flag, f"{'WORD' if flag.choices else flag.value}")


def _short_text(flag: Flag) -> str:
    """Return the summary of the flag and its default, if that is one value."""
    text = flag.summary.rstrip(".")
    plain = flag.default is not MISSING and flag.kind is not bool and not flag.several
    shown = _shown(flag.default) if plain else ""
    return f"{text} (default: {shown})" if shown else text


def _unknown(layer: str, command: str, flags: Sequence[Flag], known: Sequence[str]) -> str:
    """Return what is wrong with a layer that a command does not have."""
    if not known:
        return f"the options of vrgcn {command} have no groups; leave {layer!r} out to see them all"
    name = layer.replace("-", "_")
    for flag in flags:
        if flag.name == name:
            return f"{flag.flag} is in the group {flag.group.name}: --help {flag.group.name}"
    close = get_close_matches(layer, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else "."
    return f"there is no such group of options{hint} The groups are {', '.join(known)}"


def overview(commands: dict[str, str]) -> str:
    """Return a list of all commands, one line each. commands: the summary of each"""
    width = max(map(len, commands))
    lines: list[str] = []
    for name, text in commands.items():
        lines += wrap(
            f"{name:<{width}}  {text}",
            WIDTH,
            initial_indent="  ",
            subsequent_indent=" " * (width + 4),
        )
    return "\n".join(
        [
            "vrgcn: graph neural networks trained at the speed of an MLP",
            "",
            "usage: vrgcn COMMAND [OPTIONS]",
            "",
            *lines,
            "",
            "vrgcn COMMAND --help lists a command's options; vrgcn --version the version.",
        ]
    )


def _usage(flag: Flag) -> str:
    word = f"{flag.flag} ..." if flag.several else flag.flag
    return f"[{word}]" if flag.default is not MISSING else word


def _entry(flag: Flag) -> list[str]:
    """Return the flag on one line and its explanation below."""
    head = _head(flag, flag.value)
    indent = " " * _INDENT
    first = [f"  {head}"] if len(head) <= WIDTH - 2 else [f"  {flag.flag}", *_choices(flag)]
    return [
        *first,
        *wrap(
            _text(flag),
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        ),
    ]


def _head(flag: Flag, value: str) -> str:
    """Return the flag as it is typed, with the placeholder of its value."""
    if flag.positional:
        return flag.flag
    if flag.kind is bool:
        off = f", --no-{flag.flag[2:]}" if flag.default is not False else ""
        return flag.flag + off
    return f"{flag.flag} {value}"


def _choices(flag: Flag) -> list[str]:
    """Put many choices on lines of their own."""
    return wrap(", ".join(flag.choices), WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)


def _text(flag: Flag) -> str:
    """Return the explanation of the flag and its default."""
    # A field that was not given is None in Python; on a command line it is absent.
    text = flag.text.replace("None:", "Not given:")
    if flag.kind is bool:
        return f"{text} (default: yes)" if flag.default else text
    if flag.default is MISSING:
        return text if flag.positional else f"{text} (needed)"
    shown = _shown(flag.default)
    return f"{text} (default: {shown})" if shown else text


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return " ".join(map(_shown, default))
    if isinstance(default, float):
        return f"{default:g}"
    return "" if default is None else str(default) if isinstance(default, Path) else f"{default}"
