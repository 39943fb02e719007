"""Explanations are exact: each is what `predict` says of the graph without the thing left out."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from tests.live.book import WIDTH, Book, a_book
from tests.messages import refused
from vrgcn import GCN, GraphSAGE, predict
from vrgcn.graph.scaling import Scaling
from vrgcn.inference.calibration import Calibration
from vrgcn.inference.saved import SavedModel
from vrgcn.live.live import Live


def probability(saved: SavedModel, book: Book, node: str, of: int) -> float:
    graph = book.graph()
    place = graph.names.nodes.to_pylist().index(node)
    return float(predict(saved, graph, [place]).softmax(1)[0, of])


def without_edge(book: Book, one: str, other: str) -> Book:
    changed = copy.deepcopy(book)
    changed.edges = {
        ends: w for ends, w in book.edges.items() if ends not in ((one, other), (other, one))
    }
    return changed


def without_node(book: Book, node: str) -> Book:
    changed = copy.deepcopy(book)
    del changed.nodes[node]
    changed.edges = {ends: w for ends, w in book.edges.items() if node not in ends}
    return changed


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("model", [GCN, GraphSAGE])
def test_each_effect_is_what_predict_says_without_it(model: Any, temperature: float) -> None:
    torch.manual_seed(0)
    book = a_book(np.random.default_rng(3), undirected=True, weighted=True)
    mean = torch.tensor([0.5, 0, 0, -1]).double()
    scaling = Scaling("standard", mean, torch.ones(WIDTH).double())
    calibration = Calibration(temperature, None, 0, torch.zeros(0).double())
    saved = SavedModel(
        model(WIDTH, 5, 3).double(), model.propagation, scaling, stages=(calibration,)
    )
    live = Live(saved, book.graph(), undirected=True)
    before = live._world.state.outputs.clone()
    for node in ("n0", "n3"):
        found = live.explain(node)
        of = int(live.predict(node).outputs.argmax())
        assert found.predicted == str(of)
        assert found.value == pytest.approx(probability(saved, book, node, of), abs=1e-12)
        assert found.edges.looked_at == found.edges.there > 2
        for effect in found.edges.effects:
            wanted = probability(saved, without_edge(book, node, effect.id), node, of)
            assert effect.without == pytest.approx(wanted, abs=1e-12)
            assert effect.change == pytest.approx(wanted - found.value, abs=1e-12)
        for effect in found.neighbours.effects:
            wanted = probability(saved, without_node(book, effect.id), node, of)
            assert effect.without == pytest.approx(wanted, abs=1e-12)
        for effect in found.columns.effects:
            assert effect.column is not None
            changed = copy.deepcopy(book)
            changed.nodes[node][int(effect.column)] = float(mean[int(effect.column)])
            wanted = probability(saved, changed, node, of)
            assert effect.without == pytest.approx(wanted, abs=1e-12)
        alone = copy.deepcopy(book)
        alone.edges = {e: w for e, w in book.edges.items() if node not in e or e[0] == e[1]}
        gone = probability(saved, alone, node, of) - found.value
        assert found.edges.together == pytest.approx(gone, abs=1e-12)
        total = sum(effect.change for effect in found.edges.effects)
        assert found.edges.total == pytest.approx(total, abs=1e-12)
    assert torch.equal(live._world.state.outputs, before)  # nothing of it stays
    book.check(live, saved, 1e-12)


def test_a_hub_is_explained_by_the_edges_that_weigh_most() -> None:
    torch.manual_seed(0)
    book = a_book(np.random.default_rng(3), undirected=True, weighted=False)
    saved = SavedModel(GCN(WIDTH, 5, 3).double(), "gcn")
    live = Live(saved, book.graph(), undirected=True)
    found = live.explain("n0", most=2)
    degree = {n: sum(n in ends for ends in book.edges) for n in book.nodes}
    near = [e[0] if e[1] == "n0" else e[1] for e in book.edges if "n0" in e and e[0] != e[1]]
    assert (found.edges.looked_at, found.edges.there) == (2, len(near))
    looked = {effect.id for effect in found.edges.effects}
    assert max(degree[n] for n in looked) <= sorted(degree[n] for n in near)[1] + 1


def test_a_change_that_is_only_supposed_leaves_no_trace() -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(5)
    book = a_book(rng, undirected=False, weighted=True)
    saved = SavedModel(GCN(WIDTH, 5, 3).double(), "gcn")
    live = Live(saved, book.graph(), undirected=False)
    changes: list[dict[str, Any]] = [
        {"change": "add_nodes", "rows": [{"id": "x", "features": [1.0, 0, 0, 2]}]},
        {"change": "add_edges", "rows": [{"source": "n0", "target": "x", "weight": 1.5}]},
        {"change": "add_edges", "rows": [{"source": "n1", "target": "n1", "weight": 2.0}]},
        {"change": "remove_nodes", "ids": ["n2"]},
    ]
    supposed = live.what_if(changes, ["x", "n1", "n0"]).outputs
    book.check(live, saved, 1e-12)
    with refused():
        live.what_if(changes, "n2")
    live.apply(changes)
    assert torch.allclose(live.predict(["x", "n1", "n0"]).outputs, supposed, atol=1e-12)
