"""The server: uvicorn, which says where it listens and ends in order when a signal comes."""

from __future__ import annotations

import signal
import socket
import sys
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.serve.bodies import Limits
from vrgcn.serve.connections import Connections
from vrgcn.serve.log import write_log


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that a taken port is an error before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once instead of 40 ms later.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen at {setting('host', host)} {setting('port', port)}: {error.strerror}; "
            "give another port"
        ) from None
    listener.listen(1024)
    return listener


def serve(app: ASGIApp, listening: socket.socket, limits: Limits) -> None:
    """Answer requests until SIGINT or SIGTERM; those that have begun are finished."""
    write_log()
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    config = server_config(app, limits)
    print(f"serving at http://{shown}:{port} (its page, /docs, /metrics); Ctrl-C ends", flush=True)
    _Server(config).run(sockets=[listening])


def server_config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    """Return uvicorn's settings. Connections are accepted in groups, and each group at once takes
    file descriptors: both numbers together stay below what the system allows."""
    most = min(limits.connections, _descriptors() // 2)
    return uvicorn.Config(
        app,
        http=Connections(most, limits.seconds).protocol,  # type: ignore[arg-type]
        ws="none",
        backlog=max(most // 4, 1),
        log_config=None,
        access_log=False,
        timeout_keep_alive=30,
    )


def _descriptors() -> int:
    """Return how many files this process may have open."""
    if sys.platform == "win32":
        return 512
    import resource

    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if allowed == resource.RLIM_INFINITY else allowed


class _Server(uvicorn.Server):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in order. uvicorn would raise the signal again afterwards, and this process would
        die by it."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
