"""A folder that is replaced at a chosen moment while it is read: before the n-th file is opened."""

from __future__ import annotations

import builtins
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from vrgcn.files import tensors

_T = TypeVar("_T")


def renamed(folder: Path, other: Path) -> None:
    """As `mv folder old; mv other folder` does."""
    folder.rename(folder.with_name("replaced"))
    other.rename(folder)


def removed(folder: Path, other: Path) -> None:
    """The same, and what was there is deleted."""
    renamed(folder, other)
    shutil.rmtree(folder.with_name("replaced"))


def there_and_back(folder: Path, other: Path) -> None:
    """One or the other by turns."""
    renamed(folder, other)
    folder.with_name("replaced").rename(other)


def linked(folder: Path, other: Path) -> None:
    """A link that led to the folder leads to the other, at once."""
    new = folder.with_name("new-link")
    new.symlink_to(other)
    new.replace(folder)


REPLACE: dict[str, Callable[[Path, Path], None]] = {
    "renamed": renamed,
    "removed": removed,
    "linked": linked,
}


def replaced_at_every_moment(
    place: Path, make: Callable[[Path], None], replace: str, read: Callable[[Path], _T]
) -> Iterator[_T]:
    """Yield the results of `read` on a folder that is replaced before the first file is opened,
    before the second, and so on; the last is of an unchanged folder.

    make: writes the folder `old` and the folder `new` of the same kind into an empty folder
    """
    (place / "made").mkdir(parents=True)
    make(place / "made")
    for moment in count(1):
        home = place / str(moment)
        shutil.copytree(place / "made", home)
        folder = home / "folder"
        if replace == "linked":
            folder.symlink_to(home / "old")
        else:
            (home / "old").rename(folder)
        act = REPLACE[replace]
        with before_opening(moment, lambda act=act, f=folder, h=home: act(f, h / "new")) as done:
            yield read(folder)
        shutil.rmtree(home)
        if not done:
            assert moment > 3  # there were moments
            return


@contextmanager
def before_opening(
    moment: int, act: Callable[[], None], *, every: bool = False
) -> Iterator[list[bool]]:
    """Act before the n-th file that is opened in the block, whoever opens it.

    every: before that file and each that comes after it
    The list is no longer empty once it was done.
    """
    done: list[bool] = []
    opened = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal opened
            if not busy:
                opened += 1
                if opened == moment or (every and opened > moment):
                    busy.append(True)
                    act()
                    busy.clear()
                    done.append(True)
            return function(*given, **named)

        return call

    busy: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (builtins, "open"),
            (io, "open"),
            (os, "open"),
            (pa, "memory_map"),
            (tensors, "safe_open"),
        ):
            patch.setattr(module, name, counted(getattr(module, name)))
        yield done
