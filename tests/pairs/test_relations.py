"""Pairs of a relation between kinds: splits, leaks, training, files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from tests.messages import refused
from tests.targets.test_pair_split import as_set, pairs_of
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.kinds import Kinds
from vrgcn.runs.recommend import recommend
from vrgcn.runs.run import load_run
from vrgcn.runs.train import train
from vrgcn.targets.pair_rules import simple_rules
from vrgcn.targets.pair_split import RULE_OF_KINDS, split_pairs

BOUGHT = "user-bought-item"


def store(users: int = 40, items: int = 24) -> Graph:
    """Users of three tastes buy items of their taste; users follow each other; items have two
    columns of their own and one that is a mean over `bought`."""
    generator = torch.Generator().manual_seed(0)
    user = torch.arange(users).repeat_interleave(6)
    item = (user % 3 + 3 * torch.randint(items // 3, user.shape, generator=generator)) % items
    follows = torch.randint(users, (2, 60), generator=generator)
    features = torch.randn(items, 3, generator=generator)
    return Graph.from_kinds(
        {"user": users, "item": features},
        {
            ("user", "bought", "item"): torch.stack([user, item]),
            ("user", "follows", "user"): follows,
        },
        ids={"user": [f"u{n}" for n in range(users)], "item": [f"i{n}" for n in range(items)]},
        columns={"item": ["size", "price", "bought.rating"]},
    )


def kinds_of(graph: Graph) -> Kinds:
    return graph.kinds


def test_pairs_have_the_nodes_of_their_kinds_and_no_other_relation_changes() -> None:
    whole = store()
    graph = split_pairs(whole, BOUGHT)
    pairs, kinds = pairs_of(graph), kinds_of(graph)
    assert pairs.directed
    assert pairs.kinds == ("user", "item")
    assert (pairs.sources, pairs.targets) == (kinds.range("user"), kinds.range("item"))
    everything = torch.cat([pairs.train, pairs.val, pairs.test])
    assert len(everything) == whole.relations[BOUGHT].num_edges
    assert set(everything[:, 0].tolist()) <= set(pairs.sources)
    assert set(everything[:, 1].tolist()) <= set(pairs.targets)
    for name in ("val", "test"):
        assert set(pairs.negatives[name][:, 1].tolist()) <= set(pairs.targets)
    follows = "user-follows-user"
    assert graph.relations[follows].num_edges == whole.relations[follows].num_edges


def test_validation_and_test_pairs_are_in_neither_direction_of_the_relation() -> None:
    graph = split_pairs(store(), BOUGHT)
    pairs = pairs_of(graph)
    held = as_set(torch.cat([pairs.val, pairs.test]))
    assert held
    for name, relation in graph.relations.items():
        A = relation.adjacency
        edges = as_set(torch.stack([A.indices, A.row_of_entry], dim=1))
        if name in (BOUGHT, "item-rev_bought-user"):
            assert len(edges) == len(pairs.train)
        assert not edges & (held | {(v, u) for u, v in held})


def test_features_that_know_all_edges_of_the_relation_are_set_to_zero() -> None:
    whole = store()
    graph = split_pairs(whole, BOUGHT)
    before, after = whole.features.to_dense(), graph.features.to_dense()
    assert before[:, 2].any()
    assert not after[:, 2].any()
    assert torch.equal(before[:, :2], after[:, :2])
    follows = split_pairs(whole, "user-follows-user")
    assert torch.equal(follows.features.to_dense(), before)
    assert RULE_OF_KINDS in pairs_of(graph).rules


def test_leaving_one_out_takes_one_test_and_one_validation_pair_of_each_source() -> None:
    pairs = pairs_of(split_pairs(store(), BOUGHT, leave_one_out=True))
    everything = torch.cat([pairs.train, pairs.val, pairs.test])
    users, counts = everything[:, 0].unique(return_counts=True)
    enough = users[counts >= 3]
    for part in (pairs.val, pairs.test):
        assert torch.equal(part[:, 0].sort().values, enough)
    assert set(pairs.train[:, 0].tolist()) == set(users.tolist())
    again = pairs_of(split_pairs(store(), BOUGHT, leave_one_out=True))
    assert torch.equal(pairs.test, again.test)


def test_bought_together_counts_ways_of_three_steps() -> None:
    pairs = pairs_of(split_pairs(store(), BOUGHT))
    A = torch.zeros(40, 24)
    A[pairs.train[:, 0], pairs.train[:, 1] - 40] = 1
    rule = simple_rules(pairs)["bought together"]
    assert torch.equal(rule.against(torch.tensor([5, 9])), (A @ A.t() @ A)[[5, 9]])
    wanted = (A @ A.t() @ A)[pairs.test[:, 0], pairs.test[:, 1] - 40]
    assert torch.equal(rule.score(pairs.test), wanted)


def test_a_relation_that_does_not_exist_is_refused() -> None:
    with refused():
        split_pairs(store(), "user-buys-item")
    with refused():
        split_pairs(store(), "item-rev_bought-user")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    save_graph(store(), folder / "graph")
    train(
        folder / "graph",
        predict=BOUGHT,
        out=folder / "run",
        model="gcn",
        epochs=25,
        batch_size=128,
        hidden=16,
        embedding=8,
        estimator="exact",
        metric="auc",
        ratio=(0.7, 0.1, 0.2),
    )
    return folder / "run"


def test_tastes_are_learned_without_features_of_users(run: Path) -> None:
    """The untrained model has an AUC of about one half."""
    result = load_run(run).result
    assert result is not None
    assert result["test"] > 0.7


def test_a_simple_rule_recommends_in_place_of_the_model(run: Path) -> None:
    found = recommend(run, ["u3", "u7"], top=4, by="ease").table
    pairs = load_run(run).graph().pairs
    assert found is not None
    assert pairs is not None
    users, first = torch.tensor([3, 7]), pairs.targets.start
    scores = simple_rules(pairs)["EASE"].against(users)
    rows, known = pairs.known.partners(users)
    scores[rows, known - first] = -torch.inf
    best = scores.topk(4)
    assert found["score"].to_pylist() == pytest.approx(best.values.flatten().tolist())
    assert found["item"].to_pylist() == [f"i{place}" for place in best.indices.flatten().tolist()]
    with refused():
        recommend(run, ["u3"], by="nothing")


def test_recommendations_are_items_under_the_ids_of_their_kind(run: Path, tmp_path: Path) -> None:
    from vrgcn.cli import main

    for_, out = tmp_path / "users.txt", tmp_path / "top.parquet"
    for_.write_text("u3\nu7\n")
    main(["recommend", str(run), "--top", "4", "--for", str(for_), "--out", str(out)])
    table = pq.read_table(out)
    assert table.column_names == ["user", "item", "rank", "score"]
    rows = table.to_pylist()
    assert [row["user"] for row in rows] == ["u3"] * 4 + ["u7"] * 4
    graph = store()
    A = graph.relations[BOUGHT].adjacency
    bought = as_set(torch.stack([A.indices, A.row_of_entry - 40], dim=1))
    for row in rows:
        assert (int(row["user"][1:]), int(row["item"][1:])) not in bought
    main(["evaluate", str(run)])
    scored = tmp_path / "scored.parquet"
    main(["predict", str(run), "--pairs", str(out), "--out", str(scored)])
    again = pq.read_table(scored).to_pylist()
    assert [r["score"] for r in again] == pytest.approx([r["score"] for r in rows], rel=1e-4)
