"""Public data sets: where their raw files lie, and reading them with `torch_geometric.datasets`.

PyG turns raw files into `Data` and pickles that beside them. Here the raw files may lie in a folder
that cannot be written to, and the pickle is of no further use: PyG works in a temporary folder, and
`load_dataset` keeps the Graph in its cache. PyG's import takes seconds; it waits for the first use.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import socket
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.writing import new_file

if TYPE_CHECKING:
    from vrgcn.graph.graph import Graph

DOWNLOAD_SECONDS = 30  # without an answer, before a download is given up

# Warnings of Python and PyTorch about PyG and the old pickles of its raw files; users cannot fix
# them.
_HARMLESS = (
    r"`torch\.jit",
    "Sparse CSR tensor support is in beta",
    "Sparse invariant checks are implicitly disabled",
    r".*scipy\.sparse",
    r".*dtype\(\): align",
)


class Raw(NamedTuple):
    """The raw files of a data set.

    folders: below the data root, where they may lie; they are downloaded to the first
    files: their names, as published; all are needed
    url: where they come from
    substitute: files that serve in place of `files` where those are not there
    substitute_note: what people must know about the substitute
    beside: files that are used if they lie in the folder or the one above
    """

    folders: tuple[str, ...]
    files: tuple[str, ...]
    url: str
    substitute: tuple[str, ...] = ()
    substitute_note: str | None = None
    beside: tuple[str, ...] = ()

    def folder(self, root: Path) -> Path:
        """Return the folder of the files, or the folder where they belong if they are missing."""
        for files in filter(None, (self.files, self.substitute)):
            for folder in self.folders:
                if not _missing(root / folder, files):
                    return root / folder
        return root / self.folders[0]

    def present(self, folder: Path) -> tuple[str, ...]:
        """The files that the data set is read from: the published, the substitute, or none."""
        for files in (self.files, self.substitute):
            if not _missing(folder, files):
                return files
        return ()

    def note(self, folder: Path) -> str | None:
        """Return a note on the files in this folder, if there is one."""
        files = self.present(folder)
        return self.substitute_note if files and files == self.substitute else None

    def fingerprint(self, folder: Path) -> str:
        """A name for the files as they are now, from paths, sizes and times; "" if not there."""
        files = [folder / name for name in self.present(folder)]
        if not files:
            return ""
        files += [path for name in self.beside if (path := beside(folder, name)) is not None]
        state = [(str(file.resolve()), *_size_and_time(file)) for file in files]
        return hashlib.sha256(repr(state).encode()).hexdigest()[:12]


def beside(folder: Path, name: str) -> Path | None:
    """An optional file that lies with the raw files or in the folder above."""
    return next((path for f in (folder, folder.parent) if (path := f / name).is_file()), None)


def missing_files(name: str, folder: Path, cause: object) -> FileNotFoundError:
    """The error that says which files to put where."""
    from vrgcn.data import DATASETS

    raw = DATASETS[name].raw
    assert raw is not None
    wanted = "".join(f"\n  {folder / file}" for file in raw.files)
    return FileNotFoundError(
        f"the raw files of {name} are not there and cannot be downloaded ({cause}). "
        f"Get them from {raw.url} and put them here, or say with {setting('data_root')} where they "
        f"are:{wanted}"
    )


def planetoid(name: str, folder: Path) -> Graph:
    """Cora, CiteSeer or PubMed with the public split. Duplicate edges and self-loops are out."""
    from vrgcn.graph.graph import Graph

    with pyg(name.lower(), folder) as (datasets, place):
        data = place(datasets.Planetoid)(name=name)[0]
    return Graph.from_pyg(data)


def reddit(kind: str, folder: Path) -> Graph:
    """`Reddit` or `Reddit2`, as PyG calls them."""
    from vrgcn.graph.graph import Graph

    with pyg(kind.lower(), folder) as (datasets, place):
        data = place(getattr(datasets, kind))()[0]
    return Graph.from_pyg(data)


def ppi(folder: Path) -> Graph:
    """PPI's 24 graphs side by side as one, split by graph."""
    import torch

    from vrgcn.graph.graph import Graph

    with pyg("ppi", folder) as (datasets, place):
        graphs = {s: list(place(datasets.PPI)(split=s)) for s in ("train", "val", "test")}
    edges, splits, start = [], {}, 0
    for split, members in graphs.items():
        first = start
        for data in members:
            edges.append(data.edge_index + start)
            start += data.num_nodes
        splits[split] = torch.arange(first, start)
    everything = [data for members in graphs.values() for data in members]
    return Graph(
        torch.cat(edges, dim=1),
        torch.cat([data.x for data in everything]),
        torch.cat([data.y for data in everything]),
        train=splits["train"],
        val=splits["val"],
        test=splits["test"],
    )


@contextmanager
def pyg(name: str, folder: Path) -> Iterator[tuple[Any, Callable[[Any], Callable[..., Any]]]]:
    """`torch_geometric.datasets`, and a function that ties one of its classes to `folder`.

    Raw files that are not there are downloaded by PyG, and moved to `folder` when they are whole.
    """
    from vrgcn.data import DATASETS
    from vrgcn.data.raw_files import check_raw_files

    raw = DATASETS[name].raw
    assert raw is not None
    missing = _missing(folder, raw.files)
    with tempfile.TemporaryDirectory(prefix="vrgcn-") as scratch, warnings.catch_warnings():
        for message in _HARMLESS:
            warnings.filterwarnings("ignore", message)
        source = Path(scratch) / "raw" if missing else folder

        def place(kind: Any) -> Callable[..., Any]:
            def process(self: Any) -> None:
                check_raw_files(source, raw.files)  # downloaded or not, before PyG reads them
                kind.process(self)

            folders = {"raw_dir": str(source), "processed_dir": str(Path(scratch) / "processed")}
            moved = type(kind.__name__, (kind,), folders | {"process": process})
            return lambda **arguments: moved(root=scratch, **arguments)

        try:
            # "Downloading ..." is worth reading, "Processing..." and "Done!" are not.
            with nullcontext() if missing else redirect_stderr(io.StringIO()), download_timeout():
                from torch_geometric import datasets

                yield datasets, place
        except Exception as error:
            if _missing(source, raw.files):
                raise missing_files(name, folder, cause(error)) from error
            raise _unreadable(name, folder, error) from error
        for file in missing:
            _move(source / file, folder)


@contextmanager
def raw_files_read(name: str, folder: Path, files: tuple[str, ...]) -> Iterator[None]:
    """Check raw files that we read ourselves first, and name them in errors inside this context."""
    from vrgcn.data.raw_files import check_raw_files

    try:
        check_raw_files(folder, files)
        yield
    except (
        *(ValueError, LookupError, TypeError, AttributeError, StopIteration),
        OverflowError,  # a number that no array holds
    ) as error:
        raise _unreadable(name, folder, error) from error


def _unreadable(name: str, folder: Path, error: BaseException) -> InputError:
    from vrgcn.data import DATASETS

    raw = DATASETS[name].raw
    assert raw is not None
    return InputError(
        f"the raw files of {name} in {folder} cannot be read ({cause(error)}); are they whole, and "
        f"those of {raw.url}?"
    )


def _missing(folder: Path, files: tuple[str, ...]) -> list[str]:
    return [file for file in files if not (folder / file).is_file()]


def _size_and_time(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_size, state.st_mtime_ns


def cause(error: BaseException) -> str:
    """Format an exception as its type and message, for an error of ours."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _move(file: Path, folder: Path) -> None:
    """Across file systems too, and never half a file under its name."""
    with open(file, "rb") as source, new_file(folder / file.name) as target:
        shutil.copyfileobj(source, target)
    file.unlink()


@contextmanager
def download_timeout() -> Iterator[None]:
    """Wait at most half a minute for a server that does not answer, inside this context."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
