"""Reports of bugs of vrgcn: one line on the terminal, and a file with the traceback."""

from __future__ import annotations

import platform
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from vrgcn import __version__
from vrgcn.files.wording import printable, without_password

_PACKAGES = ("torch", "numpy", "pyarrow")


def report_bug(error: Exception, words: Sequence[str]) -> None:
    """Write the traceback to a file that can be sent, and print where it is.

    words: the command, without "vrgcn"
    """
    text = "".join(traceback.format_exception(error))
    handle, path = tempfile.mkstemp(prefix="vrgcn-bug-", suffix=".txt")
    with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(without_password(f"vrgcn {shlex.join(words)}\n{_versions()}\n\n{text}"))
    said = (str(error).splitlines() or [""])[0]
    print(
        f"vrgcn: error: this is a bug of vrgcn: {type(error).__name__}: "
        f"{printable(without_password(said))}\n"
        f"The traceback is in {path}: please report it with that file. VRGCN_DEBUG=1 prints it.",
        file=sys.stderr,
    )


def _versions() -> str:
    packages = []
    for name in _PACKAGES:
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"{name} missing")
    system = f"Python {platform.python_version()}, {platform.platform()}"
    return ", ".join([f"vrgcn {__version__}", *packages, system])
