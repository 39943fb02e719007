"""Bodies and queries of requests: read within limits, and parsed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request

from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import bytes_text
from vrgcn.serve.answers import ProblemError
from vrgcn.serve.schemas import Schema, check


@dataclass(frozen=True)
class Limits:
    """What requests may ask for.

    body: bytes; batch: rows of one change
    seconds: to send a request, to take an answer, to compute, or to wait for the writer
    waiting: changes that may wait for the writer; open: requests that are answered at a time
    connections: that are open at a time
    """

    body: int = 1 << 20
    batch: int = 1_000
    seconds: float = 10.0
    waiting: int = 64
    open: int = 256
    connections: int = 512


async def read_body(request: Request, schema: Schema, limits: Limits) -> dict[str, Any]:
    """Return the JSON object of a request's body, which matches a schema."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        text = "send JSON, with the header Content-Type: application/json"
        raise ProblemError(415, text, "Content-Type")
    body = await _bytes(request, limits.body)
    try:
        value = json.loads(body.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ProblemError(400, f"the body is not JSON: {reason}") from None
    check(value, schema)
    assert isinstance(value, dict)
    return value


async def _bytes(request: Request, most: int) -> bytes:
    """Read a body. The connection says how long that may take."""
    parts, size = [], int(request.headers.get("content-length", 0))
    if size <= most:
        size = 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > most:
                    break
                parts.append(part)
        except ClientDisconnect:
            raise ProblemError(400, "the body is not complete") from None
    if size > most:
        text = f"a body may have {bytes_text(most)}: send the rows in several requests"
        raise ProblemError(413, text)
    return b"".join(parts)


def _no_number(name: str) -> NoReturn:
    raise InputError(f"{name} is not a number of JSON; use null for a missing value")


def whole(request: Request, name: str, default: int, least: int, most: int) -> int:
    """Return a whole number from the query."""
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise ProblemError(422, f"must be a whole number from {least} to {most}", name)
    return value
