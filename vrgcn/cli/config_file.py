"""Settings that a command reads from a file; flags on the command line override them."""

from __future__ import annotations

from typing import Any

from vrgcn.cli.parsing import build_options, read_words
from vrgcn.runs.given import file_values
from vrgcn.targets.usual import with_usual


def parse_with_files(options: type, words: list[str]) -> Any:
    """Return the options that the words and the files they name stand for."""
    given = read_words(options, words)
    values = file_values(options, given) | given
    return build_options(options, with_usual(values) if given.get("resume") is None else values)
