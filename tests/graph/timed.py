"""A graph of rows with a time of their own, made without an import: customers, their orders, and
rows that ask whether the next order is large."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from vrgcn import Graph
from vrgcn.graph.dated import DAY, Dated, FactPath, Lookback, TimedRows
from vrgcn.graph.new_rows import seen_by

CUSTOMERS, ORDERS, ROWS = 12, 240, 90
OF_ORDER, OF_ROW = ("customer", "of", "order"), ("customer", "of", "row")
LAST, LAST_5 = ("order", "last", "row"), ("order", "last_5", "row")
PATH = FactPath(
    "order", "customer-of-row", "customer-of-order", {"order-last-row": 1, "order-last_5-row": 5}
)
SPLIT = {"train": range(50), "val": range(50, 70), "test": range(70, 90)}


def dated_graph(*, split: Mapping[str, range] = SPLIT) -> Graph:
    """Rows ascend by time, the first 50 are for training. A row's label says whether its customer's
    last order was above the mean, with some noise."""
    draw = np.random.default_rng(0)
    customer, day = draw.integers(CUSTOMERS, size=ORDERS), np.sort(draw.uniform(0, 100, ORDERS))
    amount = draw.normal(size=(ORDERS, 2)).astype(np.float32)
    time, who = np.linspace(5, 100, ROWS), draw.integers(CUSTOMERS, size=ROWS)
    graph = Graph.from_kinds(
        {
            "customer": torch.from_numpy(draw.normal(size=(CUSTOMERS, 1)).astype(np.float32)),
            "order": torch.from_numpy(amount),
            "row": torch.zeros(ROWS, 2),
        },
        {
            OF_ORDER: torch.from_numpy(np.stack([customer, np.arange(ORDERS)])),
            OF_ROW: torch.from_numpy(np.stack([who, np.arange(ROWS)])),
            LAST: torch.empty(2, 0, dtype=torch.int64),
            LAST_5: torch.empty(2, 0, dtype=torch.int64),
        },
        target="row",
        num_classes=2,
        one_way=[OF_ORDER, OF_ROW, LAST, LAST_5],
        node_columns={"order": {"date": dates(day)}, "row": {"at": dates(time)}},
        ids={
            "customer": [f"c{n}" for n in range(CUSTOMERS)],
            "order": range(ORDERS),
            "row": range(ROWS),
        },
    ).replace(dated=Dated("row", {"row": "at", "order": "date"}, (PATH,)))
    return with_sight(graph, TimedRows(time * DAY, {PATH.entity: who}), amount, split)


def with_sight(
    graph: Graph, asked: TimedRows, amount: np.ndarray, split: Mapping[str, range]
) -> Graph:
    """The graph whose rows see their facts, and are labelled by the last of them."""
    assert graph.dated is not None
    features, edges = seen_by(graph.dated, 2, asked, None, Lookback.on(graph))
    kinds = graph.kinds
    rows, last = edges["order-last-row"]
    label = np.random.default_rng(1).integers(2, size=len(asked.times))
    sure = np.random.default_rng(2).random(len(rows)) < 0.9
    own = last - kinds.range("order").start
    label[rows[sure]] = (amount[own, 0] > 0)[sure]
    made = Graph.from_kinds(
        {
            "customer": graph.features.to_dense()[:CUSTOMERS, :1],
            "order": torch.from_numpy(amount),
            "row": torch.from_numpy(features),
        },
        {
            triple: torch.stack([A.indices, A.row_of_entry])
            - torch.tensor([kinds.range(k).start for k in (triple[0], triple[2])])[:, None]
            for triple, A in ((p.triple, p.adjacency) for p in graph.given.values())
            if triple[1] == "of"
        }
        | {
            triple: torch.from_numpy(np.stack([facts - kinds.range("order").start, places]))
            for triple, (places, facts) in (
                (LAST, edges["order-last-row"]),
                (LAST_5, edges["order-last_5-row"]),
            )
        },
        {"row": torch.from_numpy(label)},
        **{name: list(part) for name, part in split.items()},
        one_way=[OF_ORDER, OF_ROW, LAST, LAST_5],
    )
    return made.replace(kept=graph.kept, dated=graph.dated, names=graph.names)


def dates(days: np.ndarray) -> np.ndarray:
    return (days * DAY * 1e6).astype("int64").view("datetime64[us]")
