"""A machine's memory as a test wants it: what the system tells of it, and what it gives."""

from __future__ import annotations

import errno
import mmap
import os
from types import SimpleNamespace

import pytest

from vrgcn.files import memory
from vrgcn.graph import mapped


def set_memory(
    monkeypatch: pytest.MonkeyPatch,
    free: int,
    taken: int = 0,
    addresses: int | None = None,
    data: int | None = None,
) -> None:
    """Let `vrgcn.files.memory` read of a system where so many bytes are free.

    taken: that the process has, of every kind; addresses, data: its limits of them, if any
    """
    files = {
        "/proc/meminfo": [f"MemAvailable: {free >> 10} kB"],
        "/proc/self/status": [f"{kind}: {taken >> 10} kB" for kind in ("VmSize", "VmData")],
    }

    def lines(file: str) -> list[str]:
        if file not in files:
            raise FileNotFoundError(file)
        return files[file]

    limits = {"AS": addresses, "DATA": data}
    known = SimpleNamespace(
        RLIM_INFINITY=-1,
        RLIMIT_AS="AS",
        RLIMIT_DATA="DATA",
        getrlimit=lambda kind: (-1 if limits[kind] is None else limits[kind], -1),
    )
    monkeypatch.setattr(memory, "_lines", lines)
    monkeypatch.setattr(memory, "resource", known)


def set_room_of_tables(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Let the system refuse memory for tables (`vrgcn.graph.mapped.zeros`), however small, once
    they have had so many bytes."""
    left = [room]

    def refusing(descriptor: int, size: int, **options: int) -> mmap.mmap:
        left[0] -= size
        if left[0] < 0:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        return mmap.mmap(descriptor, size, **options)

    names = {name: getattr(mmap, name) for name in dir(mmap) if name.startswith(("MAP_", "MADV_"))}
    monkeypatch.setattr(mapped, "mmap", SimpleNamespace(**names, mmap=refusing))
    monkeypatch.setattr(mapped, "_HUGE", 1)
