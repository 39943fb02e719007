"""Node classification graphs of the Open Graph Benchmark, read by the package `ogb`.

The package pickles what it made of the raw files beside them, and unpickles that the next time, as
it does a split that comes as `split_dict.pt`; a pickle can call anything. So where the files are
there already it works in a folder of links that has the raw files alone, which are tables and
arrays, looked at first.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from vrgcn.data.named import cause, download_timeout
from vrgcn.data.raw_files import check_raw_files
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph

_PICKLES = (".pt", ".pth", ".pkl", ".pickle")
_MADE = "processed"  # by the package, from the rest


def ogb(name: str, folder: Path) -> Graph:
    """A graph with its split; edges as directed as OGB has them."""
    try:
        from ogb.nodeproppred import PygNodePropPredDataset
    except ImportError:
        raise InputError(f"{name} is read by the package ogb: pip install ogb") from None
    home = folder / name.replace("-", "_")
    with tempfile.TemporaryDirectory(prefix="vrgcn-") as scratch:
        root = folder
        if home.is_dir():
            check_ogb_files(home)
            root = Path(scratch)
            _link(home, root / home.name)
        try:
            with download_timeout():
                dataset = PygNodePropPredDataset(name, root=str(root))
                data, split = dataset[0], dataset.get_idx_split()
        except Exception as error:
            raise InputError(
                f"ogb could not load {name} ({cause(error)}). Without a network: unpack the "
                f"archive of {name} from https://ogb.stanford.edu as {home}"
            ) from error
    for ours, theirs in (("train", "train"), ("val", "valid"), ("test", "test")):
        mask = torch.zeros(data.num_nodes, dtype=torch.bool)
        mask[split[theirs]] = True
        data[f"{ours}_mask"] = mask
    return Graph.from_pyg(data)


def check_ogb_files(home: Path) -> None:
    """Refuse raw files that would call something, or that claim more than they have."""
    for file in sorted(path for path in home.rglob("*") if path.is_file()):
        if _MADE in file.relative_to(home).parts[:1]:
            continue
        if file.suffix in _PICKLES:
            raise InputError(
                f"{file} is a pickle, which ogb would execute: unpack an archive whose split is a "
                "table (split/*/train.csv.gz), or remove the file"
            )
        check_raw_files(file.parent, [file.name])


def _link(home: Path, target: Path) -> None:
    target.mkdir()
    for part in home.iterdir():
        if part.name != _MADE:
            (target / part.name).symlink_to(part.resolve())
