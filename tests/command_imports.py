"""Modules that commands import when they run, for tests that need them imported before."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.test_arrows import arrows, ends, folder
from vrgcn.cli import COMMANDS


def imported_by_running(command: str) -> list[str]:
    """Names of the modules of the package that the functions of a command's files import."""
    found: dict[str, None] = {}
    files = [COMMANDS[command].module]
    for module in files:
        source = import_module(module).__file__
        assert source is not None
        for arrow in arrows(Path(source).read_text(encoding="utf-8"), module):
            _, imported = ends(arrow)
            if folder(imported) == "cli":
                files += [imported] if imported not in files else []
            if not arrow.on_load and folder(imported) != "lab":
                found[imported] = None
    return list(found)


def import_all(*commands: str) -> None:
    """Import what the commands would import when they run."""
    for command in commands:
        for module in imported_by_running(command):
            import_module(module)
