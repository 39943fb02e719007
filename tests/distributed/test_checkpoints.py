"""Checkpoints of several processes: one of all, whole or not there, and what each process meets is
known to the others."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.distributed.problems import Case, graph_of, trainer_of, write
from tests.distributed.processes import in_processes
from vrgcn.distributed.checkpoints import _BITS, _DUE, PartCheckpoints
from vrgcn.distributed.config import DistributedConfig
from vrgcn.distributed.group import Group
from vrgcn.distributed.partitioning import write_parts
from vrgcn.distributed.parts import load_part
from vrgcn.distributed.trainer import PartTrainer
from vrgcn.engine.history import NEVER
from vrgcn.files.writing import DiskFullError
from vrgcn.runs.checkpoint import HISTORIES, checkpoints_in
from vrgcn.runs.interrupts import SIGNALS, Interrupted, StopRequest
from vrgcn.training.divergence import DivergedError
from vrgcn.training.listener import Callbacks

DEEP = Case("deep", "gcn", 3, "two-way", True, settings={"fanout": (0,)})
EACH_EPOCH = replace(DEEP, settings={"fanout": (0,), "checkpoint_every": "1"})
ROLLED = replace(DEEP, settings={"fanout": (0,), "on_nan": "rollback"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One graph in two, three and four parts."""
    graph = graph_of(directed=True)
    for name, parts in (("two", 2), ("three", 3), ("four", 4)):
        write(graph, tmp_path / name, parts)
    return tmp_path


def started(group: Group, parts: Path, case: Case = DEEP) -> tuple[PartTrainer, list[str]]:
    """A trainer, and what it notes from now on."""
    trainer, notes = trainer_of(group, parts, case), []
    trainer.listener = Callbacks(on_note=notes.append)
    return trainer, notes


def refusal(kept: PartCheckpoints) -> str:
    """Return the error that refuses to resume; empty if there is none."""
    try:
        kept.resume()
    except (ValueError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def advance(trainer: PartTrainer, steps: int) -> None:
    for _ in range(steps):
        assert trainer.advance()


def test_every_signal_that_is_noted_has_a_bit_of_its_own() -> None:
    assert set(_BITS.values()) == set(SIGNALS)
    assert _DUE not in _BITS


def one_is_asked(group: Group, folder: Path) -> list[tuple[int, str]]:
    """The signal by which each process stopped where only the second was asked, and its word."""
    found = []
    for number in SIGNALS:
        trainer, _ = started(group, folder / "two")
        stop = StopRequest()
        if group.rank == 1:
            stop.signal = number
        try:
            PartCheckpoints(trainer, folder / f"asked-{int(number)}").run(stop)
        except Interrupted as stopped:
            found.append((stopped.signal, str(stopped)))
    return found


def test_a_signal_to_any_process_stops_all_of_them(folder: Path) -> None:
    assert signal.SIGHUP in SIGNALS
    for found in in_processes(2, one_is_asked, folder):
        assert [number for number, _ in found] == list(SIGNALS)
        assert all("everything is kept in" in word for _, word in found)


def written(group: Group, parts: Path, checkpoints: Path, *steps: int) -> None:
    """Checkpoints of a run after so many steps each, ascending."""
    trainer, _ = started(group, parts)
    kept = PartCheckpoints(trainer, checkpoints)
    for step in steps:
        advance(trainer, step - trainer.minibatches.step)
        kept.write()


def left_course(group: Group, folder: Path) -> dict[str, Any]:
    """Go on in other parts, write a checkpoint, diverge, and go on once more."""
    trainer, _ = started(group, folder / "three", ROLLED)
    kept = PartCheckpoints(trainer, folder / "checkpoints")
    kept.resume()
    found: dict[str, Any] = {"moved": trainer.minibatches.step}
    advance(trainer, 2)
    kept.write()
    group.barrier()
    found["there"] = [path.name for path in checkpoints_in(folder / "checkpoints")]
    advance(trainer, 1)
    kept._roll_back(DivergedError("the loss became nan", ""))
    found["rolled back"] = trainer.minibatches.step
    trainer, found["notes"] = started(group, folder / "three", ROLLED)
    PartCheckpoints(trainer, folder / "checkpoints").resume()
    found["again"] = trainer.minibatches.step
    return found


def test_a_course_that_was_left_is_not_taken_up_again(folder: Path) -> None:
    in_processes(2, written, folder / "two", folder / "checkpoints", 3, 7)
    for found in in_processes(3, left_course, folder):
        assert found["moved"] == 4  # the epoch that was begun is begun again
        assert found["there"] == ["step-00000006", "step-00000003"]
        assert found["rolled back"] == found["again"] == 6
        assert not found["notes"]


def on_own_disks(group: Group, folder: Path) -> dict[str, Any]:
    """Write to a folder that is another one for each process, and resume from what only the first
    has."""
    mine = folder / f"disk-{group.rank}"
    trainer, _ = started(group, folder / "two")
    kept = PartCheckpoints(trainer, mine)
    advance(trainer, 3)
    found: dict[str, Any] = {}
    try:
        kept.write()
    except OSError as error:
        found["error"] = str(error)
    found["left"] = [path.name for path in mine.iterdir()]
    if group.first:
        shutil.copytree(folder / "checkpoints" / "step-00000003", mine / "step-00000003")
    group.barrier()
    found["refused"] = refusal(PartCheckpoints(started(group, folder / "two")[0], mine))
    return found


def test_a_folder_that_is_not_shared_is_refused(folder: Path) -> None:
    in_processes(2, written, folder / "two", folder / "checkpoints", 3)
    for rank, found in enumerate(in_processes(2, on_own_disks, folder)):
        told = "is not seen by all processes: rank 1 {}; the run's folder must be on a disk that "
        assert told.format("wrote elsewhere") in found["error"]
        assert told.format("found nothing there") in found["refused"]
        assert not found["left"], rank


def resumed(group: Group, parts: Path, checkpoints: Path) -> tuple[int, list[str], int, str]:
    """The step of a run that goes on, its notes, how many of its rows were never written, and what
    it was refused with."""
    trainer, notes = started(group, parts)
    refused = refusal(PartCheckpoints(trainer, checkpoints))
    tables = trainer.minibatches.histories.tables
    never = sum(int((t.written[: trainer.halo.own] == NEVER).sum()) for t in tables.values())
    return trainer.minibatches.step, notes, never, refused


def test_a_checkpoint_that_lost_a_part_is_damaged_and_not_another_partition(folder: Path) -> None:
    checkpoints = folder / "checkpoints"
    in_processes(2, written, folder / "two", checkpoints, 4, 7)
    shutil.rmtree(checkpoints / "step-00000007" / "part-00001")
    for parts, count in (("two", 2), ("three", 3)):
        for step, notes, never, _ in in_processes(count, resumed, folder / parts, checkpoints):
            assert (step, never) == (4, 0)
            told = next(note for note in notes if "step-00000007 is not whole" in note)
            assert ": its parts (1) have " in told
            assert told.endswith("of the graph's 72 nodes; step-00000004 is used in its place")
    shutil.rmtree(checkpoints / "step-00000004")
    for step, _, _, refused in in_processes(2, resumed, folder / "two", checkpoints):
        assert step == 0
        assert "has no checkpoint that is whole: " in refused


def test_a_damaged_part_that_is_nobodys_own_is_found(folder: Path) -> None:
    checkpoints = folder / "checkpoints"
    in_processes(4, written, folder / "four", checkpoints, 4, 7)
    file = checkpoints / "step-00000007" / "part-00003" / HISTORIES
    content = bytearray(file.read_bytes())
    content[-9] ^= 4
    file.write_bytes(content)
    for step, notes, never, _ in in_processes(2, resumed, folder / "two", checkpoints):
        assert (step, never) == (4, 0)
        told = next(note for note in notes if f"{HISTORIES} is damaged" in note)
        assert told.endswith("step-00000004 is used in its place")
        assert any("had 4 parts and resumes with 2" in note for note in notes)


def full_for_the_first(group: Group, folder: Path, what: str) -> dict[str, Any]:
    """Train on where only the first process finds no room for a new name in the folder.

    what: such as "step-" where a checkpoint takes its name, or "." where one is removed
    """
    checkpoints, rename = folder / f"full {what}", os.rename

    def no_room(old: str | Path, new: str | Path, **given: Any) -> None:
        if Path(new).parent == checkpoints and Path(new).name.startswith(what):
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(old, new, **given)

    trainer, notes = started(group, folder / "two", EACH_EPOCH)
    kept = PartCheckpoints(trainer, checkpoints)
    with pytest.MonkeyPatch.context() as patch:
        if group.first:
            (checkpoints / "step-00000001").mkdir(parents=True)  # it must be removed
            patch.setattr(os, "rename", no_room)
        result = kept.run(StopRequest())
        left = sorted(path.name for path in checkpoints.iterdir())
        strict = replace(EACH_EPOCH, settings=EACH_EPOCH.settings | {"on_full_disk": "stop"})
        stopping = PartCheckpoints(started(group, folder / "two", strict)[0], checkpoints)
        try:
            stopping.run(StopRequest())
        except DiskFullError as error:
            return {"epochs": len(result.curve), "notes": notes, "left": left, "error": str(error)}
    return {}


@pytest.mark.parametrize("what", ["step-", "."])
def test_a_full_disk_that_one_process_meets_is_known_to_all(folder: Path, what: str) -> None:
    for found in in_processes(2, full_for_the_first, folder, what):
        assert found["epochs"] == 2
        (note,) = found["notes"]
        assert "no checkpoint at step 4: " in note
        assert "is full, or your share of it" in note
        assert not [name for name in found["left"] if name.endswith(".partial")]
        assert "is full, or your share of it" in found["error"]


def scaled_otherwise(group: Group, folder: Path) -> list[str]:
    """Refusals of parts of the same graph that are scaled so, so too and otherwise."""
    kept = [of_scaled(group, folder / name) for name in ("row", "row again", "standard")]
    advance(kept[0].trainer, 1)
    kept[0].write()
    return [refusal(one) for one in kept]


def of_scaled(group: Group, parts: Path) -> PartCheckpoints:
    part = load_part(parts, group.rank)
    graph, _ = part.scaled("auto")
    trainer = PartTrainer(DEEP.build(), part, graph, DEEP.config(), DistributedConfig(), group)
    return PartCheckpoints(trainer, parts.parent / "checkpoints")


def test_parts_with_features_scaled_otherwise_are_of_another_run(tmp_path: Path) -> None:
    graph = graph_of(directed=True)
    for name, every in (("row", 1), ("row again", 2), ("standard", 1)):
        assignment = torch.arange(graph.num_nodes) // every % 2
        kind = name.split()[0]
        write_parts(graph, assignment, tmp_path / name, parts=2, scaling=kind)
    for refused in in_processes(2, scaled_otherwise, tmp_path):
        assert refused[0] == refused[1] == ""
        assert "belongs to another run" in refused[2]
        assert "scaling was 'row' and is 'standard'" in refused[2]
