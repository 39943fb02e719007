"""`python -m lab.golden`: see the package's docstring."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import lab.golden
from lab.golden.compare import compare
from lab.golden.record import SECTIONS, record


def main() -> None:
    """Parse the command line and run one of the two commands."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.golden",
        description=lab.golden.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run everything and write it down")
    recording.add_argument("folder", type=Path, help="a new folder")
    recording.add_argument("--code", type=Path, help="a checkout whose `vrgcn` is to be recorded")
    comparing = commands.add_parser("compare", help="list the differences of two recordings")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--lines", type=int, default=40, help="lines shown of a difference")
    for command in (recording, comparing):
        command.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    given = parser.parse_args()
    try:
        if given.command == "record":
            record(given.folder, given.code, given.sections)
        else:
            sys.exit(compare(given.before, given.after, given.sections, given.lines))
    except (OSError, ValueError) as error:
        sys.exit(f"lab.golden: error: {error}")


main()
