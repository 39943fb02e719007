"""An encoder is a file and a line in ENCODERS: one that this file adds is recognised, told about,
imported, kept for tomorrow's tables and predicted from."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from numpy.typing import NDArray

from tests.messages import refused
from vrgcn import MLP, TrainConfig, fit, load_graph, predict
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.data.tables.encoders import ENCODERS, find_encoder
from vrgcn.data.tables.encoders.encoder import Arrays, Encoder, Look, Rejection, Tell
from vrgcn.data.tables.encoders.filling import FilledColumn
from vrgcn.data.tables.encoders.sample import ColumnSample
from vrgcn.data.tables.values import to_text

ADDRESS = r"^\d{1,3}(\.\d{1,3}){3}$"


class AddressColumn(Encoder):
    """Addresses such as 10.0.0.7: a feature for each of the first `parts` numbers."""

    kind: ClassVar[str] = "address"
    option: ClassVar[str] = "how many numbers of four"
    turn: ClassVar[int] = 5
    unfilled: ClassVar[str] = "holds addresses: an empty cell is 0.0.0.0"
    fitted = True

    def __init__(self, column: str, parts: int) -> None:
        super().__init__(column)
        self.parts = parts

    @classmethod
    def allows(cls, option: str) -> bool:
        return option in ("1", "2", "3", "4")

    @classmethod
    def recognise(cls, sample: ColumnSample) -> Look | Rejection:
        if not sample.is_text or sample.share(ADDRESS) < 1:
            return Rejection()
        different = pc.count_distinct(sample.known).as_py()
        return cls.told(sample, "", Look(f"{different} addresses", sample.missing))

    @classmethod
    def told(cls, sample: ColumnSample, option: str, found: Look) -> Look:
        return Look(found.words, found.missing, options={"parts": int(option or 4)})

    @property
    def names(self) -> list[str]:
        return [f"{self.column}.{part}" for part in range(self.parts)]

    def fit(self, cells: pa.Array) -> None:
        pass

    def finish(self) -> None:
        pass

    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        text = to_text(cells).to_pylist()
        wrong = [row for row, cell in enumerate(text) if cell and not re.match(ADDRESS, cell)]
        rows = np.array(wrong, np.int64)
        tell("is no address", rows, cells.take(pa.array(rows)), "write it as 10.0.0.7")
        for row in set(range(len(text))) - set(wrong):
            out[row] = [int(part) for part in (text[row] or "0.0.0.0").split(".")[: self.parts]]

    def plan(self) -> str:
        return f"{self.parts} features"

    def state(self) -> dict[str, Any]:
        return {"parts": self.parts}

    @classmethod
    def from_state(cls, column: str, state: dict[str, Any], arrays: Arrays) -> Self:
        return cls(column, state["parts"])


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ENCODERS, "address", "addresses.AddressColumn")
    home = "vrgcn.data.tables.encoders.addresses"
    monkeypatch.setitem(sys.modules, home, sys.modules[__name__])


def write(name: str, addresses: list[str], labels: list[str] | None = None) -> dict[str, Path]:
    """Files of nodes with addresses, and of edges from each to the next."""
    rows = zip(addresses, labels or [""] * len(addresses), strict=True)
    lines = "".join(f"{i},{address},{label}\n" for i, (address, label) in enumerate(rows))
    Path(f"{name}.csv").write_text(f"id,host,label\n{lines}")
    edges = "".join(f"{i},{i + 1}\n" for i in range(len(addresses) - 1))
    Path(f"{name}-edges.csv").write_text(f"source,target\n{edges}")
    return {"nodes": Path(f"{name}.csv"), "edges": Path(f"{name}-edges.csv")}


def test_a_new_encoder_goes_from_import_to_predictions_on_tomorrows_tables() -> None:
    plans: list[tuple[str, str, str]] = []
    addresses = [f"{10 + 100 * (i % 2)}.0.{i}.7" for i in range(40)]
    today = write("today", addresses, ["in", "out"] * 20)
    spec = ImportSpec(**today, out=Path("g"), ratio=(0.6, 0.2, 0.2))
    import_tables(spec, on_plan=lambda title, rows: plans.extend(rows))
    assert plans == [("host", "40 addresses", "4 features")]
    graph = load_graph("g")
    assert graph.names.features == ["host.0", "host.1", "host.2", "host.3"]
    assert graph.features[3].tolist() == [110, 0, 3, 7]

    torch.manual_seed(0)
    model = MLP(4, 8, 2, dropout=0.0)
    fit(model, graph, TrainConfig(epochs=60, batch_size=8, select="last"))
    tomorrow = write("tomorrow", ["10.0.9.7", "110.0.5.7", ""])
    import_tables(ImportSpec(**tomorrow, out=Path("h"), like=Path("g")))
    other = load_graph("h")
    assert other.features.tolist() == [[10, 0, 9, 7], [110, 0, 5, 7], [0, 0, 0, 0]]
    classes = predict(model, other, torch.tensor([0, 1])).argmax(1)
    assert [other.names.classes[c] for c in classes.tolist()] == ["in", "out"]


def test_what_the_user_says_of_a_new_encoder_is_checked_and_obeyed() -> None:
    files = write("today", ["10.0.0.7", "10.0.0.8", "nobody", "10.0.0.9"])
    assert "address, drop" in mistake_of({**files, "column": ("host=adress",)})
    told = mistake_of({**files, "column": ("host=address:5",)})
    assert told == "column=: 'host=address:5': after address: comes how many numbers of four"
    told = mistake_of({**files, "column": ("host=address:2",)})
    assert told == (
        "today.csv: column 'host' is no address, in 1 row: 'nobody' in row 3 (line 4); "
        "write it as 10.0.0.7"
    )
    told = mistake_of({**files, "column": ("host=address",), "fill": ("host=0",)})
    assert "and this column holds addresses: an empty cell is 0.0.0.0; leave this fill=" in told
    files = write("today", ["10.0.0.7", "10.1.0.8"])
    import_tables(ImportSpec(**files, out=Path("g"), column=("host=address:2",)))
    assert load_graph("g").features.tolist() == [[10, 0], [10, 1]]


def mistake_of(options: dict[str, Any]) -> str:
    with refused() as caught:
        import_tables(ImportSpec(**options, out=Path("g")))
    return str(caught.value)


def test_the_table_of_encoders_names_each_by_its_kind_and_no_two_have_the_same_turn() -> None:
    found = {kind: find_encoder(kind) for kind in ENCODERS}
    assert {kind: encoder.kind for kind, encoder in found.items()} == {k: k for k in ENCODERS}
    assert len({encoder.turn for encoder in found.values()}) == len(ENCODERS)
    for encoder in found.values():  # a number fills the gaps, or it is said what does
        assert issubclass(encoder, FilledColumn) == (not encoder.unfilled)
