"""Two tables of a real graph to try things on: the modules of PyTorch Geometric and their imports.

They were read from version 2.8.1 (MIT license) by `examples/read_modules.py`. A module has the
number of its lines, functions and classes, whether it is documented, the other libraries that it
uses, and its part: the folder that it lies in, which is unknown for modules at the top.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from vrgcn.files.writing import write_text

TABLES = ("modules.csv", "imports.csv")
_HERE = Path(__file__).parent / "example_tables"


def write_example(folder: Path) -> tuple[Path, Path]:
    """Write both tables to a folder; return the paths of the modules and of the imports."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        write_text(folder / name, gzip.decompress((_HERE / f"{name}.gz").read_bytes()).decode())
    return folder / TABLES[0], folder / TABLES[1]
