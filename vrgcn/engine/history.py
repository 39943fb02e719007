"""Histories: the last known activation of every node, one table per propagated layer."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from vrgcn.graph.sparse import CSR

DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,
}
NEVER = -1


class History:
    """One table: `values` (nodes, width), and `written` (nodes,) the step of each row's last write.

    Rows start at zero and never written; step numbers count from 0.
    """

    def __init__(self, values: Tensor, written: Tensor) -> None:
        self.values = values
        self.written = written

    def read(self, nodes: Tensor, dtype: torch.dtype) -> Tensor:
        """(len(nodes), width) rows."""
        return self.values.index_select(0, nodes.to(self.values.device)).to(nodes.device, dtype)

    def average(self, rows: CSR, dtype: torch.dtype) -> Tensor:
        """Rows of P times the table: (targets, width). The table is read in its own precision."""
        return (rows.to(self.values.device) @ self.values).to(rows.indices.device, dtype)

    def write(self, nodes: Tensor, h: Tensor, step: int) -> None:
        """Overwrite the rows of `nodes` with h (len(nodes), width), all different nodes."""
        nodes = nodes.to(self.values.device)
        largest = torch.finfo(self.values.dtype).max
        h = h.detach()
        if largest < torch.finfo(h.dtype).max:  # an infinite row would spoil every average of it
            h = h.clamp(-largest, largest)
        self.values.index_copy_(0, nodes, h.to(self.values))
        self.written.index_fill_(0, nodes, step)

    def age(self, step: int) -> Tensor:
        """(rows written at least once,) how many steps ago each was written."""
        return step - self.written[self.written != NEVER]


class Histories:
    """The tables of a model, one for each call of `propagate` whose input is not the features.

    Tables are made when they are first asked for: only then is their width known.

    directory: keep the tables in memory-mapped files there instead of in memory.
    """

    def __init__(
        self,
        num_nodes: int,
        dtype: str = "float32",
        device: torch.device | str = "cpu",
        directory: Path | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise ValueError(f"history dtype {dtype!r} is none of {', '.join(DTYPES)}")
        self.num_nodes = num_nodes
        self.dtype = DTYPES[dtype]
        # A file is mapped into the CPU's memory, wherever the model is.
        self.device = torch.device(device if directory is None else "cpu")
        self.directory = directory
        self.tables: dict[int, History] = {}

    def table(self, call: int, width: int) -> History:
        """The table of the input of the call-th `propagate` (from 0)."""
        if call not in self.tables:
            self.tables[call] = History(
                self._zeros(call, width),
                torch.full((self.num_nodes,), NEVER, dtype=torch.int64, device=self.device),
            )
        table = self.tables[call]
        if table.values.shape[1] != width:
            raise ValueError(
                f"propagate call {call + 1} was given width {width}, and before "
                f"{table.values.shape[1]}; a model must propagate the same widths every time"
            )
        return table

    def mean_age(self, step: int) -> float:
        """Mean age in steps over all written rows of all tables; NaN when none is."""
        ages = [table.age(step).double() for table in self.tables.values()]
        return float(torch.cat(ages).mean()) if ages else float("nan")

    def state_dict(self) -> dict[str, Tensor]:
        """Everything there is to save, without copies."""
        state = {}
        for call, table in self.tables.items():
            state[f"{call}.values"] = table.values
            state[f"{call}.written"] = table.written
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, values in state.items():
            call, part = name.split(".")
            if part == "values":
                table = self.table(int(call), values.shape[1])
                table.values.copy_(values)
                table.written.copy_(state[f"{call}.written"])

    def _zeros(self, call: int, width: int) -> Tensor:
        shape = (self.num_nodes, width)
        if self.directory is None:
            return torch.zeros(shape, dtype=self.dtype, device=self.device)
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / f"history-{call}.bin"
        file.unlink(missing_ok=True)  # a new file reads as zeros, an old one as what it held
        return torch.from_file(
            str(file), shared=True, size=self.num_nodes * width, dtype=self.dtype
        ).view(shape)
