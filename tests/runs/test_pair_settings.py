"""What auto stands for where links are predicted: a model, minibatches and an estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.pairs.test_relations import BOUGHT, store
from tests.targets.test_links import communities
from vrgcn.graph.graph import Graph
from vrgcn.pairs.model import PairModel
from vrgcn.runs import pair_settings
from vrgcn.runs.config_file import build
from vrgcn.runs.folder import read_config
from vrgcn.runs.job import Job
from vrgcn.runs.pair_settings import epoch_work
from vrgcn.runs.pilots import pilot, prepared
from vrgcn.runs.settings import Settings
from vrgcn.runs.train import train
from vrgcn.targets.pair_split import split_pairs
from vrgcn.targets.spec import with_usual
from vrgcn.training.config import TrainConfig


def settings(predict: str = "edges", **given: Any) -> Settings:
    return build(Settings, with_usual({"predict": predict, "diagnostics": 0, **given}))


def bought() -> Graph:
    return split_pairs(store(), BOUGHT, (0.7, 0.15, 0.15))


class Pilots:
    """Stands for pilots: keeps their jobs and epochs, and answers scores by model and way."""

    def __init__(self, models: dict[str, float], ways: dict[tuple[str, str], float]) -> None:
        self.models, self.ways = models, ways
        self.jobs: list[tuple[Job, int]] = []

    def __call__(self, job: Job, epochs: int, *_: Any, **__: Any) -> list[float]:
        assert isinstance(job.model, PairModel)
        self.jobs.append((job, epochs))
        encoder, decoder = (job.model.arguments[name] for name in ("encoder", "decoder"))
        way = job.config.pair_batches, job.config.estimator
        return [self.models[f"{encoder} {decoder}"] + self.ways.get(way, 0.0)]


def chosen(monkeypatch: pytest.MonkeyPatch, pilots: Pilots, graph: Graph, **given: Any) -> Settings:
    monkeypatch.setattr(pair_settings, "pilot", pilots)
    notes: list[str] = []
    predict = BOUGHT if graph.kinds.named else "edges"
    found = settings(predict, **given).settled(graph, notes.append)
    assert len(notes) == bool(pilots.jobs)
    return found


def described(found: Settings) -> tuple[Any, ...]:
    model, config = found.model, found.train
    return model.model, model.decoder, config.loss, config.pair_batches, config.estimator


def test_the_best_model_is_taken_and_then_its_best_minibatches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = {"gcn cosine": 0.8, "gcn dot": 0.803, "lightgcn lift": 0.7}
    found = chosen(monkeypatch, Pilots(models, {("nodes", "two-way"): 0.01}), communities())
    assert described(found) == ("gcn", "dot", "auto", "nodes", "two-way")
    assert (found.model.dropout, found.train.negatives) == (0.0, 1)
    found = chosen(monkeypatch, Pilots({**models, "gcn dot": 0.801}, {}), communities())
    assert described(found) == (
        "gcn",
        "cosine",
        "softmax",
        "nodes",
        "exact",
    )  # the usual: hardly less
    assert (found.train.negative_sampling, found.train.negatives) == ("shared", 512)


def test_between_kinds_learned_rows_stand_beside_features(monkeypatch: pytest.MonkeyPatch) -> None:
    models = {
        "relational-graphsage cosine": 0.3,
        "lightgcn lift": 0.2,
        "relational-gcn cosine": 0.1,
    }
    found = chosen(monkeypatch, Pilots(models, {("nodes", "exact"): 0.1}), bought())
    assert described(found) == ("graphsage", "cosine", "softmax", "nodes", "exact")
    assert (found.model.layers, found.model.node_embeddings) == (1, True)
    assert found.train.metric == "ndcg@20"
    models["lightgcn lift"] = 0.4
    found = chosen(monkeypatch, Pilots(models, {("pairs", "ns"): 0.1}), bought())
    assert described(found) == ("lightgcn", "lift", "softmax", "pairs", "ns")
    assert (found.train.learning_rate, found.train.temperature) == (0.02, None)


def test_pilots_have_the_same_counted_work_and_score_no_test_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pilots = Pilots({"gcn cosine": 0.8, "gcn dot": 0.7, "lightgcn lift": 0.7}, {})
    chosen(monkeypatch, pilots, communities())
    works = [(epoch_work(job) or 0.0, epochs) for job, epochs in pilots.jobs]
    budget = 5 * works[0][0]
    assert len({epochs for _, epochs in works}) > 1
    for work, epochs in works:
        assert epochs * work <= budget < (epochs + 1) * work
    job, _ = pilots.jobs[0]
    pilot(job, 1)
    assert not job.target.has("test")


def test_more_negatives_and_more_pairs_are_more_work() -> None:
    graph, few = communities(), settings(model="gcn", pair_batches="nodes").settled(communities())
    works = []
    for changes in ({}, {"negatives": 8}, {"negative_sampling": "shared", "negatives": 64}):
        config = few.changed({"estimator": "exact", "loss": "softmax", **changes})
        works.append(epoch_work(prepared(config.model, config.train, graph)) or 0.0)
    pairs = graph.pairs
    assert pairs is not None
    assert works[2] - works[0] == pytest.approx(120 * 64 / 300)  # one row for each of 120 sources
    one = settings(model="gcn", pair_batches="pairs", estimator="exact", loss="softmax")
    with_pairs = one.settled(graph)
    job = prepared(with_pairs.model, with_pairs.train, graph)
    cost = job.costs(["exact"])["exact"]
    assert (epoch_work(job) or 0.0) - cost.work == pytest.approx(len(pairs.train) / 8)


@pytest.mark.parametrize(
    "given", [{"model": "gcn"}, {"decoder": "mlp"}, {"loss": "bpr"}, {"epochs": 29}]
)
def test_nothing_is_compared_where_the_settings_are_given_or_the_run_is_short(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    pilots = Pilots({}, {})
    found = chosen(monkeypatch, pilots, communities(), **given)
    assert pilots.jobs == []
    assert found.model.model == "gcn"
    for name, value in given.items():
        assert found.as_dict()[name] == value


def test_what_is_given_holds_for_every_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    models = {"gcn cosine": 0.7, "gcn dot": 0.7, "lightgcn lift": 0.8}
    given = {"estimator": "two-way", "dropout": 0.1, "batch_size": 40, "embedding": 8}
    pilots = Pilots(models, {})
    found = chosen(monkeypatch, pilots, communities(), **given)
    assert described(found) == ("lightgcn", "lift", "softmax", "nodes", "two-way")
    for job, _ in pilots.jobs:
        assert (job.config.estimator, job.config.batch_size) == ("two-way", 40)
        assert isinstance(job.model, PairModel)
        assert job.model.arguments["classes"] == 8


def test_a_large_graph_has_no_pilots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_settings, "_WORK", 10.0)
    pilots = Pilots({}, {})
    assert chosen(monkeypatch, pilots, communities()).model.model == "gcn"
    found = chosen(monkeypatch, pilots, bought())
    assert (found.model.model, found.train.pair_batches) == ("lightgcn", "nodes")
    assert found.model.embedding == 128
    assert chosen(monkeypatch, pilots, bought(), embedding=32).model.embedding == 32
    assert pilots.jobs == []


def test_rankings_of_very_many_pairs_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_settings, "_RANKED", 40 * 24 - 1)
    found = settings(BOUGHT, epochs=5).settled(bought())
    assert found.train.evaluate_every == 5
    assert settings(BOUGHT, epochs=5, evaluate_every=2).settled(bought()).train.evaluate_every == 2
    assert settings(BOUGHT, epochs=5, metric="auc").settled(bought()).train.evaluate_every == 1


def test_nodes_without_features_have_learned_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = communities().with_features(torch.ones(120, 1))
    pilots = Pilots({"lightgcn lift": 0.8, "gcn cosine": 0.7}, {})
    assert chosen(monkeypatch, pilots, graph).model.model == "lightgcn"


def test_the_same_seed_chooses_the_same_and_the_run_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    graph = bought()
    given = {"hidden": 8, "embedding": 8, "epochs": 30}
    first = settings(BOUGHT, **given).settled(graph)
    assert settings(BOUGHT, **given).settled(graph) == first
    assert first.settled(graph) == first
    split = {"ratio": (0.7, 0.15, 0.15), "scaling": "none"}
    run = train(store(), out=tmp_path / "run", predict=BOUGHT, **split, **given)
    kept = read_config(run.folder)
    chosen = {name: kept[name] for name in ("model", "estimator", "pair_batches", "batch_size")}
    assert chosen == {name: first.as_dict()[name] for name in chosen}
    monkeypatch.setattr(pair_settings, "pilot", Pilots({}, {}))  # would fail
    again = train(store(), out=tmp_path / "run", resume=True, epochs=31)
    assert read_config(again.folder)["pair_batches"] == chosen["pair_batches"]


def test_patience_counts_evaluations_on_pairs() -> None:
    graph = communities()
    assert graph.pairs is not None
    steps = -(-120 // 40)
    found = settings(model="gcn", batch_size=40, pair_batches="nodes").settled(graph)
    assert found.train.patience == max(10, -(-100 // steps))
    assert settings(model="gcn", select="last").settled(graph).train.patience == 0
    assert TrainConfig().patience is None
