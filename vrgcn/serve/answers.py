"""Answers of the service: JSON, and errors that name the field they are about."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

HIDDEN = "the service failed; its log says more"  # errors of ours, without paths and details
_ECHOED = 600  # characters of an error at most: it may show what the client sent
_FIELD = 120


class ProblemError(Exception):
    """An error that the client can act on.

    status: of HTTP
    path: of the field of the request, such as "edges", 3, "target"; empty for the whole request
    retry_after: seconds after which the same request may succeed
    """

    def __init__(
        self, status: int, message: str, *path: str | int, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.path = path
        self.retry_after = retry_after

    @property
    def field(self) -> str:
        """The field as the answer names it, such as edges[3].target; "" for the whole request."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return "".join(parts).removeprefix(".")


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON answer."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(body.encode(), status, headers, "application/json")


def refusal(error: ProblemError) -> Response:
    """Return the answer to a request that cannot be met."""
    shown = {"message": shortened(str(error), _ECHOED)}
    if error.path:
        shown["field"] = shortened(error.field, _FIELD)
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return answer({"error": shown}, error.status, headers)


def shortened(text: str, most: int) -> str:
    """Return a text without its middle if it is long, and without characters that UTF-8 lacks."""
    if len(text) > most:
        text = f"{text[: most // 2]} … {text[-most // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode()


async def on_problem(_: Request, error: Exception) -> Response:
    """Answer a `ProblemError`."""
    assert isinstance(error, ProblemError)
    return refusal(error)


async def on_failure(_: Request, __: Exception) -> Response:
    """Answer an error of ours: the server logs it, and the client learns no detail."""
    return refusal(ProblemError(500, HIDDEN))
