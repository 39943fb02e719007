"""The folder of a run: the names of all files in it, its lock, and the progress of its run.

The lock is for one process at a time; that of a process that has died does not block others.

torch is imported only when a folder is searched for checkpoints, so that the command line can use
the names before.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from vrgcn.data.sources import META
from vrgcn.files.kinds import Kind, check_kinds, shown
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import read_toml
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.writing import explained, is_partial, make_folder, remove_folder, remove_partial
from vrgcn.inference import MODEL
from vrgcn.runs.config_file import setting_types
from vrgcn.runs.settings import CHOSEN_ESTIMATOR, NOTED, Settings

try:
    import fcntl
except ImportError:  # pragma: no cover - where there is no flock, folders are not locked
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)


class LockedError(OSError):
    """Raised when another process uses the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create the folder if needed and lock it for this process; raise at once if it is in use."""
    path = folder / LOCK
    with explained(path):
        make_folder(folder)
        descriptor = _acquire(path)
    try:
        with explained(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)  # while we still hold the lock
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 20, 0).decode(errors="replace")
            os.close(descriptor)
            raise LockedError(
                f"{path.parent} is in use by another process ({owner or 'which just began'}); wait "
                "for it, stop it, or write elsewhere"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:  # some file systems of clusters raise these
                os.close(descriptor)
                raise
        # The last owner may have removed the file between our two calls; then this lock guards
        # nothing.
        try:
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)


CONFIG = "config.toml"
METRICS = "metrics.jsonl"
RESULT = "result.json"
BETTER_MODEL = "model-before.safetensors"  # of a former training, where a resumed one ended worse
CHECKPOINTS = "checkpoints"
RACE = "race"  # checkpoints of candidates, until one of them has won
DIAGNOSIS = "diagnosis.html"
TENSORBOARD = "tensorboard"
TRACKING = ("tracking.json", "wandb")  # what trackers of runs leave
CARD = "README.md"
CARD_MARK = "<!-- Written by vrgcn. Without this line the file is yours, and stays as it is. -->"
GRAPH = "graph"  # for a run trained from Python on a graph in memory

# Names of runs inside the folder of several: of `vrgcn train --seeds`, and of `vrgcn tune`.
SEED = "seed-"
BEST = "best"
AVERAGED = "average"
BASELINES = "baselines"
TRIALS = "trials"
TRIAL = "trial-"
STUDY = "study.sqlite"
LEADERBOARD = "leaderboard.json"

# Files and folders that commands write into the folder of a run; the user's own files are not
# listed. The settings are left out because they are removed last.
OURS = (
    *(METRICS, RESULT, MODEL, BETTER_MODEL, CHECKPOINTS, RACE, DIAGNOSIS, TENSORBOARD),
    *(*TRACKING, GRAPH),
    *(f"{TRIALS}/{TRIAL}*", f"{STUDY}*", LEADERBOARD),
    *("evaluation-*.json", "evaluation-*.html"),
)

RATIO = Kind(
    lambda value: isinstance(value, list) and all(isinstance(v, int | float) for v in value),
    "a list of shares",
)


def settings_file(folder: Path) -> Path:
    """Return the file of a run's settings: those of its race until the winner has a checkpoint."""
    raced = folder / RACE / CONFIG
    return raced if raced.is_file() else folder / CONFIG


def read_config(folder: Path) -> dict[str, Any]:
    """Return the options that the run in a folder was started with."""
    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; name the folder of a run")
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no run folder {folder}")
    config = folder / CONFIG
    if not config.is_file():
        graph = f"; it is a graph, and `vrgcn train {folder}` makes a run of it"
        is_graph = (folder / META).is_file()
        raise FileNotFoundError(
            f"{folder} is not a run: it has no {CONFIG}{graph if is_graph else ''}"
        )
    options = read_toml(settings_file(folder))
    for name in (*_texts(), *NOTED):
        if not isinstance(options.get(name, ""), str):
            raise InputError(f"{config}: {name} must be a text, not {shown(options[name])}")
    if "ratio" in options:
        check_kinds(str(config), options, {"ratio": RATIO})
    return options


@cache
def _texts() -> list[str]:
    """Return the settings that are texts and paths."""
    return [n for n, hint in setting_types(Settings).items() if hint in (str | None, Path | None)]


def chosen_estimator(folder: Path | None) -> str | None:
    """Return the estimator that `auto` stood for when the run in a folder began; None if no folder
    is given or the run's settings name an estimator."""
    return None if folder is None else read_config(folder).get(CHOSEN_ESTIMATOR)


def member_runs(folder: Path) -> list[Path]:
    """Return the runs in a folder of several: the best one first, then seeds, then trials, by
    number; empty for the folder of a single run."""
    if (folder / METRICS).is_file():
        return []
    patterns = (BEST, f"{SEED}*", f"{TRIALS}/{TRIAL}*")
    by_pattern = [sorted(folder.glob(pattern), key=_by_number) for pattern in patterns]
    return [run for group in by_pattern for run in group if (run / METRICS).is_file()]


def _by_number(folder: Path) -> tuple[int, str]:
    number = folder.name.rpartition("-")[2]
    return (int(number) if number.isdecimal() else -1, folder.name)


def unfinished(folder: Path) -> str | None:
    """Return how far the training of an unfinished run came; None if it has finished."""
    if (folder / RESULT).is_file():
        return None
    config = read_config(folder)
    ended = sum((run / RESULT).is_file() for run in member_runs(folder))
    if "search" in config:
        return None if (folder / BEST / RESULT).is_file() else f"{ended} trials"
    seeds = config.get("seeds")
    if isinstance(seeds, int):
        return None if ended >= seeds else f"{ended} of {seeds} runs"
    metrics = folder / METRICS
    done = metrics.read_bytes().count(b"\n") if metrics.is_file() else 0
    epochs = config.get("epochs")
    return f"{done} of {epochs} epochs" if isinstance(epochs, int) else f"{done} epochs"


@contextmanager
def claimed(folder: Path, *, resume: bool, overwrite: bool = False) -> Iterator[Path]:
    """Create or open the folder of a run and lock it for this process. A new folder is removed
    again if training fails before there is anything worth keeping.

    resume: continue the existing run
    overwrite: remove the existing run
    """
    worth = True
    try:
        with locked(folder):
            for place in (folder, folder / TRIALS, folder / BASELINES):
                remove_partial(place)
            if not resume:
                check_free(folder, overwrite)
                clear(folder)
            try:
                yield folder
            except BaseException:
                worth = resume or resumable(folder) or (folder / MODEL).exists()
                if not worth:
                    with suppress(OSError):  # raise the error that ended training
                        clear(folder)
                raise
    finally:
        if not worth:
            with suppress(OSError):  # it contains the user's own files
                folder.rmdir()


def resumable(folder: Path) -> bool:
    """Return True if --resume can continue the folder: it has a checkpoint or, for several runs,
    one of them has finished an epoch or has a checkpoint of its first."""
    from vrgcn.runs.checkpoint import checkpoints_in

    homes = (folder, *folder.glob(f"{SEED}*"), *folder.glob(f"{TRIALS}/{TRIAL}*"))
    places = (*(home / CHECKPOINTS for home in homes), *(folder / RACE).glob("*"))
    any_checkpoint = any(map(checkpoints_in, places))
    fitted = any((folder / BASELINES).glob(f"*/{RESULT}"))
    return any_checkpoint or fitted or bool(member_runs(folder))


def check_free(folder: Path, overwrite: bool) -> None:
    """Raise if a folder is not empty, unless it holds a run that should be overwritten."""
    if holds_nothing(folder):
        return
    if not (folder / CONFIG).is_file():
        raise FileExistsError(f"{setting('out')}: {folder} exists already; choose another folder")
    if overwrite:
        return
    done = unfinished(folder)
    command, longer = "train", "epochs"
    if "search" in read_config(folder):
        command, longer = "tune", "time_limit"
    resume = setting("resume", True, typed=folder, command=command)
    if done is None:
        raise FileExistsError(
            f"{setting('out')}: {folder} exists already, and holds a run that has finished: "
            f"{setting('overwrite', True)} starts over, {resume} "
            f"{setting(longer, Placeholder('MORE'))} resumes it"
        )
    raise FileExistsError(
        f"{setting('out')}: {folder} exists already, and holds a run that has not finished "
        f"({done}): {resume} resumes it, {setting('overwrite', True)} "
        "starts over"
    )


def holds_nothing(folder: Path) -> bool:
    """Return True if a folder contains at most the lock and temporary files of a process that was
    killed at its start."""
    return all(path.name == LOCK or is_partial(path) for path in folder.iterdir())


def clear(folder: Path) -> None:
    """Remove the run in a folder, and no other files."""
    for pattern in (BEST, AVERAGED, f"{SEED}*", f"{BASELINES}/*"):
        for run in folder.glob(pattern):
            if _begun(run):
                remove_folder(run)
    for pattern in OURS:
        for path in folder.glob(pattern):
            # If it is a link, such as one to a larger disk, its target belongs to the user.
            folded = path.is_dir() and not path.is_symlink()
            remove_folder(path) if folded else path.unlink()
    remove_card(folder)
    for home in (TRIALS, BASELINES):
        with suppress(OSError):  # it contains the user's own files
            (folder / home).rmdir()
    # The options go last: they mark a partly cleared folder as a run's.
    (folder / CONFIG).unlink(missing_ok=True)


def remove_card(folder: Path) -> None:
    """Remove the card of a folder, unless the user wrote it."""
    if is_card(folder / CARD):
        (folder / CARD).unlink()


def is_card(file: Path) -> bool:
    """Return True if a file is a card that was written here, and not a file of the user's."""
    with suppress(OSError), open(file, "rb") as opened:
        return opened.read(len(CARD_MARK)) == CARD_MARK.encode()
    return False


def _begun(run: Path) -> bool:
    """Return True if a folder belongs to a run, even one that was killed before it wrote
    anything."""
    if not run.is_dir() or run.is_symlink():
        return False
    ours = any((run / name).is_file() for name in (CONFIG, METRICS))
    return ours or holds_nothing(run)
