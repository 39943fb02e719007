"""Which code made a record: the version of the package, and the commit where it is a checkout."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

import vrgcn
from vrgcn import __version__

PACKAGE = Path(vrgcn.__file__).resolve().parent


@lru_cache(maxsize=1)
def code_version(package: Path = PACKAGE) -> str:
    """Such as "0.1.0, commit 1a2b3c4 of 2026-11-17"; "changed" follows where files of the package
    are not as committed, and the version alone stands for a package that is no checkout."""
    commit = _git(package, "log", "-1", "--format=%h of %cs", "--abbrev=7")
    if not commit or not _git(package, "ls-files", "__init__.py"):
        return __version__
    changed = ", changed" if _git(package, "status", "--porcelain", ".") else ""
    return f"{__version__}, commit {commit}{changed}"


def _git(folder: Path, *words: str) -> str:
    """What git says in a folder; nothing where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
