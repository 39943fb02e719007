"""Damage to the files of a journal and its states: what a start makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vrgcn.serve.head import DamagedError
from vrgcn.serve.journal import Journal

BODIES = ('[{"change":"add_nodes"}]', '["ä",1.5]', "[]", '[{"change":"remove_nodes"}]', "[7]")
FOLDED = 2


def write_journal(folder: Path) -> None:
    """A journal of five changes, of which two are folded; some have keys."""
    folder.mkdir()
    held = Journal(folder, "m")
    for number, body in enumerate(BODIES, start=1):
        held.append(body, f"key {number}" if number % 2 else None)
        if number == FOLDED:
            held.fold(f"state-{number}")
    held.close()


def content(folder: Path) -> Any:
    """All that a journal says, its keys included."""
    held = Journal(folder, "m")
    try:
        keys = [held.seen(f"key {n}", body) for n, body in enumerate(BODIES, start=1)]
        return list(held), held.number, held.head.state, keys
    finally:
        held.close()


def flips(data: bytes, places: Iterable[int], first: int = 0) -> Iterator[tuple[str, bytes]]:
    """The bytes with one bit turned, at each of some places: another bit at each.

    first: bit of byte 0
    """
    for place in places:
        bit = (place + first) % 8
        damaged = bytearray(data)
        damaged[place] ^= 1 << bit
        yield f"bit {bit} of byte {place}", bytes(damaged)


def truncations(data: bytes, lengths: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    """The first bytes, of each of some lengths."""
    for length in lengths:
        yield f"{length} bytes", data[:length]


def outcome(folder: Path, damaged: Path) -> Any:
    """What a journal says after a file of it was damaged; None if it refuses and names the file and
    the way out."""
    try:
        return content(folder)
    except DamagedError as error:
        problem = str(error)
    assert str(damaged) in problem, problem
    assert "backup" in problem, problem
    assert "another state folder" in problem, problem
    return None
