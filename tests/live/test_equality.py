"""After any changes a live model answers what `predict` answers on the graph built anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.live.book import WIDTH, a_book, change
from vrgcn import GCN, MLP, GraphSAGE
from vrgcn.inference.saved import SavedModel
from vrgcn.live.live import Live
from vrgcn.models.node_table import NodeTable

MODELS: dict[str, Any] = {
    "gcn": lambda n: GCN(WIDTH, 5, 3),
    "gcn of three layers": lambda n: GCN(WIDTH, 4, 3, layers=3, skip=True, jumping="cat"),
    "gcn, transform first": lambda n: GCN(WIDTH, 5, 3, transform_first=True),
    "graphsage": lambda n: GraphSAGE(WIDTH, 5, 3, dense=2),
    "mlp": lambda n: MLP(WIDTH, 5, 3),
    "learned rows": lambda n: GCN(WIDTH, 5, 3, nodes=n, learned_rows=True),
    "labels of two hops": lambda n: GraphSAGE(
        WIDTH, 5, 3, layers=1, nodes=n, neighbour_labels=True, label_hops=2
    ),
    "one's own": lambda n: Own(),
    "two hops of a table alone": lambda n: TwoHops(nodes=n),
}
WITH_TABLES = ("learned rows", "labels of two hops", "two hops of a table alone")


class Own(nn.Module):
    """A model of one's own that begins with a layer, so that what it propagates first are not the
    features."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(WIDTH, 5), nn.Linear(10, 3)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        h = torch.tanh(self.first(x))
        h = torch.tanh(propagate.own(h) + propagate(h))
        return self.last(torch.cat([propagate.own(h), propagate(h)], dim=1))


class TwoHops(nn.Module):
    """A model that propagates nothing, and reads a table of the neighbours' neighbours."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.labels = NodeTable(torch.zeros(nodes, 2), learned=False)
        self.last = nn.Linear(WIDTH + 2, 3)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        return self.last(torch.cat([x, propagate.second_hop(self.labels.rows)], dim=1))


def saved_model(name: str, rule: str, nodes: list[str], dtype: torch.dtype) -> SavedModel:
    torch.manual_seed(1)
    model = MODELS[name](len(nodes)).to(dtype)
    for table in (getattr(model, "learned", None), getattr(model, "labels", None)):
        if table is not None:
            table.set(torch.randn_like(table.rows))
    ids = pa.array(nodes) if name in WITH_TABLES else None
    return SavedModel(model, rule, nodes=ids)


def follow(name: str, rule: str, seed: int, most: float, **book: Any) -> None:
    """Change a live model and the lists at random, and compare after each change."""
    rng = np.random.default_rng(seed)
    written = a_book(rng, **book)
    saved = saved_model(name, rule, sorted(written.nodes), written.dtype)
    live = Live(saved, written.graph(), undirected=written.undirected)
    written.check(live, saved, most)
    for _ in range(6):
        live.apply(change(written, rng))
        written.check(live, saved, most)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=6)
@given(
    seed=st.integers(0, 10_000),
    rule=st.sampled_from(["gcn", "mean", "adjacency"]),
    undirected=st.booleans(),
    weighted=st.booleans(),
)
def test_every_model_and_rule_to_the_last_bits_of_float64(
    name: str, rule: str, seed: int, undirected: bool, weighted: bool
) -> None:
    rule = "identity" if name == "mlp" else rule
    follow(name, rule, seed, 1e-12, undirected=undirected, weighted=weighted)


@pytest.mark.parametrize("name", ["gcn", "graphsage", "gcn, transform first"])
@settings(max_examples=3)
@given(seed=st.integers(0, 10_000), sparse=st.booleans())
def test_float32_and_sparse_features(name: str, seed: int, sparse: bool) -> None:
    follow(
        name,
        "gcn",
        seed,
        1e-5,
        undirected=True,
        weighted=False,
        dtype=torch.float32,
        sparse=sparse,
    )


@pytest.mark.parametrize("name", WITH_TABLES)
def test_a_node_that_comes_back_has_its_learned_row_again(name: str) -> None:
    book = a_book(np.random.default_rng(0), undirected=True, weighted=False)
    saved = saved_model(name, "mean", sorted(book.nodes), book.dtype)
    live = Live(saved, book.graph(), undirected=True)
    before = live.predict(sorted(book.nodes)).outputs
    edges = [list(ends) for ends in book.edges if "n1" in ends]
    live.remove_nodes("n1")
    with live.changes() as changes:
        changes.add_nodes({"id": "n1", "features": book.nodes["n1"]})
        changes.add_edges(edges)
    book.check(live, saved, 1e-12)
    assert torch.allclose(live.predict(sorted(book.nodes)).outputs, before, atol=1e-12)
    live.add_nodes({"id": "new", "features": [0.0] * WIDTH})  # of which the model knows nothing
    live.add_edges([["new", node] for node in ("n0", "n1", "n2")])
    book.nodes["new"] = [0.0] * WIDTH
    book.edges |= {book.key("new", node): 1.0 for node in ("n0", "n1", "n2")}
    book.check(live, saved, 1e-12)
