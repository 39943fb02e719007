"""The folder that `vrgcn train` writes to: a new one, one begun again, or one to go on with."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vrgcn.cli.checks import check_free
from vrgcn.cli.config_file import flatten
from vrgcn.cli.options import RunOptions, TuneOptions
from vrgcn.files.writing import remove_partial
from vrgcn.inference import MODEL
from vrgcn.models.models import MODELS
from vrgcn.training.checkpoint import checkpoints_in
from vrgcn.training.identity import free_settings
from vrgcn.training.interval import duration
from vrgcn.training.lock import locked
from vrgcn.training.runs import (
    CHECKPOINTS,
    CONFIG,
    METRICS,
    RESULT,
    config_text,
    member_runs,
    read_config,
    unfinished,
)
from vrgcn.tuning.study import STUDY
from vrgcn.tuning.tuner import LEADERBOARD

# What commands write into the folder of a run, and nothing that a person may have put there.
OURS = (
    *(CONFIG, METRICS, RESULT, MODEL, CHECKPOINTS, "diagnosis.html"),
    *("tensorboard", "trials/trial-*", STUDY, LEADERBOARD),
    *("evaluation-*.json", "confusion-*.png", "predicted-*.png"),
)
_EXCHANGE = ("halo", "halo_every", "rank_timeout")  # when processes hear of each other
_PLACE = ("graph", "data_root")  # the same graph may lie elsewhere now: its fingerprint decides


def check_folder(options: RunOptions) -> None:
    """Refuse, before anything is read or written, what `run_folder` would refuse later."""
    if options.resume is not None:
        _check_resumed(options, options.resume)
    elif options.out is not None and options.out.is_dir():
        check_free(options.out, options.overwrite)


@contextmanager
def run_folder(options: RunOptions) -> Iterator[Path]:
    """The folder of the run, for this process alone. A new one is gone again if training fails
    before there is anything worth keeping."""
    folder = options.resume or _folder(options)
    worth = True
    try:
        with locked(folder):
            remove_partial(folder)
            if options.resume is None:
                check_free(folder, options.overwrite)
                _clear(folder)
            try:
                yield folder
            except BaseException:
                checkpoints = checkpoints_in(folder / CHECKPOINTS)
                worth = bool(options.resume or checkpoints or member_runs(folder))
                worth = worth or (folder / MODEL).exists()
                if not worth:
                    _clear(folder)
                raise
    finally:
        if not worth:
            with suppress(OSError):  # somebody's own files are in it
                folder.rmdir()


def found_again(options: RunOptions) -> dict[str, Any]:
    """The options that `--config` may repeat the run by, its paths holding from any folder."""
    left_out = ("config", "name", "out", "resume", "overwrite")
    kept = {k: v for k, v in flatten(options).items() if k not in left_out}
    paths = {name: kept[name] for name in _PLACE if kept[name] is not None}
    return kept | {name: path.resolve() for name, path in paths.items()}


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
    folder.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            folder.mkdir(parents=True)  # only one process can
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
    for run in member_runs(folder):
        shutil.rmtree(run)
    for pattern in OURS:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def nothing_left(options: RunOptions) -> bool:
    """Whether a run that shall go on has finished, and not been asked for more. What a process that
    was killed at its very end left is removed."""
    folder = options.resume
    if folder is None or unfinished(folder) is not None:
        return False
    before, now = read_config(folder), _as_written(options)
    for name in ("epochs", "patience", "time_limit", "seeds", "trials"):
        if name in before and _length(now.get(name)) > _length(before[name]):
            return False
    with locked(folder):
        remove_partial(folder)
    return True


def _length(value: Any) -> float:
    """Of epochs, or of a time; without a limit it is infinite."""
    if value is None:
        return float("inf")
    return (duration(value) or 0.0) if isinstance(value, str) else value


def _check_resumed(options: RunOptions, folder: Path) -> None:
    """Refuse what makes it another run."""
    if options.out is not None or options.name is not None or options.overwrite:
        raise ValueError("--resume goes on in the run's own folder: no --out, --name, --overwrite")
    # An option that is not in the file was None, or did not exist yet: at its default.
    before, now = _as_written(type(options)()) | read_config(folder), _as_written(options)
    changeable: tuple[str, ...] = (
        *(*_PLACE, *_EXCHANGE, "verify", "log"),
        *("trials", "time_limit", "threads"),
    )
    if not isinstance(options, TuneOptions):  # whose trials would not compare
        changeable += free_settings(now["schedule"])
    if before.get("seeds") and now.get("seeds"):
        changeable += ("seeds",)
    changed = [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if name not in changeable and before.get(name) != now.get(name)
    ]
    if changed:
        raise ValueError(
            f"--resume: {folder} cannot go on with other options: {'; '.join(changed)}"
        )


def _as_written(options: RunOptions) -> dict[str, Any]:
    return tomllib.loads(config_text(found_again(options)))
