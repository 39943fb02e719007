"""Nothing from the future reaches rows with a time of their own.

Tables whose later rows are garbage, gone or more lead to the same encoders, scaling, weights,
baselines and predictions, bit by bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from vrgcn import Graph, ModelConfig, load_graph, load_run, predict, train
from vrgcn.baselines import RECIPES
from vrgcn.baselines.problem import Problem
from vrgcn.costs.order import build_for
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.files.tensors import read_tensors
from vrgcn.graph.from_kinds import split_features
from vrgcn.graph.scaling import scale_graph
from vrgcn.tasks.metrics import METRICS

BASELINES = ("linear-2", "trees-2", "mlp-2")
START, DAY = np.datetime64("2020-01-01"), np.timedelta64(1, "D")
CUSTOMERS, SHOPS = 15, 4
UNTIL = 160  # days: training rows end at 110, validation rows at 160, test rows at 200

Tables = dict[str, pd.DataFrame]


def tables() -> Tables:
    draw = np.random.default_rng(0)

    def dated(count: int) -> dict[str, Any]:
        return {
            "id": np.arange(count),
            "customer": draw.integers(CUSTOMERS, size=count),
            "date": START + np.sort(draw.integers(0, 200, size=count)) * DAY,
        }

    orders = pd.DataFrame(dated(300))
    orders["shop"] = draw.integers(SHOPS, size=300)
    orders["amount"] = draw.normal(size=300).round(3)
    orders["kind"] = np.array(["food", "book", "toy"])[draw.integers(3, size=300)]
    calls = pd.DataFrame(dated(150))
    calls["minutes"] = draw.integers(1, 60, size=150)
    day = np.sort(draw.integers(10, 200, size=180))
    rows = pd.DataFrame({"customer": draw.integers(CUSTOMERS, size=180), "date": START + day * DAY})
    rows["score"] = draw.normal(size=180).round(3)
    rows["label"] = np.where(draw.random(180) < 0.5, "yes", "no")
    rows["split"] = np.select([day <= 110, day <= UNTIL], ["train", "val"], "test")
    rows = rows.drop_duplicates(["customer", "date"])
    people = pd.DataFrame({"id": range(CUSTOMERS), "age": draw.integers(20, 80, size=CUSTOMERS)})
    shops = pd.DataFrame({"id": range(SHOPS), "size": draw.normal(size=SHOPS).round(3)})
    return {"customer": people, "shop": shops, "order": orders, "call": calls, "task": rows}


def later(table: pd.DataFrame) -> pd.Series:
    return table["date"] > START + UNTIL * DAY


def garbage(found: Tables) -> None:
    """Later facts have other values, keys and dates, which are later still; later rows other labels
    and features."""
    draw = np.random.default_rng(1)
    for name in ("order", "call", "task"):
        table = found[name]
        late, count = later(table), int(later(table).sum())
        table.loc[late, "customer"] = draw.integers(CUSTOMERS, size=count)
        table.loc[late, "date"] = START + draw.integers(UNTIL + 1, 900, size=count) * DAY
        for column in {"amount", "minutes", "score", "shop"} & {*table.columns}:
            whole = table[column].dtype.kind == "i"
            values = (
                draw.integers(SHOPS, size=count) if whole else draw.normal(1e4, 1e5, size=count)
            )
            table.loc[late, column] = values
    found["order"].loc[later(found["order"]), "kind"] = "unheard of"
    rows = found["task"]
    rows.loc[later(rows), "label"] = "yes"
    found["task"] = rows.drop_duplicates(["customer", "date"])


def gone(found: Tables) -> None:
    for name in ("order", "call"):
        found[name] = found[name][~later(found[name])]


def more(found: Tables) -> None:
    """Later facts are there several times; each has an id of its own."""
    for name in ("order", "call"):
        table = found[name]
        extra = pd.concat([table[later(table)]] * 3)
        extra["id"] = np.arange(len(extra)) + 10_000
        found[name] = pd.concat([extra, table])  # before the earlier ones in the file


@dataclass(frozen=True)
class Found:
    """What came of tables: encoders as text, tensors by name, and outputs of earlier rows."""

    encoders: str
    tensors: dict[str, Tensor]
    outputs: dict[str, Tensor]
    tests: Tensor


def imported(found: Tables, folder: Path) -> Graph:
    folder.mkdir()
    for name, table in found.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    import_tables(
        ImportSpec(
            nodes=[f"{name}={folder / name}.csv" for name in found if name != "task"],
            edges=[
                f"{fact}-of-{entity}={folder / fact}.csv"
                for fact, entity in (("order", "customer"), ("order", "shop"), ("call", "customer"))
            ],
            dated=("order.date", "call.date"),
            rows=(f"customer={folder / 'task'}.csv",),
            at="date",
            known_after="10d",
            out=folder / "graph",
        )
    )
    return load_graph(folder / "graph")


def learned(found: Tables, folder: Path) -> Found:
    """Import, train, fit baselines, and predict the rows until the date."""
    graph = imported(found, folder)
    settings = {"epochs": 4, "hidden": 8, "threads": 1, "seed": 3}
    train(folder / "graph", out=folder / "run", **settings)  # type: ignore[arg-type]
    run = load_run(folder / "run")
    scaled, scaling = scale_graph(graph, "clipped")
    assert scaling.mean is not None
    problem = Problem.of(scaled, METRICS["roc-auc"])
    models = {"network": run.saved.model}
    models |= {name: RECIPES[name].fit(problem).eval() for name in BASELINES}
    early = torch.cat([graph.train, graph.val])
    rows = graph.kinds.within(graph.target or "", early)
    tensors = {"mean": scaling.mean, "deviation": scaling.deviation}
    for name, model in models.items():
        tensors |= {f"{name}.{key}": value for key, value in model.state_dict().items()}
    encoders = (folder / "graph" / "import.json").read_text().replace(str(folder), "")
    # Means stand for nodes that tables lack, which are never known where tables have dates.
    arrays = read_tensors(folder / "graph" / "import.safetensors")
    tensors |= {key: value for key, value in arrays.items() if not key.endswith("/mean")}
    return Found(
        re.sub(r'"\w*checksum": "[0-9a-f]+"', "", encoders),
        {name: value for name, value in tensors.items() if value is not None},
        {name: predict(model, scaled, rows) for name, model in models.items()},
        predict(models["network"], scaled, graph.kinds.within(graph.target or "", graph.test)),
    )


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return learned(tables(), tmp_path_factory.mktemp("clean") / "tables")


@pytest.mark.parametrize(
    "change", [garbage, *(pytest.param(each, marks=pytest.mark.soak) for each in (gone, more))]
)
def test_what_is_known_later_changes_no_bit_of_what_was_learned_and_predicted(
    change: Any, clean: Found, tmp_path: Path
) -> None:
    found = tables()
    change(found)
    changed = learned(found, tmp_path / "tables")
    assert changed.encoders == clean.encoders
    assert changed.tensors.keys() == clean.tensors.keys()
    for name, value in clean.tensors.items():
        assert torch.equal(changed.tensors[name], value), name
    for name, outputs in clean.outputs.items():
        assert torch.equal(changed.outputs[name], outputs), name
    if change is garbage:  # rows that are later do see it
        assert not torch.equal(changed.tests, clean.tests[: len(changed.tests)])


def with_reverses(graph: Graph) -> Graph:
    edges = {}
    for part in graph.given.values():
        starts = [graph.kinds.range(kind).start for kind in (part.source, part.target)]
        A = part.adjacency
        edges[part.triple] = (
            torch.stack([A.indices, A.row_of_entry]) - torch.tensor(starts)[:, None]
        )
    return Graph.from_kinds(
        {
            k: graph.kinds.sizes[k] if x is None else x
            for k, x in split_features(graph.kinds, graph.features).items()
        },
        edges,
        target=graph.target,
        num_classes=2,
    )


def test_with_reverses_earlier_rows_are_predicted_from_later_facts(tmp_path: Path) -> None:
    """The control: the same change, over a graph with reverses, changes earlier predictions."""
    outputs = []
    for number, change in enumerate((lambda found: None, garbage)):
        found = tables()
        change(found)
        graph = imported(found, tmp_path / str(number))
        rows = graph.kinds.within(graph.target or "", torch.cat([graph.train, graph.val]))
        open_graph = with_reverses(graph)
        model = build_for(ModelConfig(hidden=8, layers=3), open_graph, 2, seed=0)
        outputs.append(predict(model.eval(), open_graph, rows))
    assert float((outputs[0] != outputs[1]).any(1).double().mean()) > 0.9
