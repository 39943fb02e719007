"""The command line: a table of commands, each an options class and the function that takes it.

torch is imported when a command runs, not before: `vrgcn --help` answers at once.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from vrgcn import __version__
from vrgcn.cli.checks import check
from vrgcn.cli.config_file import parse_with_files
from vrgcn.cli.help import command_help, overview
from vrgcn.cli.options import (
    BenchOptions,
    DatasetsOptions,
    DemoOptions,
    DiagnoseOptions,
    EmbedOptions,
    EvaluateOptions,
    GenerateOptions,
    ImportOptions,
    InfoOptions,
    PartitionOptions,
    PredictOptions,
    ReorderOptions,
    ReportOptions,
    ReproduceOptions,
    TrainOptions,
    TuneOptions,
)
from vrgcn.cli.output import Unbroken, unbroken_output
from vrgcn.cli.parsing import UsageError
from vrgcn.files.memory import is_out_of_memory
from vrgcn.files.printable import printable

# command: its options, and where the function that runs it lives
COMMANDS: dict[str, tuple[type, str, str]] = {
    "import": (ImportOptions, "vrgcn.cli.import_tables", "run_import"),
    "generate": (GenerateOptions, "vrgcn.cli.generate", "run_generate"),
    "reorder": (ReorderOptions, "vrgcn.cli.reorder", "run_reorder"),
    "partition": (PartitionOptions, "vrgcn.cli.partition", "run_partition"),
    "train": (TrainOptions, "vrgcn.cli.train", "run_train"),
    "tune": (TuneOptions, "vrgcn.cli.tune", "run_tune"),
    "predict": (PredictOptions, "vrgcn.cli.predict", "run_predict"),
    "embed": (EmbedOptions, "vrgcn.cli.embed", "run_embed"),
    "evaluate": (EvaluateOptions, "vrgcn.cli.evaluate", "run_evaluate"),
    "report": (ReportOptions, "vrgcn.cli.report", "run_report"),
    "diagnose": (DiagnoseOptions, "vrgcn.cli.diagnose", "run_diagnose"),
    "datasets": (DatasetsOptions, "vrgcn.cli.datasets", "run_datasets"),
    "info": (InfoOptions, "vrgcn.cli.info", "run_info"),
    "demo": (DemoOptions, "vrgcn.cli.demo", "run_demo"),
    "bench": (BenchOptions, "vrgcn.cli.bench", "run_bench"),
    "reproduce": (ReproduceOptions, "vrgcn.cli.reproduce", "run_reproduce"),
}

# Commands that write no file: what they print is all that they give.
PRINTED = ("info", "datasets")

# What the user can mend. Anything else is a defect of ours and keeps its traceback.
USER_ERRORS = (ValueError, TypeError, OSError, FloatingPointError, MemoryError)


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of `vrgcn`: exits with 0, 1 for a bad input, 2 for a bad flag."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    command, *flags = arguments or ["--help"]
    with unbroken_output() as output:
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
            _run(command, flags)
        if command not in COMMANDS or command in PRINTED or _asks_for_help(flags):
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


def _asks_for_help(flags: list[str]) -> bool:
    return "--help" in flags or "-h" in flags


def _run(command: str, flags: list[str]) -> None:
    kind, module, function = COMMANDS[command]
    options: object = None
    try:
        if _asks_for_help(flags):
            print(command_help(kind, command))
            return
        options = check(parse_with_files(kind, flags))
        getattr(importlib.import_module(module), function)(options)
    except UsageError as error:
        text = printable(str(error), keep="\n")
        print(
            f"vrgcn {command}: error: {text}\n(vrgcn {command} --help lists its options)",
            file=sys.stderr,
        )
        sys.exit(2)
    except Exception as error:
        starved = is_out_of_memory(error)
        if os.environ.get("VRGCN_DEBUG") or not (starved or isinstance(error, USER_ERRORS)):
            raise
        text = _of_out(error, options) or str(error)
        if starved and not (isinstance(error, MemoryError) and text):
            text = f"there is not enough memory for this: {text or 'an allocation failed'}"
        print("vrgcn: error:", printable(text, keep="\n"), file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("vrgcn: interrupted", file=sys.stderr)
        sys.exit(130)


def _of_out(error: Exception, options: object) -> str | None:
    """What the system says of a place that --out names, with the flag; None of anything else."""
    out = getattr(options, "out", None)
    if out is None or not (isinstance(error, OSError) and isinstance(error.filename, str)):
        return None
    named, place = Path(error.filename).absolute(), out.absolute()
    partial = named.parent == place.parent and place.name in named.name  # what becomes --out
    if not (partial or named.is_relative_to(place) or place.is_relative_to(named)):
        return None
    return f"--out: cannot write {error.filename}: {error.strerror}"


def _overview() -> str:
    return overview(
        {name: (kind.__doc__ or "").splitlines()[0] for name, (kind, _, _) in COMMANDS.items()}
    )
