"""Answers of the service: JSON, and errors that name the field they are about."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

HIDDEN = "the service failed; its log says more"  # errors of ours, without paths and details


class ProblemError(Exception):
    """An error that the client can act on.

    status: of HTTP; field: of the request, such as edges[3].target; None for the whole of it
    retry_after: seconds after which the same request may succeed
    """

    def __init__(
        self, status: int, message: str, field: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        self.retry_after = retry_after


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON answer."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(body.encode(), status, headers, "application/json")


def refusal(error: ProblemError) -> Response:
    """Return the answer to a request that cannot be met."""
    told: dict[str, Any] = {"message": str(error)}
    if error.field is not None:
        told["field"] = error.field
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return answer({"error": told}, error.status, headers)


async def on_problem(_: Request, error: Exception) -> Response:
    """Answer a `ProblemError`."""
    assert isinstance(error, ProblemError)
    return refusal(error)


async def on_failure(_: Request, __: Exception) -> Response:
    """Answer an error of ours: the server logs it, and the client learns no detail."""
    return refusal(ProblemError(500, HIDDEN))
