"""One name says what is predicted: labels, a relation, a column of a relation, or all relations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vrgcn
from tests.messages import refused
from tests.targets.test_links import communities, model_of
from vrgcn import Graph, TrainConfig, fit, load_graph, split_pairs
from vrgcn.targets.predicted import check_predicted, kind_of, label_names, offered
from vrgcn.targets.spec import with_usual


@pytest.fixture
def store(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    users = pd.DataFrame(
        {"id": range(40), "age": rng.normal(size=40), "churned": ["no", "yes"] * 20}
    )
    orders = pd.DataFrame({"user": np.arange(120) % 40, "item": np.arange(120) * 7 % 25})
    orders["rating"] = rng.normal(size=120)
    Graph.from_tables(
        {"user": users},
        {("user", "bought", "item"): orders},
        label="user.churned",
        ratio=(0.6, 0.2, 0.2),
        keep="bought.rating",
        out=tmp_path / "store",
    )
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("labels", (None, "churned", "user.churned", "user.is-a-customer", "labels")),
        ("links", ("edges", "user-bought-item", "user-bought.online-item")),
        ("values", ("user-bought-item.rating", "edges.x", "relations.x")),
        ("relations", ("relations",)),
    ],
)
def test_a_name_says_the_kind_of_target(kind: str, names: tuple[str | None, ...]) -> None:
    assert [kind_of(name) for name in names] == [kind] * len(names)


def test_a_relation_with_a_dot_in_its_name_has_the_defaults_of_links() -> None:
    assert with_usual({"predict": "user-bought.online-item"})["metric"] == "ndcg@20"
    assert with_usual({"predict": "user-rated-item.stars"})["decoder"] == "distmult"
    assert with_usual({"predict": "relations", "layers": 2})["layers"] == 2
    assert with_usual({"predict": "churned"}) == {"predict": "churned"}


def test_a_graph_offers_labels_relations_and_columns(store: Path) -> None:
    graph = load_graph(store)
    assert offered(graph, store) == [
        *("user.churned", "user-bought-item", "user-bought-item.rating", "relations")
    ]
    assert label_names(graph, None) == ["user.labels"]
    assert offered(communities(), None) == ["edges"]
    for name in ("churned", "user.churned", "user-bought-item", "user-bought-item.rating"):
        check_predicted(name, graph, store)


def test_a_wrong_name_is_told_what_there_is(store: Path) -> None:
    graph = load_graph(store)
    with refused():
        check_predicted("user.churn", graph, store)
    with refused():
        check_predicted("user-buys-item", graph, store)


@pytest.mark.parametrize(
    "predict",
    [
        "user.zip",
        "bought.amount",
        "item.colour",
    ],
)
def test_a_column_that_is_not_kept_is_refused_with_how_to_import_it(
    store: Path, predict: str
) -> None:
    with refused():
        check_predicted(predict, load_graph(store), store)
    plain = Graph([[0], [1]], [[1.0], [2.0]], [0, 1])
    with refused():
        check_predicted("zip", plain, None)
    with refused():
        check_predicted("shop.zip", plain, None)


def test_the_labels_column_trains_as_without_the_flag(vrgcn, store: Path) -> None:
    flags = ("--epochs", 1, "--no-baseline", "--model", "graphsage", "--hidden", 4)
    code, _, error = vrgcn("train", store, *flags, "--predict", "user.churned", "--out", "named")
    assert code == 0, error
    assert vrgcn("train", store, *flags, "--out", "usual")[0] == 0
    model = [(store.parent / run / "model.safetensors").read_bytes() for run in ("named", "usual")]
    assert model[0] == model[1]
    assert vrgcn("evaluate", "named")[0] == 0
    assert vrgcn("predict", "named", "--out", "p.csv")[0] == 0
    code, _, error = vrgcn("train", store, "--predict", "user.paid", "--out", "wrong")
    assert code == 1
    assert "--predict user.paid: the graph offers user.churned, user-bought-item" in error


def test_fit_and_train_take_the_same_names(store: Path, tmp_path: Path) -> None:
    graph = communities()
    whole = Graph(graph.edge_index(), graph.features)
    config = TrainConfig(epochs=1, estimator="exact", seed=4)
    here = fit(model_of(graph), whole, config, predict="edges")
    there = fit(model_of(graph), split_pairs(whole, seed=4), config)
    assert here.test == there.test
    with refused():
        fit(model_of(graph), graph, config, predict="edges")
    with refused():
        fit(model_of(graph), whole, config, predict="user-bought-item")
    run = vrgcn.train(
        store, out=tmp_path / "run", predict="user-bought-item.rating", epochs=1, hidden=4
    )
    assert run.config["predict"] == "user-bought-item.rating"
