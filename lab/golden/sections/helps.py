"""Help texts of every command, by separate programs, and the modules imported to show them."""

from __future__ import annotations

import re

from lab.golden.processes import program
from lab.golden.workspace import Workspace

_COMMAND = re.compile(r"^  ([a-z]+)  +\S", re.MULTILINE)
# True if torch is imported by then, which takes a second.
_IMPORTED = """
import runpy, sys
try:
    runpy.run_module('vrgcn', run_name='__main__')
except SystemExit:
    pass
print('torch' in sys.modules)
"""
_QUICK = (("--help",), ("train", "--help"), ("train", "--lr", "3"), ("train", "nowhere"))


def record(work: Workspace) -> None:
    """Record `vrgcn`, `vrgcn --help`, `vrgcn --version` and the help of commands."""
    _help(work)
    _help(work, "-h")
    _help(work, "--version")
    overview = _help(work, "--help")
    for command in _COMMAND.findall(overview):
        _help(work, command, "--help")
        _help(work, command, "--help", "all")
    for arguments in _QUICK:
        done = program(["-c", _IMPORTED, *arguments], work.folder)
        name = f"imports of vrgcn {' '.join(arguments)}"
        work.write(name, f"torch: {done.out.splitlines()[-1]}")


def _help(work: Workspace, *arguments: str) -> str:
    """Record the output of `vrgcn ARGUMENTS`, to the last space; return it."""
    done = program(["-m", "vrgcn", *arguments], work.folder)
    text = work.masks.text(f"exit {done.code}\n--- stdout\n{done.out}--- stderr\n{done.err}")
    work.write(" ".join(["vrgcn", *arguments]), text)
    return done.out
