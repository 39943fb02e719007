"""The server: uvicorn, which says where it listens and ends in order when a signal comes."""

from __future__ import annotations

import signal
import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from vrgcn.files.setting_names import setting


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that a taken port is an error before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once instead of 40 ms later.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise ValueError(
            f"cannot listen at {setting('host', host)} {setting('port', port)}: {error.strerror}; "
            "give another port"
        ) from None
    found.listen(1024)
    return found


def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Answer requests until SIGINT or SIGTERM; those that have begun are finished."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=30)
    print(f"serving at http://{shown}:{port} (its page, /docs, /metrics); Ctrl-C ends", flush=True)
    _Server(config).run(sockets=[listening])


class _Server(uvicorn.Server):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in order. uvicorn would raise the signal again afterwards, and this process would
        die by it."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
