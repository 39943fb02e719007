"""`vrgcn serve`: answers requests about a graph that changes, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_file
from vrgcn.cli.shared_flags import Memory, Threads, TrainedRun
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import at_least
from vrgcn.files.wording import print_note
from vrgcn.runs.run import check_run

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class ServeOptions(Options):
    """Flags of `vrgcn serve`."""

    loads_torch: ClassVar[bool] = True

    run: TrainedRun
    host: str = "127.0.0.1"
    """Address to listen on. Any address but this machine's own needs --token-file."""
    port: int = 8000
    """Port to listen on. 0: a free one, which is printed."""
    state: Path | None = None
    """Folder of the journal and of the changed graph. None: the folder live of the run."""
    token_file: Path | None = None
    """File whose first line is the token that requests must have (Authorization: Bearer …)."""
    checkpoint_every: int = 1000
    """Changes after which the journal is folded into new tables, so that a start is fast; 0:
    never."""
    max_body: int = 1 << 20
    """Most bytes in the body of a request."""
    max_batch: int = 1000
    """Most rows in one change."""
    max_waiting: int = 64
    """Most changes that may wait for the writer; further ones get a 503."""
    max_seconds: float = 10.0
    """Most seconds for sending, waiting for, computing and answering a request."""
    memory: Memory = "ram"
    threads: Threads = None

    only_prints: ClassVar[bool] = False

    def checked(self) -> Self:
        """Raise if the run or the token's file does not exist, or a number makes no sense."""
        check_run(self.run)
        at_least(0, port=self.port, checkpoint_every=self.checkpoint_every)
        at_least(1, max_body=self.max_body, max_batch=self.max_batch, max_waiting=self.max_waiting)
        if self.port > 65_535:
            raise InputError(f"--port {self.port}: ports end at 65535")
        if not self.max_seconds > 0:
            raise InputError(f"--max-seconds {self.max_seconds:g}: give more than 0")
        if self.token_file is not None:
            check_file(self.token_file, "--token-file")
        elif self.host not in _LOOPBACK:
            raise InputError(
                f"--host {self.host}: others can reach this address, so requests need a token; "
                "give --token-file FILE"
            )
        return self


def run(options: ServeOptions) -> None:
    """Open the run with its changes and answer requests until a signal comes."""
    try:
        from vrgcn.serve.app import build_app
        from vrgcn.serve.running import listen, serve
    except ModuleNotFoundError as error:
        raise InputError(f"serving needs {error.name}: pip install 'vrgcn[serve]'") from None
    from vrgcn.engine.devices import use_threads
    from vrgcn.serve.bodies import Limits
    from vrgcn.serve.service import opened_service

    use_threads(options.threads)
    token = None if options.token_file is None else _token(options.token_file)
    limits = Limits(
        body=options.max_body,
        batch=options.max_batch,
        seconds=options.max_seconds,
        waiting=options.max_waiting,
    )
    state = options.state or options.run / "live"
    every, memory = options.checkpoint_every, options.memory
    with (
        listen(options.host, options.port) as listening,
        opened_service(options.run, state, checkpoint_every=every, memory=memory) as service,
    ):
        for refused in service.live.refuses:
            print_note(refused)
        local = options.host in _LOOPBACK
        serve(build_app(service, limits, token, loopback=local), listening, limits)


def _token(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    token = lines[0].strip() if lines else ""
    if len(token) < 16 or not token.isascii():
        raise InputError(
            f"--token-file: the first line of {path} must have at least 16 ASCII characters; make "
            "one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token
