"""JSON and TOML that may hold anything: every refusal is a `ValueError` with the file's name."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from vrgcn.files.mistakes import InputError

MOST_TOML = 1 << 16  # bytes; options take a few thousand
# tomllib takes time quadratic in the parts of a dotted key, which is on one line. Options have
# keys without dots; paths, names and numbers have some.
_MOST_DOTS = 256


def read_json(file: Path) -> Any:
    """The value of a JSON file."""
    return parse_json(file.read_bytes(), str(file))


def parse_json(text: str | bytes, where: str) -> Any:
    """The value of a JSON text; `where` names the text in errors."""
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError(f"{where} is not valid JSON: it is nested too deeply") from None
    except ValueError as error:  # bad JSON or UTF-8, or a number of thousands of digits
        raise InputError(f"{where} is not valid JSON: {error}") from None


def read_toml(file: Path) -> dict[str, Any]:
    """The options of a TOML file; a file too large or too deep to hold options is refused unread,
    since `tomllib` would take minutes or more for it."""
    with open(file, "rb") as opened:
        data = opened.read(MOST_TOML + 1)
    if len(data) > MOST_TOML:
        raise InputError(
            f"{file}: not a TOML file of options: it has more than {MOST_TOML:,} bytes; name the "
            "config.toml of a run, or a file like it"
        )
    try:
        text = data.decode()
        _check_dots(text)
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{file}: not a TOML file: it is nested too deeply") from None
    except ValueError as error:  # bad TOML or UTF-8, or a number of thousands of digits
        raise InputError(f"{file}: not a TOML file: {error}") from None


def _check_dots(text: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        dots = line.count(".")
        if dots > _MOST_DOTS:
            raise InputError(f"line {number} has {dots:,} dots; keys of options have none")
