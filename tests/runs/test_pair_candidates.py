"""What auto stands for where links are predicted: models, then minibatches and estimators."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pairs.test_relations import BOUGHT, store
from tests.targets.test_links import communities
from vrgcn.graph.graph import Graph
from vrgcn.runs import pair_candidates
from vrgcn.runs.candidates import candidates, ways
from vrgcn.runs.config_file import build
from vrgcn.runs.job import job_of
from vrgcn.runs.settings import Candidate, Settings
from vrgcn.targets.pair_split import split_pairs
from vrgcn.targets.spec import with_usual
from vrgcn.training.config import TrainConfig


def settings(predict: str = "edges", **given: Any) -> Settings:
    return build(Settings, with_usual({"predict": predict, "diagnostics": 0, **given}))


def bought() -> Graph:
    return split_pairs(store(), BOUGHT, (0.7, 0.15, 0.15))


def models(graph: Graph, **given: Any) -> dict[str, Candidate]:
    asked = settings(BOUGHT if graph.kinds.named else "edges", **given)
    return {each.name: each for each in candidates(asked.model, asked.train, graph)}


def ways_of(graph: Graph, model: str, **given: Any) -> list[Candidate]:
    asked = settings(BOUGHT if graph.kinds.named else "edges", **given)
    chosen = models(graph, **given)[model]
    return ways(chosen, job_of(chosen, graph), asked.train, graph)


def test_models_of_nodes_of_one_kind() -> None:
    found = models(communities())
    gcn, gae, light = (found[name] for name in ("gcn", "gae", "lightgcn by lift"))
    assert (gcn.model.decoder, gcn.train.loss, gcn.model.dropout) == ("cosine", "softmax", 0.3)
    assert (gcn.train.negative_sampling, gcn.train.negatives) == ("shared", 512)
    assert (gae.model.decoder, gae.train.loss, gae.model.dropout) == ("dot", "auto", 0.0)
    assert (gae.train.negatives, light.train.learning_rate) == (1, 0.02)
    assert (gcn.gain, gae.gain, light.gain) == (0.0, 0.002, 0.002)


def test_between_kinds_learned_rows_stand_beside_features() -> None:
    usual, light, gcn = models(bought()).values()
    assert (usual.model.model, usual.model.layers) == ("graphsage", 1)
    assert usual.model.node_embeddings
    assert (light.model.model, light.model.decoder) == ("lightgcn", "lift")
    assert not gcn.model.node_embeddings
    assert {each.train.metric for each in (usual, light, gcn)} == {"ndcg@20"}


def test_ways_begin_with_that_of_the_job() -> None:
    first, *others = ways_of(communities(), "gcn")
    assert first.name == "nodes by exact"
    assert first.train.estimator == "exact"
    names = [each.name for each in others]
    assert names == ["nodes by ns", "nodes by two-way", "pairs by exact", "pairs by ns"]
    assert {each.train.pair_batches for each in others} == {"nodes", "pairs"}
    assert all(each.train.patience for each in others)


def test_more_negatives_and_more_pairs_are_more_work() -> None:
    graph, works = communities(), []
    for changes in ({}, {"negatives": 8}, {"negative_sampling": "shared", "negatives": 64}):
        given = {"pair_batches": "nodes", "estimator": "exact", "loss": "softmax", **changes}
        works.append(job_of(*models(graph, model="gcn", **given).values(), graph).epoch_work())
    pairs = graph.pairs
    assert pairs is not None
    assert works[2] - works[0] == pytest.approx(120 * 64 / 300)  # one row for each of 120 sources
    (one,) = models(
        graph, model="gcn", pair_batches="pairs", estimator="exact", loss="softmax"
    ).values()
    job = job_of(one, graph)
    scored = job.target.scoring_work(job.costs(["exact"])["exact"].steps)
    assert scored == pytest.approx(len(pairs.train) / 8)


@pytest.mark.parametrize(
    "given", [{"model": "gcn"}, {"decoder": "mlp"}, {"loss": "bpr"}, {"epochs": 29}]
)
def test_nothing_is_compared_where_the_settings_are_given_or_the_run_is_short(
    given: dict[str, Any],
) -> None:
    (only,) = models(communities(), **given).values()
    assert only.model.model == "gcn"
    found = settings(**given).settled(communities(), only).as_dict()
    assert {name: found[name] for name in given} == given


def test_what_is_given_holds_for_every_candidate() -> None:
    given = {"estimator": "two-way", "dropout": 0.1, "batch_size": 40, "embedding": 8}
    found = models(communities(), **given)
    assert len(found) == 3
    for each in found.values():
        assert (each.train.estimator, each.train.batch_size) == ("two-way", 40)
        assert (each.model.dropout, each.model.embedding) == (0.1, 8)
    names = [each.name for each in ways_of(communities(), "gcn", **given)]
    assert names == ["nodes by two-way", "pairs by two-way"][:1]


def test_a_large_graph_has_one_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_candidates, "_WORK", 10.0)
    assert [*models(communities())] == ["gcn"]
    (light,) = models(bought()).values()
    assert (light.model.model, light.train.pair_batches) == ("lightgcn", "nodes")
    assert light.model.embedding == 128
    (given,) = models(bought(), embedding=32).values()
    assert given.model.embedding == 32


def test_rankings_of_very_many_pairs_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_candidates, "_RANKED", 40 * 24 - 1)

    def every(**given: Any) -> int:
        (only,) = models(bought(), epochs=5, **given).values()
        return only.train.evaluate_every

    assert (every(), every(evaluate_every=2), every(metric="auc")) == (5, 2, 1)


def test_patience_counts_evaluations_on_pairs() -> None:
    graph = communities()
    assert graph.pairs is not None
    steps = -(-120 // 40)
    found = settings(model="gcn", batch_size=40, pair_batches="nodes").settled(graph)
    assert found.train.patience == max(10, -(-100 // steps))
    assert settings(model="gcn", select="last").settled(graph).train.patience == 0
    assert TrainConfig().patience is None
