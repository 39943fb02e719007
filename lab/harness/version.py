"""The code that made a record: the version of the package, and the commit if it is a checkout."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

import vrgcn
from vrgcn import __version__

ROOT = Path(vrgcn.__file__).resolve().parents[1]
CODE = ("vrgcn", "lab")  # the folders whose files make a record


@lru_cache(maxsize=1)
def code_version(root: Path = ROOT) -> str:
    """Return the version of the package in `root`, such as "0.1.0, commit 1a2b3c4 of 2026-11-17".

    "changed" follows if files of `CODE` are not as committed; for a package that is no checkout,
    only the version.
    """
    commit = _git(root, "log", "-1", "--format=%h of %cs", "--abbrev=7")
    if not commit or not _git(root, "ls-files", "vrgcn/__init__.py"):
        return __version__
    changed = ", changed" if _git(root, "status", "--porcelain", *CODE) else ""
    return f"{__version__}, commit {commit}{changed}"


def _git(folder: Path, *words: str) -> str:
    """Return git's output in a folder; nothing if there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
