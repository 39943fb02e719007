"""`record`: starts a process that has the right `vrgcn`, and keeps its texts."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SECTIONS = ("help", "names", "mistakes", "tables", "runs", "edges", "bits", "python")
ABOUT = "about.json"
TOOL = Path(__file__).resolve().parents[2]

# This tool is imported from its own checkout and `vrgcn` from the recorded one, which may have a
# folder `lab` too.
_START = """
import sys
sys.path.insert(0, sys.argv[1])
from lab.golden import worker
sys.path.remove(sys.argv[1])
worker.main(*sys.argv[1:])
"""


def record(folder: Path, code: Path | None, sections: Sequence[str]) -> None:
    """Run the sections with the `vrgcn` of a checkout, and write the record to a new folder.

    code: the checkout; None: the one of the `vrgcn` that is importable
    """
    code = _checkout(code)
    folder.mkdir(parents=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        places = (str(TOOL), str(code), str(folder.resolve()), str(Path(scratch).resolve()))
        done = subprocess.run(
            [sys.executable, "-P", "-c", _START, *places, *sections],
            env=_environment(code, Path(scratch)),
            cwd=scratch,
            check=False,
        )
    if done.returncode:
        raise ValueError(f"recording broke off; {folder} is not complete")
    used = os.times()
    about = {
        "commit": _git(code, "rev-parse", "HEAD"),
        "changed": _git(code, "status", "--porcelain", "--", "vrgcn").splitlines(),
        "sections": list(sections),
        "seconds": round(time.monotonic() - began),
        "cpu_seconds": round(used.children_user + used.children_system),
        **machine(),
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(f"{sum(path.is_file() for path in folder.rglob('*'))} files written to {folder}")


def machine() -> dict[str, str]:
    """Describe everything besides the code that bits depend on."""
    packages = ("torch", "numpy", "pyarrow", "scikit-learn", "optuna", "matplotlib")
    found = {name: version(name) for name in packages}
    return {"python": platform.python_version(), "processor": platform.machine(), **found}


def _checkout(code: Path | None) -> Path:
    if code is None:
        found = find_spec("vrgcn")
        if found is None or found.origin is None:
            raise ValueError("no `vrgcn` is importable: name a checkout, --code CHECKOUT")
        return Path(found.origin).resolve().parents[1]
    if not (code / "vrgcn" / "__init__.py").is_file():
        raise ValueError(f"--code: {code} is no checkout: it has no vrgcn/__init__.py")
    return code.resolve()


def _environment(code: Path, scratch: Path) -> dict[str, str]:
    """Return an environment with one thread, no terminal, no settings and no cache of this user,
    and pictures without a date."""
    style = scratch / "matplotlibrc"
    style.write_text("svg.hashsalt: golden\n", encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VRGCN_")}
    for name in ("FORCE_COLOR", "CUDA_VISIBLE_DEVICES", "PYTHONWARNINGS"):
        kept.pop(name, None)
    return kept | {
        "PYTHONPATH": str(code),
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "VRGCN_CACHE": str(scratch / "cache"),
        "MPLBACKEND": "agg",
        "MATPLOTLIBRC": str(style),
        "SOURCE_DATE_EPOCH": "0",
        "COLUMNS": "200",
        "TERM": "dumb",
        "NO_COLOR": "1",
    }


def _git(code: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(code), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else "unknown"
