"""Bodies of requests: read within limits, parsed, and checked field by field."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, NoReturn

from starlette.requests import Request

from vrgcn.files.sizes import bytes_text
from vrgcn.serve.answers import ProblemError


@dataclass(frozen=True)
class Limits:
    """What one request may ask for.

    body: bytes; batch: rows of one change; seconds: to send a body, or to wait for the writer
    waiting: changes that may wait for the writer; open: requests that are answered at a time
    """

    body: int = 1 << 20
    batch: int = 1_000
    seconds: float = 10.0
    waiting: int = 64
    open: int = 256


async def read_object(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the JSON object of a request's body."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise ProblemError(415, "send JSON, with the header Content-Type: application/json")
    try:
        body = await asyncio.wait_for(_bytes(request, limits.body), limits.seconds)
    except TimeoutError:
        raise ProblemError(408, f"the body took more than {limits.seconds:g} seconds") from None
    try:
        found = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ProblemError(400, f"the body is not JSON: {reason}") from None
    if not isinstance(found, dict):
        raise ProblemError(422, 'the body must be a JSON object, such as {"nodes": […]}')
    return found


async def _bytes(request: Request, most: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise ProblemError(
                413, f"a body may have {bytes_text(most)}: send the rows in several requests"
            )
        parts.append(part)
    return b"".join(parts)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON; use null for a missing value")


def only(found: dict[str, Any], *names: str) -> None:
    """Raise if an object has fields besides these."""
    for name in found:
        if name not in names:
            raise ProblemError(
                422, f"there is no field {name!r} here; known: {', '.join(names)}", name
            )


def rows_of(found: dict[str, Any], field: str, limits: Limits) -> list[dict[str, Any]]:
    """Return the rows of a field: objects of columns, at least one."""
    rows = found.get(field)
    if not isinstance(rows, list) or not rows:
        raise ProblemError(422, "must be a list of objects, one for each row", field)
    if len(rows) > limits.batch:
        raise ProblemError(
            422, f"has {len(rows):,} rows; at most {limits.batch:,} are taken at once", field
        )
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ProblemError(422, "must be an object of columns", f"{field}[{place}]")
    return rows


def word(found: dict[str, Any], field: str) -> str | None:
    """Return a field that is a text; None if it is absent."""
    value = found.get(field)
    if value is not None and not isinstance(value, str):
        raise ProblemError(422, "must be a text", field)
    return value


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
