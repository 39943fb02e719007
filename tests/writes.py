"""The writes of a command, one by one: the moments between which a kill leaves another disk."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

_MOVES = ("replace", "rename", "link")  # to a second name
_OTHERS = ("open", "mkdir", "rmdir", "unlink", "truncate", "fsync")
_IDLE: dict[str, Callable[..., bool]] = {  # calls that change nothing
    "open": lambda path, _, flags, *mode: not flags & os.O_CREAT,
    "unlink": lambda path, *_: not os.path.lexists(path),
    "fsync": lambda path, _: path.is_dir(),
}
_CHANGES = ("COMMIT", "CREATE", "DROP", "ALTER")  # outside of a transaction, each is one of its own
_DRAWN = re.compile(r"[0-9a-f]{32}|(?<=\.scratch-)\w{8}")  # in hidden names


@contextmanager
def before_each_write(folder: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` before each change of a name inside the folder, each change of a database, and
    when a file is complete (fsync).

    tell: gets the call and the name, such as `replace best/result.json`, or the database's
        statement; its own writes are not told
    """
    telling = False

    def told(what: str) -> None:
        nonlocal telling
        if not telling:
            telling = True
            try:
                tell(_DRAWN.sub("*", what))
            finally:
                telling = False

    def watched(name: str) -> Callable[..., Any]:
        plain, idle = getattr(os, name), _IDLE.get(name, lambda *_: False)

        def call(*args: Any, **kwargs: Any) -> Any:
            path = _path(args[name in _MOVES], kwargs.get("dir_fd"))
            if folder in path.parents and not idle(path, *args):
                told(f"{name} {path.relative_to(folder)}")
            return plain(*args, **kwargs)

        return call

    def statement(text: str) -> None:
        if text.split(maxsplit=1)[0] in _CHANGES:
            told(" ".join(text.split()))

    def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = connected(*args, **kwargs)
        if folder in Path(args[0]).parents:
            connection.set_trace_callback(statement)
        return connection

    connected = sqlite3.connect
    with ExitStack() as stack:
        for name in (*_MOVES, *_OTHERS):
            stack.enter_context(patch.object(os, name, watched(name)))
        stack.enter_context(patch.object(sqlite3, "connect", connect))
        yield


def _path(name: str | Path | int, above: int | None) -> Path:
    """name: may be an open file; above: an open folder, as `shutil.rmtree` has"""
    if isinstance(name, int):
        return Path(os.readlink(f"/proc/self/fd/{name}"))
    return Path.cwd() / name if above is None else Path(os.readlink(f"/proc/self/fd/{above}"), name)
