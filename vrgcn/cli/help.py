"""Help texts of commands: their flags, values and explanations, in 80 columns."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from textwrap import fill, wrap
from typing import Any

from vrgcn.cli.flags import Flag, flags_of

WIDTH = 80
_INDENT = 6


def command_help(kind: type, command: str, summary: str) -> str:
    """Return the complete help of a command.

    kind: its options class; summary: what it does, in one sentence
    """
    flags = flags_of(kind)
    positionals = [flag for flag in flags if flag.positional]
    lines = [
        f"usage: vrgcn {command} {' '.join([*map(_usage, positionals), '[OPTIONS]'])}",
        "",
        fill(summary, WIDTH),
    ]
    if positionals:
        lines += ["", *(line for flag in positionals for line in _entry(flag))]
    groups: dict[str, list[Flag]] = {}
    for flag in flags:
        if not flag.positional:
            groups.setdefault(flag.group, []).append(flag)
    for group, members in groups.items():
        lines += ["", f"{group.rstrip('.') or 'Options'}:"]
        lines += [line for flag in members for line in _entry(flag)]
    return "\n".join(lines)


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
    head = _head(flag)
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


def _head(flag: Flag) -> str:
    if flag.positional:
        return flag.flag
    if flag.kind is bool:
        off = f", --no-{flag.flag[2:]}" if flag.default is not False else ""
        return flag.flag + off
    return f"{flag.flag} {flag.value}"


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
