"""The command line: a table of commands, each a module of its own.

Nothing but the table is needed to list the commands. A command's module is imported when it is
used, and torch when it runs: `vrgcn --help` and mistakes are answered at once.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

from vrgcn import __version__
from vrgcn.cli.command import Command, Options
from vrgcn.cli.output import Unbroken, unbroken_output
from vrgcn.files.memory import is_out_of_memory
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import flags_in_messages
from vrgcn.files.wording import printable, without_password

STARTED = time.monotonic()  # of the program, for what a run says of its time

SUMMARIES = {
    "import": "Make a graph of your own tables of nodes and edges: files or tables of databases.",
    "generate": "Write a community graph of any size to disk, in pieces.",
    "reorder": "Rewrite a graph on disk, its nodes in an order that puts neighbours together.",
    "partition": "Cut a graph into parts, one for each process that trains on it.",
    "audit": "Look for leaks in a graph and its split: columns, pairs and records that tell "
    "too much.",
    "train": "Train a model on a graph and write the run to a folder.",
    "tune": "Search for good settings on a graph within a time limit; keep the best models.",
    "predict": "Predict the classes or the numbers of nodes, exactly, with a trained model.",
    "recommend": "Recommend the best new partners of nodes, by a model that predicts links.",
    "serve": "Answer requests about a graph that changes, exactly, over HTTP.",
    "embed": "Write embeddings: the exact activations of a layer of a trained model, for each "
    "node.",
    "evaluate": "Score a trained model on each split and, for classification, on each class.",
    "explain": "Show how the prediction of a node changes without an edge, a neighbour or a "
    "column.",
    "report": "Show one or several runs on a page: curves, scores, options and what differs.",
    "diagnose": "Measure bias, noise and staleness of every estimator against the exact algorithm.",
    "datasets": "List the named data sets, and which of them are on this machine.",
    "info": "Describe a graph: size, degrees, labels, splits, memory.",
    "doctor": "Say what is installed and missing, and what this machine has.",
    "completion": "Print a script that completes commands and flags in bash, zsh or fish.",
    "demo": "Go from two tables to predictions, then compare six algorithms; about a minute.",
    "bench": "Measure training, inference and start-up against an MLP, the machine and PyG.",
    "reproduce": "Run the paper's experiments and write a page with its numbers beside ours.",
}
# The module of a command has its name, unless that is a word of Python.
COMMANDS = {
    name: Command(f"vrgcn.cli.{'import_tables' if name == 'import' else name}", summary)
    for name, summary in SUMMARIES.items()
}

# Errors that the user can fix. Any other exception is a bug of vrgcn.
USER_ERRORS = (InputError, OSError, FloatingPointError, MemoryError)
BUG = 3  # exit code


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of `vrgcn`: exits with 0, 1 for a bad input, 2 for a bad flag, 3 for
    a bug of vrgcn."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    command, *flags = arguments or ["--help"]
    with unbroken_output() as output, flags_in_messages():
        only_prints = True
        if command in ("--version", "-V"):
            print(f"vrgcn {__version__}")
        elif command in ("--help", "-h"):
            print(_overview())
        elif command not in COMMANDS:
            close = get_close_matches(command, COMMANDS, n=1)
            hint = f"; did you mean vrgcn {close[0]}?" if close else f"\n\n{_overview()}"
            print(f"vrgcn: error: there is no command {command!r}{hint}", file=sys.stderr)
            sys.exit(2)
        else:
            only_prints = _run(command, flags)
        if only_prints:
            _check_printed(output)


def _check_printed(output: Unbroken) -> None:
    """Exit with 1 if output was lost, unless its reader has seen enough (`vrgcn info | head`)."""
    output.flush()
    if output.lost is not None and output.lost.errno != errno.EPIPE:
        print(
            f"vrgcn: error: standard output cannot be written: {output.lost.strerror}",
            file=sys.stderr,
        )
        sys.exit(1)


def _run(name: str, flags: list[str]) -> bool:
    """Run a command, or print its help; return True if it only prints."""
    from vrgcn.cli.help import command_help
    from vrgcn.cli.parsing import UsageError, parse_with_files

    command = COMMANDS[name]
    options: Options | None = None
    try:
        if (layer := _asked_help(flags)) is not None:
            print(command_help(command.options, name, command.summary, layer))
            return True
        options = parse_with_files(command.options, flags).checked()
        command.run(options)
        return options.only_prints
    except UsageError as error:
        text = printable(without_password(str(error)), keep="\n")
        print(
            f"vrgcn {name}: error: {text}\n(vrgcn {name} --help lists its options)",
            file=sys.stderr,
        )
        sys.exit(2)
    except Exception as error:
        starved = is_out_of_memory(error)
        if os.environ.get("VRGCN_DEBUG"):
            raise
        if not (starved or isinstance(error, USER_ERRORS)):
            from vrgcn.cli.bugs import report_bug

            report_bug(error, [name, *flags])
            sys.exit(BUG)
        text = _of_out(error, options) or str(error)
        if starved and not (isinstance(error, MemoryError) and text):
            text = f"there is not enough memory for this: {text or 'an allocation failed'}"
        print("vrgcn: error:", printable(without_password(text), keep="\n"), file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt as stop:
        from vrgcn.runs.interrupts import Interrupted

        if isinstance(stop, Interrupted):  # the run has printed what it kept
            sys.exit(128 + stop.signal)
        print("vrgcn: interrupted", file=sys.stderr)
        sys.exit(130)


def _asked_help(flags: Sequence[str]) -> str | None:
    """Return the word after --help, "" if there is none; None if no help is asked for."""
    for flag, after in pairwise([*flags, ""]):
        name, _, word = flag.partition("=")
        if name in ("--help", "-h"):
            return word or ("" if after.startswith("-") else after)
    return None


def _of_out(error: Exception, options: object) -> str | None:
    """Return the system's error with the flag --out if it concerns that path; None for any other
    error."""
    out = getattr(options, "out", None)
    if not isinstance(out, Path) or not (
        isinstance(error, OSError) and isinstance(error.filename, str)
    ):
        return None
    named, place = Path(error.filename).absolute(), out.absolute()
    partial = named.parent == place.parent and place.name in named.name  # temporary
    if not (partial or named.is_relative_to(place) or place.is_relative_to(named)):
        return None
    return f"--out: cannot write {error.filename}: {error.strerror}"


def _overview() -> str:
    from vrgcn.cli.help import overview

    return overview({name: command.summary for name, command in COMMANDS.items()})
