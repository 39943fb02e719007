"""A function in several processes at a time, as torchrun would start them."""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import TCPStore

from tests.waiting import LONG
from vrgcn.cli import main
from vrgcn.distributed.group import joined

# One process imports everything and is forked for each rank: seconds less than importing again.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["vrgcn.cli.train_parts", "tests.distributed.problems"])


def commands(count: int, *lines: list[str]) -> list[tuple[int, str, str]]:
    """Commands of vrgcn, one after the other, in each of `count` processes as torchrun starts them:
    the exit code of the last, and what each process printed and complained. To vrgcn each looks
    like a further start of one job, for the store stays the same."""
    return commands_of_each([lines] * count)


def commands_of_each(lines: Sequence[Sequence[list[str]]]) -> list[tuple[int, str, str]]:
    """The same, of commands that differ from process to process."""
    return in_processes(len(lines), _commands, lines, join=False)


def _commands(lines_of_each: Sequence[Sequence[list[str]]]) -> tuple[int, str, str]:
    code, out, err = 0, io.StringIO(), io.StringIO()
    for line in lines_of_each[int(os.environ["RANK"])]:
        code = 0
        try:
            with redirect_stdout(out), redirect_stderr(err):
                main(line)
        except SystemExit as end:
            code = int(end.code or 0)
        if dist.is_initialized():  # after an error; a process that is started again knows nothing
            dist.destroy_process_group()
    return code, out.getvalue(), err.getvalue()


def in_processes(
    count: int, function: Callable[..., Any], *arguments: Any, join: bool = True
) -> list[Any]:
    """Return the result of `function(group, *arguments)` in each of `count` processes; it must be a
    function of a module, because it is sent by name.

    join: False calls `function(*arguments)`, which joins the group by itself
    """
    # As torchrun does it: the store outlives whichever process ends first.
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    started = []
    for rank in range(count):
        here, there = _CONTEXT.Pipe(duplex=False)
        place = (rank, count, store.port)
        process = _CONTEXT.Process(target=_run, args=(there, place, function, arguments, join))
        process.start()
        there.close()
        started.append((process, here))
    results = []
    for process, here in started:
        try:
            good, result = pickle.loads(here.recv_bytes())
        except EOFError:
            good, result = False, "the process died"
        process.join(LONG)
        assert good, result
        results.append(result)
    return results


def _run(
    answer: Connection,
    place: tuple[int, int, int],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    join: bool,
) -> None:
    rank, count, port = place
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    torch.set_num_threads(1)
    try:
        if not join:
            _answer(answer, True, function(*arguments))
            return
        with joined(torch.device("cpu"), LONG) as group:
            _answer(answer, True, function(group, *arguments))
    except BaseException:
        _answer(answer, False, traceback.format_exc())


def _answer(connection: Connection, good: bool, result: Any) -> None:
    # Sent by value: the memory of a process that ends cannot be shared.
    connection.send_bytes(pickle.dumps((good, result)))
