"""Connections of a service: a time and a size for each request, and a limit of their number.

uvicorn limits neither the time that a client takes to send a request or to take its answer, nor
the number of connections. Here a connection that waits for its client makes room for a new one if
there are too many, the one that has waited longest first: half-sent requests cannot keep others
out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from vrgcn.serve.answers import ProblemError, refusal

_HEAD = 16 << 10  # bytes of a request line and its headers


class Connections:
    """The open connections.

    most: so many may be open
    seconds: for a client to send a request, and to take an answer
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        self._open: dict[Connection, None] = {}  # in the order of their last request

    def protocol(self, **arguments: Any) -> Connection:
        """Return the protocol of a new connection, as uvicorn makes it."""
        return Connection(self, **arguments)

    def enter(self, connection: Connection) -> bool:
        """Take a new connection; return False if there is no room for it."""
        if len(self._open) >= self.most:
            waiting = next((each for each in self._open if each.waits), None)
            if waiting is None:
                return False
            self.leave(waiting)
            waiting.transport.abort()
        self._open[connection] = None
        return True

    def renew(self, connection: Connection) -> None:
        """Put a connection that has sent a request behind those that have not."""
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def leave(self, connection: Connection) -> None:
        self._open.pop(connection, None)


class Connection(H11Protocol):
    """A connection that is closed if its client is too slow or sends what HTTP does not allow."""

    def __init__(self, among: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.conn: _Strict = _Strict(h11.SERVER, max_incomplete_event_size=_HEAD)
        self._among = among
        self._sending = _Timer(self._too_slow)  # until the request is complete
        self._taking = _Timer(self._abort)  # until the client takes the answer

    @property
    def waits(self) -> bool:
        """True if nothing is to be done before the client sends more."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._among.enter(self):
            self._watch()
        else:
            self._refuse(ProblemError(503, "too many connections are open", retry_after=1))

    def connection_lost(self, exc: Exception | None) -> None:
        self._among.leave(self)
        self._sending.stop()
        self._taking.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def _watch(self) -> None:
        """Give the client its time from the first byte of a request to the last."""
        if not self.waits or self.transport.is_closing():
            self._sending.stop()
            self._among.renew(self)
        else:
            self._sending.start(self.loop, self._among.seconds)

    def _too_slow(self) -> None:
        text = f"the request took more than {self._among.seconds:g} seconds"
        self._refuse(ProblemError(408, text))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking.start(self.loop, self._among.seconds)

    def resume_writing(self) -> None:
        self._taking.stop()
        super().resume_writing()

    def _abort(self) -> None:
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP; uvicorn calls it."""
        status, text = self.conn.problem or (400, "the request is not valid HTTP")
        self._refuse(ProblemError(status, text))

    def _refuse(self, problem: ProblemError) -> None:
        """Answer, unless an answer has begun, and close."""
        begun = self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not begun and not self.transport.is_closing():
            response = refusal(problem)
            headers = [*response.raw_headers, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=problem.status, headers=headers),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Strict(h11.Connection):
    """A parser of HTTP that refuses requests which two programs could read differently.

    problem: status and message of a request that HTTP allows and this service does not
    """

    problem: tuple[int, str] | None = None

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = [name for name, _ in event.headers]
            size = len(event.target) + sum(len(n) + len(v) for n, v in event.headers)
            if b"content-length" in names and b"transfer-encoding" in names:
                self.problem = 400, "give Content-Length or Transfer-Encoding, and not both"
            elif size + len(event.method) > _HEAD:
                self.problem = 431, f"the request line and headers have more than {_HEAD:,} bytes"
            if self.problem is not None:
                raise h11.RemoteProtocolError(self.problem[1])
        return event


class _Timer:
    """Calls a function once, unless it is stopped before; a timer that runs is not started anew."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._handle: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        if self._handle is None:
            self._handle = loop.call_later(seconds, self._call)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
