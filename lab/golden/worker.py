"""The process that records: it imports everything once, and is forked for each command."""

from __future__ import annotations

import importlib
import sys
import time
import traceback
from pathlib import Path

from lab.golden.masks import Masks
from lab.golden.public import public
from lab.golden.sections import (
    bits,
    commands,
    edges,
    helps,
    mistakes,
    names,
    python_api,
    table_imports,
)
from lab.golden.workspace import Workspace

_RECORD = {
    "help": helps.record,
    "names": names.record,
    "mistakes": mistakes.record,
    "tables": table_imports.record,
    "runs": commands.record,
    "edges": edges.record,
    "bits": bits.record,
    "python": python_api.record,
}
FAILED = "FAILED"  # the text of a section that broke off
_WITHOUT_FORKS = {"help", "names"}
# Modules that commands import while they run; a fork finds them imported.
_PACKAGES = (
    *("torch", "torch_geometric.data", "pandas", "networkx", "pyarrow.parquet", "pyarrow.csv"),
    *("sklearn.feature_extraction.text", "sklearn.decomposition", "optuna", "scipy.sparse"),
    *("matplotlib.pyplot", "rich.console", "rich.progress", "pymetis"),
)


def main(tool: str, code: str, record: str, scratch: str, *sections: str) -> None:
    """Record the sections.

    tool: the checkout that this tool is in
    code: the checkout whose `vrgcn` is recorded
    record: the folder that takes the texts
    scratch: an empty folder to work in
    """
    for name in _PACKAGES if set(sections) - _WITHOUT_FORKS else ():
        importlib.import_module(name)
    masks = _prepared(tool, code, scratch)
    failed = False
    for section in sections:
        folder = Path(scratch) / section
        folder.mkdir()
        began = time.monotonic()
        work = Workspace(folder, Path(record) / section, Path(code), Path(tool), masks)
        try:
            _RECORD[section](work)
        except Exception:
            failed = True
            work.write(FAILED, traceback.format_exc())
            print(f"{section} broke off: {work.record / FAILED}.txt says why", file=sys.stderr)
        count = sum(path.is_file() for path in work.record.rglob("*"))
        print(f"{section}: {count} files, {time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(failed)


def _prepared(tool: str, code: str, scratch: str) -> Masks:
    """Import the public names; return the masks of this recording."""
    import torch

    vrgcn = public()
    if not Path(vrgcn.__file__).resolve().is_relative_to(code):
        raise RuntimeError(f"vrgcn is imported from {vrgcn.__file__}, not from {code}")
    for name in dir(vrgcn):
        getattr(vrgcn, name)
    torch.set_num_threads(1)
    return Masks(
        places={scratch: "<work>", code: "<code>", tool: "<tool>"},
        versions={
            f"vrgcn {vrgcn.__version__}": "vrgcn <version>",
            torch.__version__: "<torch>",
        },
    )
