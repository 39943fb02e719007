"""Checks of paths and packages that several commands make before torch is loaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import check_writable


def check_method(method: str) -> None:
    """Raise if the package that partitions the graph is not installed."""
    if method == "metis" and find_spec("pymetis") is None:
        raise InputError(
            "--method metis: needs pymetis: pip install 'vrgcn[partition]', or choose ldg"
        )


def check_new(path: Path, what: str = "name") -> None:
    """Raise if the path of --out exists already or cannot be created.

    what: the kind of thing that the user should choose anew, such as a folder
    """
    if path.exists():
        raise FileExistsError(f"--out: {path} exists already; choose another {what}")
    check_writable(path.parent)


def check_file(path: Path, flag: str) -> None:
    """Raise if a file does not exist."""
    if path.is_dir():
        raise IsADirectoryError(f"{flag}: {path} is a folder; name a file")
    if not path.exists():
        file, table = str(path).partition("#")[::2]
        hint = ""
        if table and Path(file).is_file():
            hint = f"; a table of a database begins with its scheme, such as sqlite:///{path}"
        raise FileNotFoundError(f"{flag}: there is no file {path}{hint}")
