"""A search for pairs: simple rules beside networks, scored on validation pairs alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.messages import refused
from tests.targets.test_links import communities
from tests.targets.test_triple_split import knowledge, triples_of
from vrgcn import ModelConfig, TrainConfig, tune
from vrgcn.graph.graph import Graph
from vrgcn.inference.saved import load_model
from vrgcn.pairs.model import PairModel
from vrgcn.targets.links import Links
from vrgcn.targets.pair_rules import simple_rules
from vrgcn.targets.ranking import OF_TRIPLES, score_edges
from vrgcn.targets.triple_rules import simple_rules as triple_rules
from vrgcn.targets.triple_split import split_triples
from vrgcn.training.clock import Clock
from vrgcn.tuning.finishing import TuneResult
from vrgcn.tuning.space import (
    OF_PAIRS,
    PAIR_SPACE,
    SPACE,
    TRIPLE_SPACE,
    Search,
    TriedSettings,
    searched,
)

MODEL = ModelConfig(model="gcn", hidden=16, embedding=8, dropout=0.0, layer_norm=False)
CONFIG = TrainConfig(epochs=4, batch_size=32, learning_rate=0.02, metric="auc")


def search(graph: Graph, folder: Path | None = None, **options: Any) -> TuneResult:
    options = {"trials": 3, "on_note": lambda _: None, **options}
    return tune(graph, MODEL, CONFIG, folder=folder, **options)


def test_the_best_network_is_kept_and_rules_stand_beside_it(tmp_path: Path) -> None:
    graph = communities()
    found = search(graph, tmp_path / "search")
    pairs = graph.pairs
    assert pairs is not None
    assert [each.baseline for each in found.baselines] == list(simple_rules(pairs))
    rules = {each.baseline: each.val for each in found.baselines}
    rule = simple_rules(pairs, 8)["Adamic-Adar"]
    assert rules["Adamic-Adar"] == score_edges(rule, pairs, "val", ("auc",))["auc"]
    assert found.best == max(found.trials, key=lambda trial: trial.val or 0)
    assert found.average is None
    assert found.average_result is None
    assert {row.kind for row in found.standings} == {"network", "baseline"}
    assert {row.name for row in found.standings} >= {"popularity", "trial 0"}
    assert isinstance(load_model(tmp_path / "search" / "best").model, PairModel)
    result = json.loads((tmp_path / "search" / "best" / "result.json").read_text())
    assert result["test"] == found.result.test
    assert 0.5 < found.result.test <= 1
    for file in (tmp_path / "search" / "trials").glob("*/result.json"):
        assert json.loads(file.read_text())["test"] is None  # test pairs play no part


def test_a_search_goes_on_where_it_was_and_refuses_another(tmp_path: Path) -> None:
    graph = communities()
    search(graph, tmp_path / "search", trials=2)
    longer = search(graph, tmp_path / "search", trials=3)
    whole = search(graph, tmp_path / "whole", trials=3)
    assert [t.val for t in longer.trials] == [t.val for t in whole.trials]
    assert longer.result.test == whole.result.test
    with refused():
        tune(graph, replace(MODEL, embedding=4), CONFIG, folder=tmp_path / "search", trials=3)


def test_pairs_have_a_space_of_their_own() -> None:
    assert searched(tuple(SPACE), "links") == tuple(PAIR_SPACE)
    assert searched(tuple(SPACE), "labels") == tuple(SPACE)
    assert searched(("loss",), "links") == ("loss",)
    given = TriedSettings(MODEL, replace(CONFIG, loss="logistic"))
    space = Search(given, tuple(PAIR_SPACE), among=OF_PAIRS)
    assert space.values_of(given)["embedding"] == 8
    starts = list(space.portfolio_values(lambda settings: settings, []))
    assert {"lightgcn", "gcn"} <= {start["model"] for start in starts}
    light = next(start for start in starts if start["model"] == "lightgcn")
    assert light["node_embeddings"] is False


def test_what_cannot_be_searched_is_told() -> None:
    graph = communities()
    with refused():
        search(graph, search=("neighbour_labels",))
    with refused():
        search(graph, baselines=("linear-2",))
    assert graph.pairs is not None
    graph = graph.replace(pairs=replace(graph.pairs, val=graph.pairs.val[:0]))
    with refused():
        search(graph)


def test_rules_have_a_fifth_of_the_time_and_the_first_in_any_case(monkeypatch) -> None:
    now, notes = [0.0], []
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: now[0]))
    scores = Links.simple_scores

    def slow(self: Links, splits: Any, width: int) -> Any:
        for each in scores(self, splits, width):
            now[0] += 15.0
            yield each

    monkeypatch.setattr(Links, "simple_scores", slow)
    given = {"trials": 1, "search": ("learning_rate",), "on_note": notes.append}
    names = list(simple_rules(communities().pairs))
    found = search(communities(), time_limit="100s", **given)
    assert [each.baseline for each in found.baselines] == names[:2]
    assert notes[0] == (f"simple rules had 20% of the time limit: none is scored after {names[1]}")


def test_rules_can_be_left_out() -> None:
    found = search(communities(), trials=1, baselines=(), search=("learning_rate",))
    assert found.baselines == []
    assert found.best.name == "trial 0"


def test_the_edges_of_all_relations_are_searched_without_their_test_triples(
    tmp_path: Path,
) -> None:
    graph = split_triples(knowledge(), (0.6, 0.2, 0.2))
    config = TrainConfig(epochs=3, batch_size=64, negatives=20, estimator="exact", diagnostics=0)
    model = ModelConfig(model="graphsage", layers=0, embedding=8, decoder="distmult", dropout=0.1)
    found = tune(graph, model, config, trials=2, folder=tmp_path / "search", on_note=lambda _: None)
    triples = triples_of(graph)
    assert [each.baseline for each in found.baselines] == list(triple_rules(triples))
    frequent = score_edges(triple_rules(triples)["frequent targets"], triples, "val", OF_TRIPLES)
    assert found.baselines[0].val == frequent["mrr"]
    assert [trial.values["decoder"] for trial in found.trials] == ["distmult", "complex"]
    assert found.trials[1].values["cube_penalty"] == 0.3  # the first of the portfolio
    assert set(found.trials[0].values) == set(TRIPLE_SPACE)
    for file in (tmp_path / "search" / "trials").glob("*/result.json"):
        assert json.loads(file.read_text())["test"] is None
    assert found.result.test is not None
    assert 0 < found.result.test <= 1


def test_own_negatives_are_not_searched() -> None:
    given = TriedSettings(MODEL, replace(CONFIG, loss="softmax"))
    space = Search(given, tuple(PAIR_SPACE), among=OF_PAIRS)
    for start in space.portfolio_values(lambda settings: settings, []):
        assert ("negatives" in start) == (start["negative_sampling"] == "shared")
    changed = space.changed({"negative_sampling": "uniform"})
    assert changed.train.negatives == 1


def test_lift_is_for_lightgcn_with_shared_negatives() -> None:
    space = Search(
        TriedSettings(MODEL, replace(CONFIG, loss="softmax")), among=OF_PAIRS, names=["model"]
    )
    light = {"decoder": "lift", "model": "lightgcn", "negative_sampling": "shared"}
    assert space.changed(light).model.decoder == "lift"
    for other in ({"model": "gcn"}, {"loss": "logistic"}, {"negative_sampling": "uniform"}):
        assert space.changed(light | other).model.decoder == "cosine"
