"""`vrgcn datasets`: lists the named data sets. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from vrgcn.cli.command import Options
from vrgcn.cli.shared_flags import DataRoot
from vrgcn.data import DATASETS, OGB, Dataset, Size, root_folder
from vrgcn.files.wording import printable


@dataclass(frozen=True)
class DatasetsOptions(Options):
    """Flags of `vrgcn datasets`."""

    data_root: DataRoot = None

    only_prints: ClassVar[bool] = True


def run(options: DatasetsOptions) -> None:
    """Print the table, then a description of each data set."""
    from rich.table import Table

    from vrgcn.pages.terminal import print_table

    root = root_folder(options.data_root)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)  # fits into 80 columns
    table.add_column("name", no_wrap=True)
    for heading in ("nodes", "entries", "features", "classes"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("from", no_wrap=True)
    table.add_column("here", no_wrap=True)
    for name, dataset in DATASETS.items():
        table.add_row(name, *dataset.size, dataset.source, _here(dataset, root))
    installed = "by ogb" if find_spec("ogb") else "needs ogb"
    table.add_row(f"{OGB}*", *Size("", "", "", ""), "OGB", installed)
    print_table(table)
    print()
    for name, dataset in DATASETS.items():
        print(f"{name:<18} {dataset.description}")
    print()
    print(
        "Entries are those of the adjacency matrix: an undirected edge is two.\n"
        f"Raw files are looked for in {printable(root)} and are downloaded to it on first use; "
        "--data-root or VRGCN_DATA name another folder."
    )


def _here(dataset: Dataset, root: Path) -> str:
    """Return True if the raw files are on this machine."""
    if dataset.raw is None:
        return "generated"
    folder = dataset.raw.folder(root)
    if not dataset.raw.present(folder):
        return "no"
    return "yes" if dataset.raw.note(folder) is None else "rebuilt"
