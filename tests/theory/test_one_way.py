"""Kinds without incoming edges: the theorems of several kinds hold over one-way relations too.

Shops lead to items, items and facts to users; nothing leads back. So shops and facts have no
neighbours at all, and no message leaves a user: the transposed matrices carry gradients only.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tests.theory.test_kinds as kinds
from tests.theory.problems import RAW, RAW_CV
from vrgcn import Graph, ModelConfig
from vrgcn.costs.order import build_for
from vrgcn.graph.dated import Dated
from vrgcn.models.relational import RelationalSAGE

TRIPLES = [
    ("shop", "sells", "item"),
    ("item", "bought_by", "user"),
    ("item", "last", "user"),
    ("fact", "seen_by", "user"),
]


def made_graph() -> Graph:
    generator = torch.Generator().manual_seed(0)
    sizes = {"user": kinds.USERS, "item": kinds.ITEMS, "shop": kinds.SHOPS, "fact": 10}

    def edges(source: str, target: str, count: int) -> torch.Tensor:
        ends = [torch.randint(sizes[k], (count,), generator=generator) for k in (source, target)]
        return torch.stack(ends)

    x = torch.randn(kinds.USERS, 4, generator=generator, dtype=torch.float64)
    items = torch.randn(kinds.ITEMS, 3, generator=generator, dtype=torch.float64)
    facts = torch.randn(10, 2, generator=generator, dtype=torch.float64)
    return Graph.from_kinds(
        {"user": x, "item": items, "shop": kinds.SHOPS, "fact": facts},
        {triple: edges(triple[0], triple[2], 40) for triple in TRIPLES},
        {"user": torch.randint(kinds.CLASSES, (kinds.USERS,), generator=generator)},
        train=torch.arange(kinds.USERS),
        one_way=TRIPLES,
    )


@pytest.fixture(autouse=True)
def one_way(monkeypatch: pytest.MonkeyPatch) -> Graph:
    graph = made_graph()
    monkeypatch.setattr(kinds, "GRAPH", graph)
    return graph


@pytest.mark.parametrize("changes", [{}, {"layers": 3, "dense": 2}, {"layers": 1}])
def test_predictions_equal_the_dense_formula(changes: dict[str, Any]) -> None:
    kinds.test_predictions_equal_the_dense_formula(RelationalSAGE, changes)


@pytest.mark.parametrize("changes", [{}, {"transform_first": True}])
def test_exact_gradients_equal_those_of_autograd(changes: dict[str, Any]) -> None:
    kinds.test_exact_gradients_equal_those_of_autograd(RelationalSAGE, changes)


@pytest.mark.parametrize("estimator", ["ns", "cvd", "two-way"])
def test_with_all_neighbours_estimators_are_exact(estimator: str) -> None:
    kinds.test_with_all_neighbours_estimators_are_exact(estimator)


@pytest.mark.parametrize("estimator", ["cvd", RAW])
def test_theorem_1_after_an_epoch_per_level_activations_are_exact(estimator: Any) -> None:
    kinds.test_theorem_1_after_an_epoch_per_level_activations_are_exact(estimator, {"layers": 3})


@pytest.mark.parametrize("estimator", [RAW, RAW_CV])
def test_gradients_of_an_epoch_go_back_along_one_way_edges(estimator: Any) -> None:
    """The gradients' histories are read over transposed one-way relations."""
    kinds.test_theorem_1_backwards_gradients_of_an_epoch_are_exact(estimator, 2)


def test_dated_kinds_without_features_have_no_learned_rows(one_way: Graph) -> None:
    """The number of facts, which grows, reaches no weight."""
    graph = one_way.replace(dated=Dated("user", {"user": "at", "shop": "date"}))
    found = [build_for(ModelConfig(hidden=5), g, 3, seed=0) for g in (one_way, graph)]
    assert [model.arguments["rows"] for model in found] == [{"shop": kinds.SHOPS}, {}]
    assert "shop-sells-item" in found[0].used[0]
    assert "shop-sells-item" not in found[1].used[0]
