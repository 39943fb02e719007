"""Ways to damage a file: blindly, byte by byte, and with knowledge of what it is."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from typing import Any

NUMBERS = (0, 1, -1, 2, 7, 255, 256, 2**31 - 1, 2**31, 2**53, 10**15, 2**63 - 1, -(2**63))
TEXTS = ("", "\0", "../../x", "/dev/zero", "[/x]", "$x^$", "\x1b[2J", "é" * 50, "nan", "1e999")
VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], {"a": None}, math.nan, math.inf, 1e308, 0.5, 10**30),
    *NUMBERS,
    *TEXTS,
)


def bytes_changed(data: bytes, draw: random.Random) -> bytes:
    """One to a few changes anywhere."""
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        data = draw.choice(_CHANGES)(data, draw)
    return data


def _flip(data: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data) or 1)
    return (
        data[:place]
        + bytes([(data[place : place + 1] or b"\0")[0] ^ 1 << draw.randrange(8)])
        + data[place + 1 :]
    )


def _set(data: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data) or 1)
    return (
        data[:place]
        + bytes([draw.choice((0, 255, 10, 34, 44, 45, 57, 91, 123))])
        + data[place + 1 :]
    )


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _remove(data: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data) + 1)
    return data[:place] + data[place + draw.choice((1, 2, 8, 64)) :]


def _repeat(data: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data) + 1)
    piece = data[place : place + draw.choice((1, 8, 50))]
    return data[:place] + piece * draw.choice((2, 2, 100)) + data[place:]


def _number(data: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data) + 1)
    size = draw.choice((2, 4, 8))
    value = draw.choice(NUMBERS) % (1 << 8 * size)
    return data[:place] + value.to_bytes(size, "little") + data[place + size :]


def _digits(data: bytes, draw: random.Random) -> bytes:
    found = list(re.finditer(rb"\d+", data[:100_000]))
    if not found:
        return _flip(data, draw)
    match = draw.choice(found)
    return data[: match.start()] + str(draw.choice(NUMBERS)).encode() + data[match.end() :]


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _flip, _set, _cut, _remove, _repeat, _number, _digits,
)  # fmt: skip


def value_changed(value: Any, draw: random.Random) -> Any:
    """Return the contents of JSON or TOML with something replaced, removed or added."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice(list(value))
        if draw.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: value_changed(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.7:
        place = draw.randrange(len(value))
        if draw.random() < 0.2:
            return value[:place] + value[place + 1 :]
        return [*value[:place], value_changed(value[place], draw), *value[place + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool) and draw.random() < 0.3:
        return value + draw.choice((-1, 1))
    return draw.choice(VALUES)


def json_changed(data: bytes, draw: random.Random) -> bytes:
    return json.dumps(value_changed(json.loads(data), draw)).encode()


def array_changed(data: bytes, draw: random.Random) -> bytes:
    """An `.npy` file of 8- or 4-byte numbers with some of them changed, its header as it was."""
    start = 10 + int.from_bytes(data[8:10], "little")
    size = 4 if b"f4" in data[:start] else 8
    count = (len(data) - start) // size
    if not count:
        return bytes_changed(data, draw)
    for _ in range(draw.choice((1, 1, 3))):
        place = start + size * draw.randrange(count)
        old = int.from_bytes(data[place : place + size], "little", signed=True)
        new = draw.choice((*NUMBERS, old + 1, old - 1, -old)) % (1 << 8 * size)
        data = data[:place] + new.to_bytes(size, "little") + data[place + size :]
    return data
