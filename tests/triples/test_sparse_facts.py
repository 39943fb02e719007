"""Knowledge graphs that say little of each entity, such as dictionaries."""

from __future__ import annotations

import numpy as np
import torch

from tests.targets.test_triple_split import triples_of
from vrgcn.graph.graph import Graph
from vrgcn.runs.config_file import build
from vrgcn.runs.settings import Settings
from vrgcn.targets.ranking import score_edges
from vrgcn.targets.spec import with_usual
from vrgcn.targets.triple_rules import simple_rules
from vrgcn.targets.triple_split import split_triples

WORDS = 250  # nouns, and as many verbs


def dictionary() -> Graph:
    """Nouns and verbs in trees of the same shape; a verb is derived from each noun. Both directions
    of a pair are triples of their own; most of the test ones have the other in training."""
    rng = np.random.default_rng(0)
    above = np.array([0, *(rng.integers(max(0, n // 4 - 2), n // 4 + 1) for n in range(1, WORDS))])
    words = np.arange(WORDS)
    trees = np.stack([words[1:], above[1:]])
    derived = np.stack([words, words + WORDS])
    edges = {
        ("word", "kind_of", "word"): np.concatenate([trees, trees + WORDS], 1),
        ("word", "derived_from", "word"): np.concatenate([derived, derived[::-1]], 1),
    }
    splits = {
        name: {"split": rng.choice(["train", "val", "test"], ends.shape[1], p=[0.8, 0.1, 0.1])}
        for name, ends in edges.items()
    }
    tensors = {name: torch.from_numpy(ends.copy()) for name, ends in edges.items()}
    return split_triples(Graph.from_kinds({"word": 2 * WORDS}, tensors, edge_columns=splits))


def test_the_default_learns_more_than_rules_and_keeps_it() -> None:
    graph = dictionary()
    triples = triples_of(graph)
    rule = score_edges(simple_rules(triples)["other relations"], triples, "val", ("mrr",))["mrr"]
    given = {"predict": "relations", "threads": 1, "diagnostics": 0, "patience": 0}
    given |= {"batch_size": 128, "epochs": 30, "evaluate_every": 10}
    scores = {}
    for name, settings in (("default", {}), ("free", {"cube_penalty": 0.0})):
        values = with_usual(given | settings)
        curve = build(Settings, values).prepare(graph).train().curve
        scores[name] = [point.val for point in curve if point.val is not None]
    assert rule > 0.3
    assert scores["default"][-1] > rule + 0.1
    assert scores["default"][-1] > max(scores["default"]) - 0.05
    assert scores["default"][-1] > scores["free"][-1] + 0.1
