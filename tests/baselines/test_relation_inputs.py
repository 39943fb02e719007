"""Columns of baselines on graphs of several kinds: each relation has its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.graph.test_relations import history
from vrgcn import Graph
from vrgcn.baselines import RECIPES
from vrgcn.baselines.logistic import fit_logistic
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.relation_inputs import MOST, RelationInputs, fit_columns
from vrgcn.graph.scaling import scale_graph
from vrgcn.inference.fitting import fit_recipe
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import load_model, save_model

TRIPLES = [("fact", "last", "row"), ("fact", "last5", "row"), ("entity", "has", "fact")]


def rows_of_facts(*, wide: int = 0, garbage: bool = False) -> Graph:
    """Eighty rows that see their last fact, whose sign is their label, and the five facts before;
    facts have an entity with a feature.

    wide: further columns of facts; garbage: facts that only test rows see have other features
    """
    generator = torch.Generator().manual_seed(3)
    facts = torch.randn(100, 2, generator=generator)
    if wide:
        more = (torch.rand(100, wide, generator=generator) < 0.05).float()
        facts = torch.cat([facts, more], dim=1)
    rows = torch.arange(80)
    label = (facts[rows + 19, 0] > 0).long()
    if garbage:
        facts[85:] = 1e3
    before = (rows[:, None] + 14 + torch.arange(5)).flatten()
    five = torch.stack([before, rows.repeat_interleave(5)])
    return Graph.from_kinds(
        {"fact": facts, "row": torch.zeros(80, 1), "entity": torch.arange(20.0)[:, None]},
        {
            TRIPLES[0]: torch.stack([rows + 19, rows]),
            TRIPLES[1]: five,
            TRIPLES[2]: torch.stack([torch.arange(100) % 20, torch.arange(100)]),
        },
        {"row": label},
        train=range(40),
        val=range(40, 60),
        test=range(60, 80),
        one_way=TRIPLES,
    )


def test_columns_are_the_formulas_of_each_relation() -> None:
    graph = rows_of_facts()
    columns = fit_columns(Problem.of(graph), 2)
    inputs = columns.inputs
    assert isinstance(inputs, RelationInputs)
    # Own column; last fact: its two columns, its entity's column and degree, 1; five facts: same.
    assert inputs.columns == 1 + (2 + 2 + 1) * 2
    found = columns.train / inputs.scale + inputs.mean
    P = {}
    for name, part in graph.relations.items():
        A = part.adjacency.to_torch().to_dense()
        P[name] = A / A.sum(1, keepdim=True).clamp(min=1)
    x = graph.features.to_dense()
    own = graph.kinds.columns("fact")
    fact = x[:, own.start : own.stop]
    entity = x[:, -1:]
    degree = torch.ones(graph.num_nodes, 1).log1p() * (P["entity-has-fact"].sum(1, True) > 0)
    seen = torch.cat([fact, P["entity-has-fact"] @ entity, degree], dim=1)
    last, five = P["fact-last-row"] @ seen, P["fact-last5-row"] @ seen
    wanted = torch.cat([last, torch.ones(len(x), 1).log1p(), five], dim=1)[graph.train]
    torch.testing.assert_close(found[:, 1:-1], wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found[:, -1], torch.full((40,), 6.0).log(), rtol=1e-4, atol=1e-4)


def test_a_relation_of_its_own_tells_what_the_union_of_relations_hides() -> None:
    """The label is the sign of the last fact, which is one of six in the union."""
    graph, _ = scale_graph(rows_of_facts(), "standard")
    found = predict(fit_logistic(Problem.of(graph), 1), graph)
    right = found.argmax(1) == graph.labels[graph.kinds.nodes("row")]
    assert float(right[60:].double().mean()) > 0.85


@pytest.mark.parametrize("recipe", ["linear-2", "trees-2", "mlp-2", "linear", "trees"])
def test_a_baseline_of_relations_comes_back_whole(recipe: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    graph = rows_of_facts()
    scaled, _ = scale_graph(graph, "standard")
    saved = fit_recipe(RECIPES[recipe], Problem.of(scaled))
    save_model(saved, tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    outputs = predict(saved, scaled)
    assert torch.equal(loaded.predict(graph), outputs)
    some = torch.tensor([5, 70, 3])
    torch.testing.assert_close(loaded.predict(graph, some), outputs[some])


def test_wide_kinds_are_projected_and_many_columns_take_fewer_hops() -> None:
    columns = fit_columns(Problem.of(rows_of_facts(wide=300)), 2)
    assert columns.inputs.columns == 1 + (64 + 2 + 1) * 2
    assert bool(torch.isfinite(columns.train).all())
    inputs = columns.inputs
    many = [[f"fact{n}", "of", "row"] for n in range(30)]
    kinds = {"row": 0} | {f"fact{n}": 100 for n in range(30)}
    assert RelationInputs(kinds, kinds, many, "row", 1).columns == 30 * 101 > MOST
    assert isinstance(inputs, RelationInputs)


def test_facts_that_no_training_or_validation_row_sees_change_no_bit() -> None:
    clean, garbage = (
        fit_columns(Problem.of(rows_of_facts(garbage=other)), 2) for other in (False, True)
    )
    assert torch.equal(clean.train, garbage.train)
    assert torch.equal(clean.val, garbage.val)


def test_relations_without_features_are_read_as_one() -> None:
    """The columns of relations are made of features: without any, baselines read all edges."""
    graph = history(features={"fact": 12, "row": 6, "entity": 3})
    with pytest.raises(Exception, match="no features"):
        fit_logistic(Problem.of(graph), 1)


def test_labels_of_neighbours_are_read_only_if_an_edge_brings_them() -> None:
    """No edge leaves a row: labels would spread nowhere."""
    suited = {name for name, recipe in RECIPES.items() if recipe.suits(rows_of_facts())}
    assert suited == {"linear", "linear-2", "mlp-2", "trees", "trees-2"}
    both_ways = history(labels={"entity": torch.tensor([0, 1, 0])}, train=[0], val=[1], test=[2])
    assert all(recipe.suits(both_ways) for recipe in RECIPES.values())
