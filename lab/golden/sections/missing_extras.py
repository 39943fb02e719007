"""Messages when the package of an extra is not installed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import partial

from lab.golden.processes import run_command
from lab.golden.public import public
from lab.golden.workspace import Workspace

# missing packages: the command line or Python code that is then tried
CASES = (
    ("optuna", "tune papers --trials 1 --out new"),
    ("matplotlib", "evaluate run"),
    ("matplotlib", "report run"),
    ("matplotlib", "diagnose run --passes 5"),
    ("matplotlib", "demo --epochs 1"),
    ("tensorboard", "train papers --log tensorboard --out new"),
    ("pymetis", "partition papers --parts 2 --method metis --out new"),
    ("pymetis", "reorder papers --method metis --out new"),
    ("sklearn", "import --nodes texts.csv --edges papers-edges.csv --column kind=text --out new"),
    ("ogb", "info ogbn-arxiv"),
)
PYTHON = (
    ("sklearn", "vrgcn.VRGCNClassifier()"),
    ("sklearn", "from vrgcn import *"),
    ("pandas", "vrgcn.Graph.from_pandas(None, None)"),
    ("networkx", "vrgcn.Graph.from_networkx(vrgcn)"),
    ("optuna", "vrgcn.tune(vrgcn.load_graph('papers'), trials=1)"),
    ("tensorboard", "vrgcn.TensorBoardLog('new')"),
)


def record(work: Workspace) -> None:
    """Record each case; forks forget `vrgcn` first, which has been imported with all extras."""
    for package, line in CASES:
        name = f"without {package}/{line}"
        work.function(name, _without(package, partial(run_command, shlex.split(line))))
    for package, code in PYTHON:
        name = f"without {package}/{code}"
        work.function(name, _without(package, partial(_python, code)))


def _without(package: str, function: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        for name in [name for name in sys.modules if name.split(".")[0] in ("vrgcn", package)]:
            del sys.modules[name]
        sys.modules[package] = None  # type: ignore[assignment]
        function()

    return run


def _python(code: str) -> None:
    exec(code, {"vrgcn": public()})
