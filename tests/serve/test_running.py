"""The server's socket."""

from __future__ import annotations

import asyncio
import socket

from vrgcn.serve.running import listen


def test_small_answers_are_sent_at_once() -> None:
    """Answers of two writes would wait 40 ms for each other otherwise."""

    async def accepted() -> int:
        delays = []

        class Kept(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                found = transport.get_extra_info("socket")
                delays.append(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.close()

        with listen("127.0.0.1", 0) as listening:
            server = await asyncio.get_running_loop().create_server(Kept, sock=listening)
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            await reader.read()
            writer.close()
            server.close()
        return delays[0]

    assert asyncio.run(accepted()) == 1
