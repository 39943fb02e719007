"""Histories: the last known activation of every node, one table per propagated level, and where an
estimator asks for them the last known gradients too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vrgcn.engine.frame import Frame, Frames
from vrgcn.files.mistakes import InputError
from vrgcn.graph.mapped import gather, read_ahead, zeros
from vrgcn.graph.sparse import CSR

DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,
}
NEVER = -1


@dataclass(frozen=True)
class Replaced:
    """The rows that a write replaced: nodes (rows,) by their rows of the table, values (rows,
    width), steps of their writing; and the frame's move before it."""

    nodes: Tensor
    values: Tensor
    written: Tensor
    move: Tensor | None = None

    def of(self, rows: Tensor) -> Replaced:
        """Some of them, by their numbers."""
        here = rows.to(self.values.device)
        nodes, values, written = (
            part.index_select(0, here) for part in (self.nodes, self.values, self.written)
        )
        return Replaced(nodes, values, written, self.move)


class History:
    """One table: `values` (nodes, width), and `written` (nodes,) the step of each row's last write.

    Rows start at zero and never written; step numbers count from 0.

    first: the node of the first row; other than 0 where the table is of one kind of nodes
    frame: what row v stands for is values_v + f_v D: see frame.py; None: values_v itself
    """

    first = 0

    def __init__(self, values: Tensor, written: Tensor, frame: Frame | None = None) -> None:
        self.values = values
        self.written = written
        self.frame = frame

    def _places(self, nodes: Tensor) -> Tensor:
        """The rows of some nodes."""
        here = nodes.to(self.values.device)
        return here - self.first if self.first else here

    def read(self, nodes: Tensor, dtype: torch.dtype) -> Tensor:
        """(len(nodes), width) rows."""
        here = self._places(nodes)
        return self._decoded(gather(self.values, here), here).to(nodes.device, dtype)

    def _decoded(self, values: Tensor, here: Tensor) -> Tensor:
        """What the table's values at some rows stand for."""
        if self.frame is None:
            return values
        return self.frame.added(values.to(self.frame.move.dtype), here)

    def among(self, nodes: Tensor) -> Tensor:
        """Those of some nodes that the table has rows of."""
        return nodes[(nodes >= self.first) & (nodes < self.first + len(self.values))]

    def last_written(self, nodes: Tensor) -> Tensor:
        """(len(nodes),) steps in which their rows were last written."""
        return self.written.index_select(0, self._places(nodes))

    def average(self, rows: CSR, dtype: torch.dtype, weights: Tensor | None = None) -> Tensor:
        """Rows of P times the table: (targets, width). The table is read in its own precision.

        weights: (targets, kinds), P f, if it is known
        """
        device = rows.indices.device
        if rows.columns != len(self.values):
            rows = rows.with_columns(rows.indices - self.first, len(self.values))
        found = (rows.to(self.values.device) @ self.values).to(device, dtype)
        if self.frame is None:
            return found
        return self.frame.averaged(found, self.frame.weights(rows) if weights is None else weights)

    def write(self, nodes: Tensor, h: Tensor, step: int) -> None:
        """Overwrite the rows of `nodes` with h (len(nodes), width), all different nodes."""
        self._write(self._places(nodes), h, step)

    def _write(self, nodes: Tensor, h: Tensor, step: int) -> None:
        h = h.detach()
        if self.frame is not None:
            h = self.frame.added(h, nodes, sign=-1)
        largest = torch.finfo(self.values.dtype).max
        if largest < torch.finfo(h.dtype).max:  # an infinite row would spoil every average of it
            h = h.clamp(-largest, largest)
        with read_ahead(self.values, nodes):
            self.values.index_copy_(0, nodes, h.to(self.values))
        self.written.index_fill_(0, nodes, step)

    def replace(self, nodes: Tensor, h: Tensor, step: int) -> Replaced:
        """`write` a minibatch's own rows, with which the frame moves; returns what was there."""
        here = self._places(nodes)
        move = None if self.frame is None else self.frame.move
        values = gather(self.values, here)
        before = Replaced(here, values, self.written.index_select(0, here), move)
        if self.frame is not None:
            self._move(self.frame, h.detach(), values, here)
        self._write(here, h, step)
        return before

    def _move(self, frame: Frame, h: Tensor, values: Tensor, here: Tensor) -> None:
        frame.advance(*frame.sums(h, values, here))

    def replaced(self, before: Replaced, dtype: torch.dtype) -> Tensor:
        """(rows, width): what a `replace` overwrote, as it would be read now."""
        return self._decoded(before.values, before.nodes).to(dtype)

    def put_back(self, before: Replaced) -> None:
        """Undo a `replace`."""
        if self.frame is not None and before.move is not None:
            self.frame.move = before.move
        with read_ahead(self.values, before.nodes):
            self.values.index_copy_(0, before.nodes, before.values)
        self.written.index_copy_(0, before.nodes, before.written)

    def age(self, step: int) -> Tensor:
        """(rows written at least once,) how many steps ago each was written."""
        return step - self.written[self.written != NEVER]


class Histories:
    """The tables of a model: of each level that it propagates, unless that is the features.

    Keyed by (level, kind): "h" for activations, "g" for gradients, of which each relation of a
    level has its own table: "g", "g1", "g2", ... Tables are made when they are first asked for:
    only then is their width known.

    dtype: of activations. Gradients are kept in the same precision, but for float16: they have no
        scale of their own, and bfloat16 has the range of float32, so that they neither overflow
        nor vanish.

    directory: keep the tables in memory-mapped files there instead of in memory.
    frames: of these kinds; None: tables are kept as they are written
    """

    frames: Frames | None = None

    def __init__(
        self,
        num_nodes: int,
        dtype: str = "float32",
        device: torch.device | str = "cpu",
        directory: Path | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise InputError(f"history dtype {dtype!r} is none of {', '.join(DTYPES)}")
        self.num_nodes = num_nodes
        self.dtype = DTYPES[dtype]
        # A file is mapped into the CPU's memory, wherever the model is.
        self.device = torch.device(device if directory is None else "cpu")
        self.directory = directory
        self.tables: dict[tuple[int, str], History] = {}

    def table(self, level: int, width: int, kind: str = "h", span: range | None = None) -> History:
        """The table of what a level propagates (levels from 0). span: of these nodes; None: all"""
        table = self._table(level, width, kind, self.num_nodes if span is None else len(span))
        if span is not None:
            table.first = span.start
        return table

    def _table(self, level: int, width: int, kind: str, rows: int) -> History:
        if (level, kind) not in self.tables:
            file = None
            if self.directory is not None:
                file = self.directory / f"history-{level}-{kind}.bin"
            self.tables[level, kind] = self.make(
                zeros((rows, width), self.dtype_of(kind), file, self.device),
                torch.full((rows,), NEVER, dtype=torch.int64, device=self.device),
                self._frame(level, width, kind),
            )
        table = self.tables[level, kind]
        if table.values.shape[1] != width:
            raise InputError(
                f"propagate call {level + 1} was given width {width}, and before "
                f"{table.values.shape[1]}; a model must propagate the same widths every time"
            )
        return table

    def make(self, values: Tensor, written: Tensor, frame: Frame | None) -> History:
        """A table of these histories."""
        return History(values, written, frame)

    def _frame(self, level: int, width: int, kind: str) -> Frame | None:
        """The frame of a table that begins; None for tables of other kinds, and where all rows stay
        raw."""
        number = relation_number(kind)
        if self.frames is None or (kind != "h" and number is None):
            return None
        precise = self.dtype if self.dtype == torch.float64 else torch.float32
        return self.frames.frame(width, level, number, precise)

    def dtype_of(self, kind: str) -> torch.dtype:
        """The precision of tables of a kind."""
        if kind != "h" and self.dtype == torch.float16:
            return torch.bfloat16
        return self.dtype

    def mean_age(self, step: int) -> float:
        """Mean age in steps over all written rows of all tables; NaN when none is."""
        ages = [table.age(step).double() for table in self.tables.values()]
        return float(torch.cat(ages).mean()) if ages else float("nan")

    def state_dict(self) -> dict[str, Tensor]:
        """Everything there is to save, without copies."""
        state = {}
        for (level, kind), table in self.tables.items():
            state[f"{level}.{kind}.values"] = table.values
            state[f"{level}.{kind}.written"] = table.written
            if table.frame is not None:
                state[f"{level}.{kind}.move"] = table.frame.move
        return state

    def tables_of(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """The entries of a state dict that belong to tables."""
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Put back what `state_dict` gave. Tables that it does not have are gone."""
        names = [name.removesuffix(".values") for name in state if name.endswith(".values")]
        keys = [(int(level), kind) for level, kind in (name.split(".") for name in names)]
        self.tables = {key: table for key, table in self.tables.items() if key in keys}
        for level, kind in keys:
            values = state[f"{level}.{kind}.values"]
            table = self._table(level, values.shape[1], kind, values.shape[0])
            table.values.copy_(values)
            table.written.copy_(state[f"{level}.{kind}.written"])
            if table.frame is not None:
                table.frame.move = state[f"{level}.{kind}.move"].to(table.frame.move, copy=True)


def gradient_kind(number: int) -> str:
    """The kind of a level's table of gradients, by the number of the relation."""
    return f"g{number}" if number else "g"


def relation_number(kind: str) -> int | None:
    """The number of the relation whose gradients a table of this kind has; None: it has others."""
    number = kind.removeprefix("g") or "0"
    return int(number) if kind.startswith("g") and number.isdecimal() else None


def exact_tables(
    num_nodes: int, dtype: torch.dtype, device: torch.device, directory: Path | None = None
) -> Histories:
    """Tables in the precision of the features, so that nothing is lost on the way."""
    return Histories(num_nodes, str(dtype).removeprefix("torch."), device, directory)
