"""Compares the decoders cosine and lift on which films users of MovieLens 100k rated.

    .venv/bin/python -m lab.studies.films --seeds 2

85% of the pairs are for training, 5% for validation, 10% for the test, drawn by the seed. LightGCN,
shared negatives, softmax, minibatches of nodes by two-way. Validation NDCG@20 chooses the
temperature of each decoder and the epoch; the test pairs are scored for that one. Simple rules
stand beside them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch

from lab.studies.pair_ways import RATED, movies
from vrgcn import Graph, PairModel, TrainConfig, fit, predict
from vrgcn.targets.pair_rules import simple_rules
from vrgcn.targets.ranking import EmbeddedEdges, score_edges

NAMES = ("auc", "recall@20", "ndcg@20")
CONFIG: dict[str, Any] = {
    "estimator": "two-way",
    "pair_batches": "nodes",
    "batch_size": 512,
    "loss": "softmax",
    "negative_sampling": "shared",
    "negatives": 4096,
    "metric": "ndcg@20",
    "evaluate_every": 5,
    "diagnostics": 0,
}


def trained(graph: Graph, decoder: str, config: TrainConfig) -> tuple[PairModel, float]:
    """A trained model and its best validation score."""
    torch.manual_seed(config.seed)
    model = PairModel(
        "lightgcn",
        decoder,
        relation=RATED,
        directed=True,
        in_features=graph.num_features,
        classes=64,
        nodes=graph.num_nodes,
        layers=3,
    )
    result = fit(model, graph, config)
    assert result.val is not None
    return model, result.val


def tested(graph: Graph, decoder: str, config: dict[str, Any], temperatures: list[float]) -> Any:
    """Test scores by name of the temperature that validation chooses."""
    assert graph.pairs is not None
    found = []
    for temperature in temperatures:
        start = time.process_time()
        model, val = trained(graph, decoder, TrainConfig(**config, temperature=temperature))
        seconds = time.process_time() - start
        print(f"{decoder} at {temperature}: validation {val:.4f}, {seconds:.0f} CPU s", flush=True)
        found.append((val, model))
    model = max(found, key=lambda each: each[0])[1]
    scorer = EmbeddedEdges(model.decoder, predict(model, graph, kind="all"), graph.pairs)
    return score_edges(scorer, graph.pairs, "test", NAMES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--decoders", nargs="*", default=["cosine", "lift"])
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.1, 0.2])
    options = parser.parse_args()
    torch.set_num_threads(1)
    scores: dict[str, list[dict[str, float]]] = {}
    for seed in range(options.seeds):
        graph = movies(seed).graph
        assert graph.pairs is not None
        config = {**CONFIG, "seed": seed, "epochs": options.epochs}
        for decoder in options.decoders:
            found = tested(graph, decoder, config, options.temperatures)
            scores.setdefault(decoder, []).append(found)
        rules = simple_rules(graph.pairs)
        for name in rules:
            start = time.process_time()
            scores.setdefault(name, []).append(score_edges(rules[name], graph.pairs, "test", NAMES))
            print(f"{name}: {time.process_time() - start:.1f} CPU s", flush=True)
    for title, rows in scores.items():
        means = (f"{name} {statistics.mean(row[name] for row in rows):.4f}" for name in NAMES)
        print(title, "  ".join(means))


if __name__ == "__main__":
    main()
