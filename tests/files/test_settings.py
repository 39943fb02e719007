"""Fields of settings: what they declare, and checks of values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from vrgcn.files.settings import (
    Component,
    Declaration,
    at_least,
    declarations,
    declared,
    positive,
)


@dataclass(frozen=True)
class Steps(Component):
    """Settings of a component."""

    steps: int = declared(3, resume="run", lengthens=True)
    rate: float = 0.5
    way: Literal["one", "other"] = "one"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, steps=self.steps)
        positive(rate=self.rate)


@dataclass(frozen=True)
class Whole(Steps):
    """Settings that have those of a component, and others inside."""

    folder: str | None = declared(None, of_command=True)
    inner: Steps = field(default_factory=Steps)


@dataclass(frozen=True)
class Outer:
    """Settings with others inside."""

    whole: Steps = field(default_factory=Steps)
    seed: int = declared(0, of=("labels",))


def test_a_declared_field_has_its_default() -> None:
    assert (Steps.steps, Steps().steps, Steps(steps=4).steps) == (3, 3, 4)


def test_declarations_are_those_of_base_classes_and_of_inner_settings_too() -> None:
    said = declarations(Whole)
    assert list(said) == ["steps", "rate", "way", "folder"]
    assert said["steps"] == Declaration(resume="run", lengthens=True)
    assert said["rate"] == Declaration()
    assert said["folder"].of_command
    assert declarations(Outer)["seed"].of == ("labels",)
    assert declarations(Outer)["steps"] == said["steps"]


def test_what_a_field_cannot_say_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'resumes'"):
        declared(0, resumes="run")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"steps": True}, "steps must be a whole number, not True"),
        ({"rate": 0.0}, "rate must be positive, not 0.0"),
        ({"rate": float("inf")}, "rate must be positive, not inf"),
        ({"rate": float("nan")}, "rate must be positive, not nan"),
        ({"way": "none"}, "way 'none' is none of one, other"),
    ],
)
def test_values_are_checked_where_they_are_inherited_too(given: dict, words: str) -> None:
    for kind in (Steps, Whole):
        with pytest.raises(ValueError, match=words):
            kind(**given)
