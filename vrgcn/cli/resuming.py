"""Going on with a run: the options that it was started with, and which of them may change.

No torch here: whoever asks for another run is told so at once.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from vrgcn.cli.config_file import flatten
from vrgcn.cli.options import RunOptions, TuneOptions
from vrgcn.files.writing import remove_partial
from vrgcn.runs.folder import (
    GRAPH_CHECKSUM,
    config_text,
    graph_checksum,
    member_runs,
    read_config,
    unfinished,
)
from vrgcn.runs.lock import locked
from vrgcn.training.config import free_settings
from vrgcn.training.interval import duration

_EXCHANGE = ("halo", "halo_every", "rank_timeout")  # when processes hear of each other
_PLACE = ("graph", "data_root")  # the same graph may lie elsewhere now: its fingerprint decides


def check_resumed(options: RunOptions, folder: Path) -> None:
    """Refuse what makes it another run."""
    if options.out is not None or options.name is not None or options.overwrite:
        raise ValueError("--resume goes on in the run's own folder: no --out, --name, --overwrite")
    # An option that is not in the file was None, or did not exist yet: at its default.
    before, now = _as_written(type(options)()) | read_config(folder), _as_written(options)
    changeable: tuple[str, ...] = (
        *(*_PLACE, GRAPH_CHECKSUM, *_EXCHANGE, "verify", "log"),
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


def nothing_left(options: RunOptions) -> bool:
    """Whether a run that shall go on has finished, and not been asked for more. What a process that
    was killed at its very end left is removed."""
    folder = options.resume
    if folder is None or unfinished(folder) is not None:
        return False
    runs, now = (folder, *member_runs(folder)), _as_written(options)
    # Of several runs each by itself: those that were to be made longer may not have been begun yet.
    for before in map(read_config, runs):
        for name in ("epochs", "patience", "time_limit", "seeds", "trials"):
            if name in before and _length(now.get(name)) > _length(before[name]):
                return False
    for run in runs:
        with locked(run):
            remove_partial(run)
    return True


def _length(value: Any) -> float:
    """Of epochs, or of a time; without a limit it is infinite."""
    if value is None:
        return float("inf")
    return (duration(value) or 0.0) if isinstance(value, str) else value


def found_again(options: RunOptions) -> dict[str, Any]:
    """The options that `--config` may repeat the run by, its paths holding from any folder."""
    left_out = ("config", "name", "out", "resume", "overwrite")
    kept = {k: v for k, v in flatten(options).items() if k not in left_out}
    paths = {name: kept[name] for name in _PLACE if kept[name] is not None}
    return kept | {name: path.resolve() for name, path in paths.items()}


def described(options: RunOptions) -> dict[str, Any]:
    """What config.toml of a run says: its options, and where it drew a split, by what the graph is
    known again once it was moved."""
    told = found_again(options)
    if options.ratio is not None and options.graph is not None:
        told[GRAPH_CHECKSUM] = graph_checksum(options.graph)
    return told


def _as_written(options: RunOptions) -> dict[str, Any]:
    return tomllib.loads(config_text(found_again(options)))
