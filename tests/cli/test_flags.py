"""The text of a flag: under its field, or carried by its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from vrgcn.cli import COMMANDS
from vrgcn.cli.flags import Positional, Text, TextOf, flags_of
from vrgcn.cli.shared_flags import Threads
from vrgcn.training.config import TrainConfig


@dataclass(frozen=True)
class Source:
    """Whose texts others take."""

    size: int = 1
    """How large."""


Size = Annotated[int, TextOf(Source, "size")]
Place = Annotated[Positional[str], Text("Where.")]


@dataclass(frozen=True)
class Taking:
    """Flags with and without a text of their own."""

    place: Place
    size: Size = 2
    width: Size = 3
    """How wide."""
    threads: Threads = None


def test_a_type_carries_the_text_and_a_text_under_the_field_wins() -> None:
    flags = {flag.name: flag for flag in flags_of(Taking)}
    assert {name: flag.text for name, flag in flags.items()} == {
        "place": "Where.",
        "size": "How large.",
        "width": "How wide.",
        "threads": "CPU threads. None: as PyTorch chooses.",
    }
    assert (flags["place"].positional, flags["size"].positional) == (True, False)
    assert (flags["size"].kind, flags["size"].default) == (int, 2)


def test_a_shared_flag_says_the_same_in_every_command() -> None:
    texts = {
        flag.text
        for command in COMMANDS.values()
        for flag in flags_of(command.options)
        if flag.name == "threads" and flag.optional
    }
    own = {flag.name: flag.text for flag in flags_of(TrainConfig)}
    assert texts == {own["threads"]}
