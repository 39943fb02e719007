"""Settings in messages: `batch_size=64` for Python, `--batch-size 64` on the command line.

A message names a setting with `setting`, never with a flag of its own spelling. The command line
runs inside `flags_in_messages`; everybody else reads Python's arguments. Texts are spelled when
they are made, as gettext translates them: they are joined, cut, wrapped and written to files, and
a mark that waits in a text to be spelled later would be lost or shown on the way.

So `setting` belongs inside functions: a constant of a module is made once, before it is known who
will read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_flags = ContextVar("_flags", default=False)
# The owner of columns, such as a kind of nodes, and the settings that name them as OWNER.COLUMN.
_owner: ContextVar[tuple[str, tuple[str, ...]]] = ContextVar("_owner", default=("", ()))
_NO_VALUE: Any = object()


class Placeholder(str):
    """A word that stands for a value of the user's own, such as COLUMN."""

    __slots__ = ()


COLUMN = Placeholder("COLUMN")
FILE = Placeholder("FILE")
SHARES = (0.6, 0.2, 0.2)  # an example of a ratio


def setting(
    name: str,
    value: Any = _NO_VALUE,
    *,
    typed: object = None,
    command: str | None = None,
    python: str | None = None,
) -> str:
    """A setting as the reader of a message would give it.

    setting("label")                   --label               label=
    setting("label", COLUMN)           --label COLUMN        label=COLUMN
    setting("memory", "disk")          --memory disk         memory="disk"
    setting("ratio", (0.6, 0.2, 0.2))  --ratio 0.6 0.2 0.2   ratio=(0.6, 0.2, 0.2)
    setting("preprocess", False)       --no-preprocess       preprocess=False

    typed: the value in a shell, where it needs quotes there or is another than in Python
    command: which the flag belongs to, where it may not be the one that runs, such as train
    python: what Python has in its place, where that is not an argument of this name
    """
    owner, owned = _owner.get()
    if name in owned and isinstance(value, str):
        value = type(value)(owner + value)
        typed = None if typed is None else f"{owner}{typed}"
    if not _flags.get():
        return python or f"{name}={'' if value is _NO_VALUE else _argument(value)}"
    flag = _flag(name.replace("_", "-"), value if typed is None else str(typed))
    return flag if command is None else f"vrgcn {command} {flag}"


@contextmanager
def flags_in_messages() -> Iterator[None]:
    """Inside, messages name settings as flags of the command line."""
    before = _flags.set(True)
    try:
        yield
    finally:
        _flags.reset(before)


@contextmanager
def columns_of(owner: str, settings: tuple[str, ...]) -> Iterator[None]:
    """Inside, messages name columns as OWNER.COLUMN in some settings; as they are if it is ""."""
    before = _owner.set((f"{owner}." if owner else "", settings))
    try:
        yield
    finally:
        _owner.reset(before)


def _argument(value: Any) -> str:
    """A value in Python's spelling."""
    if isinstance(value, Placeholder):
        return str(value)
    if isinstance(value, tuple | list):
        items = ", ".join(map(_argument, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    text = str(value)
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)


def _flag(name: str, value: Any) -> str:
    """A flag with the words of its value. One that begins with a minus would be read as a flag."""
    if value is _NO_VALUE or value is True:
        return f"--{name}"
    if value is False:
        return f"--no-{name}"
    words = " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return f"--{name}{'=' if words.startswith('-') else ' '}{words}"
