"""The folder that `vrgcn train` writes to: a new one, one begun again, or one to go on with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vrgcn.cli.checks import check_free, holds_nothing
from vrgcn.cli.options import RunOptions, TuneOptions
from vrgcn.files.writing import explained, make_folder, remove_folder, remove_partial
from vrgcn.inference import MODEL
from vrgcn.models.models import MODELS
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.folder import (
    BEST,
    CHECKPOINTS,
    CONFIG,
    METRICS,
    RESULT,
    SEED,
    TRIAL,
    TRIALS,
    member_runs,
)
from vrgcn.runs.lock import locked
from vrgcn.tuning.study import STUDY
from vrgcn.tuning.tuner import LEADERBOARD

# What commands write into the folder of a run, and nothing that a person may have put there.
OURS = (
    *(METRICS, RESULT, MODEL, CHECKPOINTS, "diagnosis.html"),
    *("tensorboard", "trials/trial-*", STUDY, LEADERBOARD),
    *("evaluation-*.json", "confusion-*.png", "predicted-*.png"),
)


@contextmanager
def run_folder(options: RunOptions) -> Iterator[Path]:
    """The folder of the run, for this process alone. A new one is gone again if training fails
    before there is anything worth keeping."""
    folder = options.resume or _folder(options)
    worth = True
    try:
        with locked(folder):
            for place in (folder, folder / TRIALS):
                remove_partial(place)
            if options.resume is None:
                check_free(folder, options.overwrite)
                _clear(folder)
            try:
                yield folder
            except BaseException:
                worth = bool(options.resume) or goes_on(folder) or (folder / MODEL).exists()
                if not worth:
                    with suppress(OSError):  # what made training fail is what is told
                        _clear(folder)
                raise
    finally:
        if not worth:
            with suppress(OSError):  # somebody's own files are in it
                folder.rmdir()


def goes_on(folder: Path) -> bool:
    """Whether a folder holds what --resume goes on with: a checkpoint or, of several runs, one that
    has ended an epoch or has a checkpoint of its first."""
    homes = (folder, *folder.glob(f"{SEED}*"), *folder.glob(f"{TRIALS}/{TRIAL}*"))
    found = any(checkpoints_in(home / CHECKPOINTS) for home in homes)
    return found or bool(member_runs(folder))


def _folder(options: RunOptions) -> Path:
    """By its name, or a new one beside those that have the name already."""
    if options.out is not None:
        if options.out.exists() and not options.out.is_dir():
            raise FileExistsError(f"--out: {options.out} exists already, and is not a folder")
        return options.out
    name = options.name
    if name is None:
        graph = options.dataset or (options.graph.name if options.graph else "")
        name = f"{graph}-{options.model.model}"
        if isinstance(options, TuneOptions):
            name = f"{graph}-tuned"
        elif looks_at_neighbours(options):
            name += f"-{options.train.estimator.replace('/', '-')}"
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


def looks_at_neighbours(options: RunOptions) -> bool:
    """Whether P is more than I, which it is of an MLP: else no estimator has a part in training."""
    meant = MODELS[options.model.model].propagation
    return (options.train.propagation or meant) != "identity"


def _clear(folder: Path) -> None:
    for pattern in (BEST, f"{SEED}*"):
        for run in folder.glob(pattern):
            if _begun(run):
                remove_folder(run)
    for pattern in OURS:
        for path in folder.glob(pattern):
            # Of a link, such as one to a larger disk, what it leads to is somebody's own.
            folded = path.is_dir() and not path.is_symlink()
            remove_folder(path) if folded else path.unlink()
    with suppress(OSError):  # somebody's own files are in it
        (folder / TRIALS).rmdir()
    # Last: by its options a folder that was cleared in part is known to be a run's.
    (folder / CONFIG).unlink(missing_ok=True)


def _begun(run: Path) -> bool:
    """Whether a folder is that of a run, be it one that was killed before it wrote anything."""
    if not run.is_dir() or run.is_symlink():
        return False
    ours = any((run / name).is_file() for name in (CONFIG, METRICS))
    return ours or holds_nothing(run)
