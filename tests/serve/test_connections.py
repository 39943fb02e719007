"""Connections of clients that send half a request, or what HTTP does not allow."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from vrgcn.serve.bodies import Limits
from vrgcn.serve.guard import Guard
from vrgcn.serve.metrics import Metrics
from vrgcn.serve.running import server_config

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[..., Awaitable[Ends]]
WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nHost: loc"
BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
SOON, NEVER = 0.02, 1e6  # seconds that a client has


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await answered(send, body)


async def answered(send: Send, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def listening(app: ASGIApp, **limits: Any) -> AsyncIterator[Connect]:
    """A function that connects, sends some bytes, and returns both ends of the connection."""
    config = server_config(app, Limits(**limits))
    config.load()
    state, loop = ServerState(), asyncio.get_running_loop()
    clients: list[asyncio.StreamWriter] = []
    made: Any = config.http_protocol_class
    server = await loop.create_server(
        lambda: made(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )

    async def connect(sent: bytes = b"") -> Ends:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        clients.append(writer)
        writer.write(sent)
        return reader, writer

    try:
        yield connect
    finally:
        server.close()
        for writer in clients:
            writer.transport.abort()
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.gather(*state.tasks)


async def head(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and the headers of the next answer."""
    found = await reader.readuntil(b"\r\n\r\n")
    return int(found.split()[1]), found


async def closed(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes the connection."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.fixture(autouse=True)
def _no_tracebacks(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert not [record.getMessage() for record in caplog.records if record.exc_info]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("sent", [b"", HALF, BODY, BODY + b"abc"])
def test_half_a_request_is_closed_with_408(sent: bytes) -> None:
    async def scenario() -> None:
        async with listening(echo, seconds=SOON) as connect:
            reader, _ = await connect(sent)
            status, headers = await head(reader)
            assert status == 408
            assert b"connection: close" in headers
            assert "took more than" in json.loads(await closed(reader))["error"]["message"]

    run(scenario)


def test_the_rest_of_a_body_that_nobody_reads_has_no_more_time() -> None:
    async def early(scope: Scope, receive: Receive, send: Send) -> None:
        await answered(send, b"early")

    async def scenario() -> None:
        async with listening(early, seconds=SOON) as connect:
            reader, _ = await connect(BODY)
            assert (await head(reader))[0] == 200
            assert await closed(reader) == b"early"

    run(scenario)


def test_an_answer_that_the_client_does_not_take_ends() -> None:
    ended = asyncio.Event()

    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200):
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        ended.set()

    async def scenario() -> None:
        async with listening(large, seconds=SOON) as connect:
            reader, _ = await connect(WHOLE)
            await head(reader)
            await ended.wait()

    run(scenario)
    assert ended.is_set()


def test_a_complete_request_has_all_the_time_that_its_answer_takes() -> None:
    async def scenario() -> None:
        go_on = asyncio.Event()

        async def late(scope: Scope, receive: Receive, send: Send) -> None:
            await go_on.wait()
            await answered(send, b"late")

        async with listening(late, seconds=SOON) as connect:
            reader, _ = await connect(WHOLE)
            other, _ = await connect(HALF)
            assert (await head(other))[0] == 408  # the time has passed
            go_on.set()
            assert (await head(reader))[0] == 200

    run(scenario)


def test_a_connection_that_waits_for_its_client_makes_room() -> None:
    async def scenario() -> None:
        async with listening(echo, seconds=NEVER, connections=3) as connect:
            first, kept = await connect(WHOLE)
            assert (await head(first))[0] == 200
            halves = [await connect(HALF) for _ in range(2)]
            kept.write(WHOLE)  # of the three it is now the one that has waited least
            assert (await head(first))[0] == 200
            for reader, _ in halves:
                new, _ = await connect(WHOLE)
                assert (await head(new))[0] == 200
                assert await closed(reader) == b""
            kept.write(WHOLE)
            assert (await head(first))[0] == 200

    run(scenario)


def test_connections_that_compute_are_kept_and_a_further_one_is_refused() -> None:
    async def scenario() -> None:
        go_on = asyncio.Event()

        async def late(scope: Scope, receive: Receive, send: Send) -> None:
            begun.release()
            await go_on.wait()
            await answered(send, b"late")

        begun = asyncio.Semaphore(0)
        async with listening(late, seconds=NEVER, connections=2) as connect:
            kept = [await connect(WHOLE) for _ in range(2)]
            for _ in kept:
                await begun.acquire()
            new, _ = await connect()
            status, headers = await head(new)
            assert status == 503
            assert b"retry-after" in headers.lower()
            go_on.set()
            for reader, _ in kept:
                assert (await head(reader))[0] == 200

    run(scenario)


def test_a_client_that_sends_slowly_does_not_hold_a_place_of_those_that_are_answered() -> None:
    async def scenario() -> None:
        metrics = Metrics()
        metrics.counter("vrgcn_requests_total", "Requests.")
        begun = asyncio.Event()

        async def seen(scope: Scope, receive: Receive, send: Send) -> None:
            begun.set()
            await echo(scope, receive, send)

        guard = Guard(seen, metrics=metrics, token=None, hosts=None, most=1)
        async with listening(guard, seconds=NEVER) as connect:
            slow, writer = await connect(BODY + b"ab")
            await begun.wait()
            quick, _ = await connect(WHOLE)
            assert (await head(quick))[0] == 200
            writer.write(b"cde")
            assert (await head(slow))[0] == 200
        assert guard.open == 0

    run(scenario)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"M" * 30_000 + WHOLE[3:], 431),
        (b"GET /" + b"p" * 30_000 + WHOLE[5:], 431),
        (WHOLE[:-2] + b"X: " + b"x" * 30_000 + b"\r\n\r\n", 431),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + WHOLE,
            400,
        ),
    ],
)
def test_what_http_does_not_allow_is_refused_and_closed(sent: bytes, status: int) -> None:
    async def scenario() -> None:
        async with listening(echo, seconds=NEVER) as connect:
            reader, _ = await connect(sent)
            found, headers = await head(reader)
            assert found == status
            assert b"connection: close" in headers
            assert set(json.loads(await closed(reader))["error"]) == {"message"}

    run(scenario)


def test_nonsense_behind_a_request_does_not_disturb_its_answer() -> None:
    async def scenario() -> None:
        async with listening(echo, seconds=NEVER) as connect:
            reader, _ = await connect(WHOLE + WHOLE)
            for _ in range(2):
                assert (await head(reader))[0] == 200
            chunks = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            reader, writer = await connect(chunks)
            writer.write(b"no chunk\r\n\r\n")
            assert (await head(reader))[0] == 400
            await closed(reader)

    run(scenario)
