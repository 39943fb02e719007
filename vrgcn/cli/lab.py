"""Access to `lab`, the research code that lies beside the package in its repository."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def open_lab(command: str, module: str) -> ModuleType:
    """Import a module of `lab`; raise FileNotFoundError where `lab` is absent.

    command: the command that needs it, such as bench
    """
    beside = (ROOT / "lab" / "__init__.py").is_file()
    if beside and sys.path[:1] != [str(ROOT)]:
        sys.path.insert(0, str(ROOT))
    if not _found(module):
        raise FileNotFoundError(
            f"vrgcn {command} is research code: it lies in lab/ of the project's repository and is "
            "not part of the installed package. Clone the repository and run it there "
            f"(make install, then .venv/bin/vrgcn {command})"
        )
    return importlib.import_module(module)


def _found(module: str) -> bool:
    """Return True if the package `lab` on the path has the module; another package may have that
    name."""
    lab = find_spec("lab")
    file = Path(*module.split(".")[1:]).with_suffix(".py")
    places = [] if lab is None else lab.submodule_search_locations or []
    return any((Path(place) / file).is_file() for place in places)
