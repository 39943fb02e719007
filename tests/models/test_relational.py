"""Relational models: trained, resumed, from disk, saved under the user's ids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, ModelConfig, TrainConfig, embeddings, fit, load_model, predict, save_model
from vrgcn.costs.choice import choose_estimator
from vrgcn.costs.order import build_for
from vrgcn.distributed.partitioning import write_parts
from vrgcn.graph.scaling import scale_graph
from vrgcn.inference.predictions import predictions
from vrgcn.models.models import MLP
from vrgcn.models.relational import RelationalGCN, RelationalSAGE, used_relations
from vrgcn.tuning.space import NOT_RELATIONAL, Choice, Search, TriedSettings

USERS, ITEMS, SHOPS = 60, 30, 8
BOUGHT, SOLD = ("user", "bought", "item"), ("item", "sold_by", "shop")


def drawn(seed: int = 0) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)

    def edges(sources: int, targets: int, count: int) -> torch.Tensor:
        ends = [torch.randint(n, (count,), generator=generator) for n in (sources, targets)]
        return torch.stack(ends)

    return {
        "features": {
            "user": torch.randn(USERS, 4, generator=generator) * 3 + 1,
            "item": torch.randn(ITEMS, 3, generator=generator),
            "shop": SHOPS,
        },
        "edges": {BOUGHT: edges(USERS, ITEMS, 200), SOLD: edges(ITEMS, SHOPS, 40)},
        "labels": {"user": torch.randint(3, (USERS,), generator=generator)},
        "train": range(40),
        "val": range(40, 50),
        "test": range(50, 60),
        "ids": {
            "user": [f"u{n}" for n in range(USERS)],
            "item": list(range(100, 100 + ITEMS)),
            "shop": [f"u{n}" for n in range(SHOPS)],  # ids of users too
        },
    }


GRAPH = scale_graph(Graph.from_kinds(**drawn()), "blocks")[0]
SMALL = ModelConfig(hidden=8, dropout=0.2)
CONFIG = TrainConfig(epochs=3, batch_size=20)


def built(config: ModelConfig = SMALL, graph: Graph = GRAPH) -> Any:
    return build_for(config, graph, 3, seed=0)


def assert_same(ours: Any, theirs: Any) -> None:
    assert ours.curve[-1].loss == theirs.curve[-1].loss
    for name, weight in ours.weights.items():
        assert torch.equal(weight, theirs.weights[name]), name


def test_graphs_with_relations_get_relational_models() -> None:
    assert isinstance(built(), RelationalSAGE)
    assert isinstance(built(replace(SMALL, model="gcn")), RelationalGCN)
    assert isinstance(built(replace(SMALL, model="mlp")), MLP)
    assert [table.kind for table in built().rows] == ["shop"]
    more = built(replace(SMALL, node_embeddings=True))
    assert [(table.kind, len(table.rows)) for table in more.rows] == [
        *(("user", USERS), ("item", ITEMS), ("shop", SHOPS)),
    ]
    assert built(replace(SMALL, bases=2)).layers[0].linears[0].weight.shape[0] == 2


def test_a_layer_has_weights_of_the_relations_that_outputs_depend_on() -> None:
    triples = [part.triple for part in GRAPH.relations.values()]
    assert used_relations(triples, ["user"], 2) == [
        ["user-bought-item", "item-rev_bought-user", "shop-rev_sold_by-item"],
        ["item-rev_bought-user"],
    ]


ESTIMATORS = ("exact", "ns", "cvd", "history", "two-way", "two-way-cv")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_training_is_the_same_from_disk_and_resumed(estimator: str, tmp_path: Path) -> None:
    config = replace(CONFIG, estimator=estimator)
    whole = fit(built(), GRAPH, config)
    assert whole.curve[-1].loss < whole.curve[0].loss
    assert_same(whole, fit(built(), GRAPH, replace(config, memory="disk")))
    fit(built(), GRAPH, replace(config, epochs=2), checkpoints=tmp_path / "kept")
    assert_same(whole, fit(built(), GRAPH, config, resume=tmp_path / "kept"))


@pytest.mark.parametrize(
    "changes",
    [
        {"skip": True, "layers": 3},
        {"jumping": "cat"},
        {"jumping": "max", "layers": 3},
        {"norm": "batch", "dense": 2},
        {"bases": 2, "bias": True},
        {"transform_first": "always"},
        {"node_embeddings": True},
        {"layers": 1},
    ],
)
def test_every_setting_trains_and_is_saved(changes: dict[str, Any], tmp_path: Path) -> None:
    model = built(replace(SMALL, **changes))
    fit(model, GRAPH, replace(CONFIG, estimator="two-way", epochs=2))
    save_model(model, tmp_path / "model.safetensors")
    saved = load_model(tmp_path / "model.safetensors")
    assert torch.equal(saved.predict(Graph.from_kinds(**drawn())), predict(model, GRAPH))


def test_learned_rows_follow_their_nodes_to_another_graph(tmp_path: Path) -> None:
    model = built(replace(SMALL, node_embeddings=True))
    fit(model, GRAPH, CONFIG)
    save_model(model, tmp_path / "model.safetensors")
    given = drawn()
    order = torch.randperm(SHOPS, generator=torch.Generator().manual_seed(1))
    place = torch.argsort(order)
    ends = given["edges"][SOLD]
    given["edges"][SOLD] = torch.stack([ends[0], place[ends[1]]])
    given["ids"]["shop"] = [f"u{n}" for n in order.tolist()] + ["new"]
    given["features"]["shop"] = SHOPS + 1
    other = Graph.from_kinds(**given)
    saved = load_model(tmp_path / "model.safetensors")
    assert torch.allclose(saved.predict(other), predict(model, GRAPH), atol=1e-6)
    # A node that the model has not seen has a row of zeros.
    first = torch.stack([torch.tensor([0]), torch.tensor([SHOPS])])
    given["edges"][SOLD] = torch.cat([given["edges"][SOLD], first], dim=1)
    found = saved.predict(Graph.from_kinds(**given))
    assert found.isfinite().all()
    assert not torch.allclose(found, predict(model, GRAPH), atol=1e-6)


def test_predictions_are_of_the_kind_that_has_labels_or_of_the_kind_asked_for() -> None:
    model = built()
    fit(model, GRAPH, CONFIG)
    assert predict(model, GRAPH).shape == (USERS, 3)
    table = predictions(model, GRAPH, nodes=[3, 1]).to_arrow()
    assert table["id"].to_pylist() == ["u3", "u1"]
    assert embeddings(model, GRAPH).shape == (USERS, 8)
    assert embeddings(model, GRAPH, kind="item").shape == (ITEMS, 8)
    every = embeddings(model, GRAPH, kind="all")
    assert torch.equal(every[USERS : USERS + ITEMS], embeddings(model, GRAPH, kind="item"))
    with refused():
        predict(model, GRAPH, kind="shops")


def test_features_of_validation_and_test_nodes_do_not_reach_the_scaling() -> None:
    given, other = drawn(), drawn()
    other["features"]["user"][40:] *= 100
    one, two = (scale_graph(Graph.from_kinds(**g), "blocks")[1] for g in (given, other))
    assert one.same(two)
    other["features"]["item"][3] *= 100  # a kind without labels counts with all its nodes
    assert not one.same(scale_graph(Graph.from_kinds(**other), "blocks")[1])


def test_inductive_training_does_not_depend_on_edges_of_hidden_users() -> None:
    given, config = drawn(), replace(CONFIG, inductive=True, estimator="exact")
    hidden = given["edges"][BOUGHT]
    given["edges"][BOUGHT] = hidden[:, hidden[0] < 40]
    cut = scale_graph(Graph.from_kinds(**given), "blocks")[0]
    one, two = fit(built(), GRAPH, config), fit(built(), cut, config)
    assert [epoch.loss for epoch in one.curve] == [epoch.loss for epoch in two.curve]
    assert one.curve[0].loss != fit(built(), GRAPH, replace(config, inductive=False)).curve[0].loss


def test_two_way_refuses_hundreds_of_relations_and_auto_knows() -> None:
    generator = torch.Generator().manual_seed(0)
    edges = {
        ("node", str(n), "node"): torch.randint(50, (2, 20), generator=generator) for n in range(60)
    }
    labels = torch.randint(2, (50,), generator=generator)
    graph = Graph.from_kinds({"node": 50}, edges, {"node": labels}, train=range(40))
    model = build_for(ModelConfig(hidden=4), graph, 2, seed=0)
    config = TrainConfig(epochs=1, batch_size=8)
    with refused():
        fit(model, graph, replace(config, estimator="two-way"))
    chosen = choose_estimator(model, graph, config)[0].estimator
    assert chosen in ("exact", "cvd")
    fit(model, graph, replace(config, estimator="cvd"))


@pytest.mark.parametrize(
    "changes",
    [
        {"order": "before"},
        {"learned_rows": True},
        {"neighbour_labels": True},
    ],
)
def test_settings_that_relational_models_lack_are_named(changes: dict[str, Any]) -> None:
    with refused():
        built(replace(SMALL, **changes))


def test_settings_of_relational_models_are_refused_elsewhere() -> None:
    plain = Graph([[0], [1]], torch.ones(2, 1), [0, 1], train=[0, 1])
    with refused():
        build_for(ModelConfig(bases=2), plain, 2, seed=0)


def test_a_graph_of_other_kinds_is_refused() -> None:
    given = drawn()
    given["features"]["item"] = ITEMS
    with refused():
        predict(built(), Graph.from_kinds(**given))


def test_graphs_of_several_kinds_are_not_divided(tmp_path: Path) -> None:
    with refused():
        write_parts(GRAPH, torch.zeros(98), tmp_path / "parts", parts=2, scaling="none")


def test_a_search_varies_what_relational_models_have() -> None:
    given = TriedSettings(ModelConfig(), TrainConfig())
    search = Search(given, left_out=["mlp", "residual"], unknown=NOT_RELATIONAL)
    assert "learned_rows" not in search.space
    assert search.space["model"] == Choice(("gcn", "graphsage"))
    starts = list(search.portfolio_values(lambda settings: settings, []))
    assert starts
    assert all(values["model"] != "mlp" for values in starts)
