"""The folder that `vrgcn train` writes to: a new one, one begun again, or one to go on with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vrgcn.cli.run_options import RunOptions
from vrgcn.files.writing import explained, make_folder
from vrgcn.runs.folder import claimed


@contextmanager
def run_folder(options: RunOptions, estimator: str | None = None) -> Iterator[Path]:
    """The folder of the run that the options stand for, for this process alone.

    estimator: the one that the run uses, for its name
    """
    folder = options.resume or _folder(options, estimator or options.train.estimator)
    resume = options.resume is not None
    with claimed(folder, resume=resume, overwrite=options.overwrite) as place:
        yield place


def _folder(options: RunOptions, estimator: str) -> Path:
    """By its name, or a new one beside those that have the name already."""
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
                folder.mkdir()  # only one process can
        except FileExistsError:
            number += 1
            folder = Path("runs") / f"{name}-{number}"
        else:
            return folder
