"""A checkpoint: the whole `TrainState` as a folder of safetensors and JSON, never pickled code.

    step-00000120/
        weights.safetensors      model, best weights, optimiser, states of generators
        histories.safetensors    the tables, and when each row was written
        state.json               position, progress, the optimiser's settings, the run's identity
        SHA256SUMS               of the three; `sha256sum -c SHA256SUMS` checks them too

A folder under its name is complete: it is written under a hidden name, flushed and renamed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vrgcn import __version__
from vrgcn.engine.batch import Position
from vrgcn.files.checksums import file_checksum
from vrgcn.files.kinds import POSITIVE, TEXT, Kind, check_kinds
from vrgcn.files.mistakes import InputError
from vrgcn.files.tensors import read_tensors, size_of, write_tensors
from vrgcn.files.writing import new_folder, remove_folder
from vrgcn.runs.identity import PARTS
from vrgcn.training.state import Epoch, Progress, TrainState

FORMAT, VERSION = "vrgcn-checkpoint", 1
WEIGHTS, HISTORIES, STATE = "weights.safetensors", "histories.safetensors", "state.json"
SUMS = "SHA256SUMS"
_NAME = re.compile(r"step-(\d{8,})")
_PARTS = Kind(
    lambda value: (
        isinstance(value, dict) and all(isinstance(value.get(part), dict) for part in PARTS)
    ),
    f"objects for {', '.join(PARTS)}",
)
_KINDS = {"identity": _PARTS, "threads": POSITIVE, "torch": TEXT}
# Errors of a bad disk or a broken copy; other errors, such as missing permissions, are raised as
# they are.
_UNREADABLE = (errno.ENOENT, errno.EIO, errno.ENOTDIR, errno.EISDIR, errno.ESTALE)


class DamagedCheckpointError(InputError):
    """Raised for a checkpoint that is incomplete or altered; the message names the file."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read.

    identity: see identity.py; threads, torch: number of threads and version of PyTorch of the run
        that wrote it, which affect bits
    """

    path: Path
    state: TrainState
    identity: dict[str, Any]
    threads: int
    torch: str


def save_checkpoint(folder: Path, state: TrainState, identity: dict[str, Any]) -> Path:
    """Write the state to `folder`/step-N, replacing an existing one; return its path."""
    path = folder / checkpoint_name(state)
    if path.exists():  # left by a run that was restored to an earlier step
        remove_folder(path)
    write_checkpoint(path, state, identity)
    return path


def checkpoint_name(state: TrainState) -> str:
    return f"step-{state.position.step:08d}"


def write_checkpoint(path: Path, state: TrainState, identity: dict[str, Any]) -> None:
    """Write the state to a new folder."""
    weights: dict[str, Tensor] = {}
    described = {
        "format": FORMAT,
        "version": VERSION,
        "vrgcn": __version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "identity": identity,
        "position": asdict(state.position),
        "progress": asdict(state.progress),
        "model": _pack(state.model, "model", weights),
        "best": _pack(state.best, "best", weights),
        "average": _pack(state.average, "average", weights),
        "optimizer": _pack(state.optimizer, "optimizer", weights),
        "schedule": _pack(state.schedule, "schedule", weights),
        "random": _pack(state.random, "random", weights),
        "histories": list(state.histories),  # in the order of means over all tables
    }
    text = json.dumps(described, indent=1).encode()
    size = size_of(weights) + size_of(state.histories) + len(text)
    with new_folder(path, size=size) as partial:
        sums = {
            WEIGHTS: _write(partial / WEIGHTS, weights),
            HISTORIES: _write(partial / HISTORIES, state.histories),
            STATE: _write(partial / STATE, text),
        }
        _write(partial / SUMS, _sums(sums).encode())


def load_checkpoint(path: Path) -> Checkpoint:
    """Load the checkpoint in a folder and check all of it; its histories are mapped, not read
    again."""
    check_sums(path)
    try:
        described = json.loads((path / STATE).read_bytes())
        if described["format"] != FORMAT or described["version"] != VERSION:
            raise InputError(
                f"it is {described['format']!r} of version {described['version']}, and this vrgcn "
                f"reads {FORMAT!r} of version {VERSION}"
            )
        weights, tables = read_tensors(path / WEIGHTS), read_tensors(path / HISTORIES)
        check_kinds(STATE, described, _KINDS)
        state = TrainState(
            model=_unpack(described["model"], weights),
            optimizer=_unpack(described["optimizer"], weights),
            schedule=_unpack(described.get("schedule", {"dict": []}), weights),
            best=_unpack(described["best"], weights),
            histories={name: tables[name] for name in described["histories"]},
            random=_unpack(described["random"], weights),
            position=Position(**described["position"]),
            progress=_progress(described["progress"]),
            average=_unpack(described.get("average"), weights),
        )
        return Checkpoint(
            path, state, described["identity"], described["threads"], described["torch"]
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedCheckpointError(
            f"{path} is not a checkpoint that can be read: {type(error).__name__}: {error}"
        ) from None


def check_sums(path: Path) -> None:
    """Raise if a file of a checkpoint is missing or altered."""
    with _readable(path / SUMS), open(path / SUMS, "rb") as file:
        noted = file.read(1000).splitlines(keepends=True)
    if len(noted) != 3:
        raise DamagedCheckpointError(f"{path / SUMS} does not name three files")
    for line, name in zip(noted, (WEIGHTS, HISTORIES, STATE), strict=True):
        with _readable(path / name):
            digest = file_checksum(path / name)
        if line != _sums({name: digest}).encode():
            raise DamagedCheckpointError(
                f"{path / name} is damaged: its checksum is not the one in {SUMS}"
            )


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn errors of missing or unreadable files into DamagedCheckpointError."""
    try:
        yield
    except OSError as error:
        if error.errno not in _UNREADABLE:
            raise
        why = "is missing" if error.errno == errno.ENOENT else f"cannot be read: {error.strerror}"
        raise DamagedCheckpointError(f"{file} {why}") from None


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, newest first."""
    checkpoints = [path for path in folder.glob("step-*") if _NAME.fullmatch(path.name)]
    return sorted(checkpoints, key=step_of, reverse=True)


def seconds_used(folder: Path) -> float:
    """Return the seconds that a run had used when its newest checkpoint was written; 0 without one
    that can be read."""
    for path in checkpoints_in(folder)[:1]:
        with suppress(OSError, ValueError, LookupError, TypeError):
            return float(json.loads((path / STATE).read_bytes())["progress"]["used"])
    return 0.0


def step_of(path: Path) -> int:
    """Return the step that a checkpoint is named after."""
    return int(path.name.removeprefix("step-"))


def newest_checkpoint(folder: Path, on_damage: Callable[[str], None]) -> Checkpoint | None:
    """Return the newest undamaged checkpoint; None if there is no checkpoint.

    on_damage: called with the error of each damaged checkpoint
    """
    names = [path.name for path in checkpoints_in(folder)]
    return first_whole(folder, names, load_checkpoint, on_damage)


def first_whole(
    folder: Path,
    names: Sequence[str],
    load: Callable[[Path], Checkpoint],
    on_damage: Callable[[str], None],
) -> Checkpoint | None:
    """Return the first of some checkpoints of a folder that is not damaged; None of none."""
    damaged = []
    for name in names:
        try:
            checkpoint = load(folder / name)
        except DamagedCheckpointError as error:
            damaged.append(str(error))
            continue
        for message in damaged:
            on_damage(f"{message}; {name} is used in its place")
        return checkpoint
    if damaged:
        raise DamagedCheckpointError(
            f"{folder} has no checkpoint that is whole: {'; '.join(damaged)}. Training can only "
            "start again from the beginning"
        )
    return None


def _write(path: Path, content: dict[str, Tensor] | bytes) -> str:
    """Write a file durably; return its SHA-256."""
    with open(path, "xb") as file:
        if isinstance(content, bytes):
            file.write(content)
            digest = hashlib.sha256(content).hexdigest()
        else:
            digest = write_tensors(file, content)
        file.flush()
        os.fsync(file.fileno())
    return digest


def _sums(sums: dict[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in sums.items())


def _pack(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Return a value for JSON, with its tensors collected under their names; `_unpack` reverses
    it."""
    if isinstance(value, Tensor):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, dict):  # optimisers use numbers as keys, which JSON does not have
        return {"dict": [[key, _pack(v, f"{name}.{key}", tensors)] for key, v in value.items()]}
    if isinstance(value, list | tuple):
        packed = [_pack(v, f"{name}.{place}", tensors) for place, v in enumerate(value)]
        return {type(value).__name__: packed}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{name} is a {type(value).__name__}, which a checkpoint cannot hold")


def _unpack(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inside),) = value.items()
    if kind == "tensor":
        return tensors[inside].clone()  # independent of the file, which may be removed or replaced
    if kind == "dict":
        return {key: _unpack(v, tensors) for key, v in inside}
    sequence: Iterator[Any] = (_unpack(v, tensors) for v in inside)
    return {"list": list, "tuple": tuple}[kind](sequence)


def _progress(values: dict[str, Any]) -> Progress:
    known = {field.name for field in fields(Progress)}
    best = values["best"]
    return Progress(
        **{k: v for k, v in values.items() if k in known - {"curve", "best"}},
        curve=[Epoch(**point) for point in values["curve"]],
        best=None if best is None else Epoch(**best),
    )
