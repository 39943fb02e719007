"""What stands before every request: a token, a limit of open requests, the clock."""

from __future__ import annotations

import hmac
import re
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vrgcn.serve.answers import ProblemError, refusal
from vrgcn.serve.metrics import Metrics

FREE = (
    "/healthz",
    "/",
    "/page.js",
    "/page.css",
    "/favicon.ico",
)  # without a token: they tell nothing of the graph
METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE")  # that metrics name; others are "other"
# A name or an address, in brackets if it has colons, and a port.
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]+))(?::[0-9]{0,5})?")
_SAFE = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'"),
)


class Guard:
    """Passes requests on to an app.

    token: that requests must have; None: none
    hosts: names that the service may be called by, against pages that point a name of their own to
        this machine; None: any
    most: requests that are answered at a time
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        token: str | None,
        hosts: tuple[str, ...] | None,
        most: int,
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.token = token
        self.hosts = hosts
        self.most = most
        self.open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500

        async def received() -> Message:
            self.open -= 1  # while the client sends, the connection counts and not the request
            try:
                return await receive()
            finally:
                self.open += 1

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_SAFE]
            await send(message)

        problem = self._problem(scope)
        self.open += 1
        try:
            app = self.app if problem is None else refusal(problem)
            await app(scope, received, sent)
        finally:
            self.open -= 1
            method = scope["method"] if scope["method"] in METHODS else "other"
            labels = {"method": method, "route": scope.get("route_name", "other")}
            self.metrics.count("vrgcn_requests_total", **labels, status=str(status))
            self.metrics.observe(time.perf_counter() - start, **labels)

    def _problem(self, scope: Scope) -> ProblemError | None:
        headers = Headers(scope=scope)
        if scope["path"] == "/healthz":
            return None
        if self.open >= self.most:
            return ProblemError(503, "too many requests are open", retry_after=1)
        if self.hosts is not None and _host(headers.get("host", "")) not in self.hosts:
            return ProblemError(421, "the service is not called by this name", "Host")
        if self.token is None or scope["path"] in FREE:
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self.token.encode())
        if kind.lower() == "bearer" and same:
            return None
        return ProblemError(401, "send the header Authorization: Bearer TOKEN", "Authorization")


def _host(text: str) -> str:
    """The name in a Host header, without its port; "" if the header is malformed."""
    match = _HOST.fullmatch(text)
    return "" if match is None else (match[1] or match[2]).lower()
