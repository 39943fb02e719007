"""The folder that `vrgcn train` writes to: a new one, one started over, or one to resume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vrgcn.cli.run_options import RunOptions
from vrgcn.files.writing import explained, make_folder
from vrgcn.runs.folder import claimed


@contextmanager
def run_folder(options: RunOptions, estimator: str | None = None) -> Iterator[Path]:
    """Yield the folder of the run that the options stand for, locked for this process.

    estimator: the one that the run uses, for its name
    """
    folder = options.resume or _folder(options, estimator or options.train.estimator)
    resume = options.resume is not None
    with claimed(folder, resume=resume, overwrite=options.overwrite) as place:
        yield place


def _folder(options: RunOptions, estimator: str) -> Path:
    """Return the folder of that name, or a new one with a number if the name is taken."""
    if options.out is not None:
        if options.out.exists() and not options.out.is_dir():
            raise FileExistsError(f"--out: {options.out} exists already, and is not a folder")
        return options.out
    name = options.usual_name(estimator) if options.name is None else options.name
    folder, number = Path("runs") / name, 1
    if options.overwrite:
        return folder
    with explained(folder):
        make_folder(folder.parent)
    while True:
        try:
            with explained(folder):
                folder.mkdir()  # only one process succeeds
        except FileExistsError:
            number += 1
            folder = Path("runs") / f"{name}-{number}"
        else:
            return folder
