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


@dataclass(frozen=True)
class Base:
    """Fields in two groups."""

    """Group size: how large
    everything is."""
    width: int = 1
    """How wide.

    In metres. None: as wide
    as it is high."""
    height: int = 1
    """How high."""

    """Group look."""
    colour: str = "red"
    """Which colour."""


@dataclass(frozen=True)
class Derived(Base):
    """Fields of its own, and another text and another default for one of the base."""

    height: int = 2
    """How high it is."""

    """Group size."""
    depth: int = 1
    """How deep."""


def test_headings_make_groups_and_two_paragraphs_a_summary() -> None:
    flags = {flag.name: flag for flag in flags_of(Derived)}
    assert {name: tuple(flag.group) for name, flag in flags.items()} == {
        "width": ("size", "how large everything is"),
        "height": ("size", "how large everything is"),  # of the base
        "colour": ("look", ""),
        "depth": ("size", ""),
    }
    assert {name: flag.summary for name, flag in flags.items() if flag.summary} == {
        "width": "How wide."
    }
    assert flags["width"].text == "How wide. In metres. None: as wide as it is high."
    assert (flags["height"].text, flags["height"].default) == ("How high it is.", 2)
