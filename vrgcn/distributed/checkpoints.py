"""Checkpoints of several processes as one: under its name a checkpoint is complete, or absent.

    step-00000120/
        part-00000/    a checkpoint of one process, with the histories of its nodes
        part-00001/

All processes write to one folder that all of them see; a folder that some do not see is refused,
and so is a checkpoint with missing parts. A run that resumes with as many processes continues to
the same bits. With another number of processes, on another partition of the same graph, weights,
optimiser and curve are kept, rows of histories move to their nodes' new places, and the epoch in
progress starts again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from vrgcn.distributed.histories import NUMBERS
from vrgcn.distributed.parts import part_folder
from vrgcn.distributed.trainer import PartTrainer
from vrgcn.engine.batch import Position
from vrgcn.engine.history import NEVER
from vrgcn.files.writing import (
    DiskFullError,
    explained,
    flush_folder,
    partial_name,
    remove_folder,
)
from vrgcn.graph.scaling import Scaling
from vrgcn.runs.checkpoint import (
    Checkpoint,
    DamagedCheckpointError,
    checkpoint_name,
    checkpoints_in,
    first_whole,
    load_checkpoint,
    write_checkpoint,
)
from vrgcn.runs.checkpointing import Checkpoints
from vrgcn.runs.identity import identity
from vrgcn.runs.interrupts import SIGNALS, StopRequest
from vrgcn.training.result import TrainResult
from vrgcn.training.state import TrainState

_T = TypeVar("_T")
_NO_NUMBERS = torch.empty(0, dtype=torch.int64)

# Bits for the requests of processes in each step: one for every signal, so that none is lost.
_BITS = {1 << place: number for place, number in enumerate(SIGNALS)}
_DUE = 1 << len(SIGNALS)


class PartCheckpoints(Checkpoints):
    """Checkpoints of one of several processes.

    trainer: of this process; all processes create one of these at the same time
    """

    trainer: PartTrainer

    def __init__(self, trainer: PartTrainer, folder: Path) -> None:
        self.group = trainer.group
        super().__init__(trainer, folder)
        self.group.barrier()

    def _finish(self, stop: StopRequest) -> TrainResult:
        """Return the result. All processes score together, and none leaves the others alone."""
        return self.trainer.finish()

    def _ask(self, stop: StopRequest) -> None:
        bits = sum(bit for bit, number in _BITS.items() if number == stop.signal)
        if self.group.first and super()._time_has_come():
            bits |= _DUE
        self.trainer.wish(bits)

    def _asked(self, stop: StopRequest) -> int | None:
        """Return the signal, the same in all processes, that one of them received before the
        step."""
        return next((n for bit, n in _BITS.items() if self.trainer.agreed & bit), None)

    def _time_has_come(self) -> bool:
        """Decide by the first process's clock, which is sent to all processes with the step."""
        return bool(self.trainer.agreed & _DUE)

    def _spoilt(self, state: TrainState) -> str | None:
        own = super()._spoilt(state)
        (everywhere,) = self.group.total(0.0 if own is None else 1.0)
        return own or ("a weight or table of another process" if everywhere else None)

    def _identify(self) -> dict[str, Any]:
        identified = identity(self.trainer, graph=self.trainer.part.description["graph"])
        # Each part has different rows of one matrix.
        setup = self.trainer.minibatches.setup
        identified["run"]["propagation"] = str(setup.rule)
        # The graph's fingerprint is that of the unscaled features.
        identified["run"]["scaling"] = (self.trainer.graph.scaling or Scaling()).kind
        return identified

    def _save(self, state: TrainState, identity: dict[str, Any]) -> Path:
        path = self.folder / checkpoint_name(state)
        partial = self.folder / self.group.broadcast(partial_name(path).name)

        def write() -> None:
            partial.mkdir(parents=True, exist_ok=True)
            write_checkpoint(part_folder(partial, self.group.rank), state, identity)

        error = self._together(path, write)
        if error is None:
            error = self._by_first(path, lambda: self._take_name(partial, path))
        if error is not None:  # no process writes there any more
            shutil.rmtree(partial, ignore_errors=True)
            raise error
        return path

    def _remove_others(self) -> None:
        error = self._by_first(self.folder, super()._remove_others)
        if error is not None:
            raise error

    def _by_first(self, path: Path, act: Callable[[], None]) -> OSError | None:
        """Let the first process work on files while the others wait; return its error in all
        processes."""
        return self._together(path, act if self.group.first else lambda: None)

    def _together(self, path: Path, act: Callable[[], None]) -> OSError | None:
        """Call `act` in all processes and return the same error in each if one of them failed:
        otherwise that one would continue, or end, while the others wait for it. act: works on files
        only and does not communicate"""
        mine: tuple[str, bool] | None = None
        try:
            with explained(path):
                act()
        except OSError as error:
            mine = str(error), isinstance(error, DiskFullError)
        failures = [failure for failure in self.group.everybody(mine) if failure is not None]
        if not failures:
            return None
        text, full = failures[0]
        return DiskFullError(text) if full else OSError(text)

    def _take_name(self, partial: Path, path: Path) -> None:
        # Each by its name: a listing of a network folder may be outdated.
        ranks = range(self.group.size)
        elsewhere = [rank for rank in ranks if not part_folder(partial, rank).is_dir()]
        if elsewhere:
            raise _unseen(path, elsewhere, "wrote elsewhere")
        if path.exists():  # left by a run that was restored to an earlier step
            remove_folder(path)
        flush_folder(partial)
        os.rename(partial, path)
        flush_folder(path.parent)

    def _newest(self) -> Checkpoint | None:
        """Return the newest undamaged checkpoint. The first process lists them, and all processes
        check one after the other together."""
        names = self.group.broadcast([path.name for path in checkpoints_in(self.folder)])
        self._check_seen(names)
        return first_whole(self.folder, names, self._read, self.on_note)

    def _check_seen(self, names: list[str]) -> None:
        """Raise if some processes do not see the folder, because they would start from the
        beginning."""
        seen = self.group.everybody(any((self.folder / name).exists() for name in names))
        blind = [rank for rank, sees in enumerate(seen) if names and not sees]
        if blind:
            raise _unseen(self.folder / names[0], blind, "found nothing there")

    def _read(self, path: Path) -> Checkpoint:
        """Read a checkpoint: each process its own part or, for another partition, all processes all
        parts. A checkpoint that is damaged for one process counts as damaged for all."""
        mine = self._agreed(lambda: self._own_part(path))
        if all(self.group.everybody(mine is not None)):
            assert mine is not None
            return mine
        parts = self._agreed(lambda: _all_parts(path))
        return replace(parts[0], path=path, state=self._moved(parts))

    def _agreed(self, read: Callable[[], _T]) -> _T:
        results: list[_T] = []
        mine: str | None = None
        try:
            results.append(read())
        except DamagedCheckpointError as error:
            mine = str(error)
        told = dict.fromkeys(message for message in self.group.everybody(mine) if message)
        if told:
            raise DamagedCheckpointError("; ".join(told))
        return results[0]

    def _own_part(self, path: Path) -> Checkpoint | None:
        """Return the part of this process; None if its histories do not belong to exactly our
        nodes."""
        if len(_parts_of(path)) != self.group.size:
            return None
        loaded = load_checkpoint(part_folder(path, self.group.rank))
        numbers, part = loaded.state.histories.get(NUMBERS), self.trainer.part
        if numbers is None or not torch.equal(numbers, part.nodes[: part.own]):
            return None
        return replace(loaded, path=path)

    def _moved(self, parts: list[Checkpoint]) -> TrainState:
        """Convert the state of another partition's processes for this process."""
        state, trainer = parts[0].state, self.trainer
        progress = replace(state.progress, loss=0.0, sampled=0, history_reads=0)
        done, steps = len(progress.curve), len(trainer.minibatches)
        # Continue after the last complete epoch, except that weights and rows are newer.
        position = Position(done, steps if done else 0, done * steps)
        histories: dict[str, Tensor] = {}
        for name in (n for n in state.histories if not n.startswith("halo.")):
            if name.endswith(".move"):  # the same in all parts
                histories[name] = state.histories[name]
                continue
            tables = [(p.state.histories[NUMBERS], p.state.histories[name]) for p in parts]
            written = name.endswith(".written")
            histories[name] = _gathered(trainer.part.nodes, tables, written)
            if written:
                histories[name].clamp_(max=position.step)
        random = trainer.random.state_dict()
        random["minibatches"] = trainer.minibatches.generator.get_state()
        self.on_note(
            f"the run had {len(parts)} parts and resumes with {self.group.size}, after epoch {done}"
        )
        return replace(
            state, histories=histories, random=random, progress=progress, position=position
        )


def _parts_of(path: Path) -> list[Path]:
    parts = sorted(path.glob("part-*"))
    if not parts:
        raise DamagedCheckpointError(
            f"{path} is a checkpoint of one process, which resumes with the whole graph"
        )
    return parts


def _all_parts(path: Path) -> list[Checkpoint]:
    parts = [load_checkpoint(part) for part in _parts_of(path)]
    _check_nodes(path, parts)
    return parts


def _gathered(nodes: Tensor, tables: list[tuple[Tensor, Tensor]], ages: bool) -> Tensor:
    """Return rows of nodes (local nodes,) from tables of parts, by their numbers in the whole
    graph.

    tables: the numbers of a part's own nodes, ascending, and a table whose first rows are theirs
    """
    first = tables[0][1]
    rows = first.new_full((len(nodes), *first.shape[1:]), NEVER if ages else 0)
    for numbers, table in tables:
        place = torch.searchsorted(numbers, nodes).clamp(max=len(numbers) - 1)
        here = numbers[place] == nodes
        rows[here] = table.index_select(0, place[here])
    return rows


def _check_nodes(path: Path, parts: list[Checkpoint]) -> None:
    """Raise if the parts of a checkpoint do not contain each node of its graph exactly once."""
    nodes = parts[0].identity["graph"].get("nodes")
    numbers = [part.state.histories.get(NUMBERS, _NO_NUMBERS) for part in parts]
    count = sum(len(of_part) for of_part in numbers)
    if count == nodes:
        seen = torch.zeros(count, dtype=torch.bool)
        for of_part in numbers:
            seen[of_part[(of_part >= 0) & (of_part < count)]] = True
        count = int(seen.sum())
    if count != nodes:
        raise DamagedCheckpointError(
            f"{path} is not whole: its parts ({len(parts)}) have {count} of the graph's {nodes} "
            "nodes"
        )


def _unseen(path: Path, ranks: list[int], fault: str) -> OSError:
    named = ", ".join(map(str, ranks))
    return OSError(
        f"{path} is not seen by all processes: {'rank' if len(ranks) == 1 else 'ranks'} {named} "
        f"{fault}; the run's folder must be on a disk that all machines see"
    )
