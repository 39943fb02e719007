"""Files that commands write: refused before the work that leads to them, not after it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def check_out(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file for --out that could not be written; its folder is made.

    suffixes: that its name may end in
    """
    if path.suffix not in suffixes:
        either = suffixes[0] if len(suffixes) == 1 else f"one of {', '.join(suffixes)}"
        raise ValueError(f"--out: {path} must end in {either}")
    if path.is_dir():
        raise IsADirectoryError(f"--out: {path} is a folder; name a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    check_writable(path.parent)


def check_writable(folder: Path) -> None:
    """Refuse a folder that nothing can be written into."""
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"--out: cannot write into the folder {folder}")
