"""Prints filtered MRR and Hits@K of FB15k-237, official split, beside the published ones.

    .venv/bin/python -m lab.studies.fb15k237 --ways rows messages --seeds 3

`--graph sparse` is a tenth of its triples, two for each entity, `taxonomy` a generated graph like
WordNet's (taxonomy.py).

Ways: `rows` are learned rows with DistMult, without messages; `messages` the same with a relational
GraphSAGE layer over them; `frequent targets` and `other relations` are the simple rules. The epoch
is chosen by validation MRR. `--validate` prints validation scores alone, for choosing settings.

`leak` is no result: it trains `rows` with negatives that leave out validation and test triples too,
to show what that tells a model about them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor

from lab.studies.taxonomy import taxonomy
from vrgcn.data import root_folder
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict
from vrgcn.pairs.decoders import Decoder
from vrgcn.runs.config_file import build
from vrgcn.runs.settings import Settings
from vrgcn.targets.ranking import OF_TRIPLES, EmbeddedEdges, pair_metric, score_edges
from vrgcn.targets.spec import with_usual
from vrgcn.targets.triple_rules import simple_rules
from vrgcn.targets.triple_split import split_triples
from vrgcn.triples.queries import Asked, QuerySource

PUBLISHED = {
    "R-GCN, published": {"mrr": 0.248, "hits@10": 0.414},
    "DistMult, as ConvE's authors report it": {"mrr": 0.24, "hits@10": 0.42},
}
WAYS: dict[str, dict[str, Any]] = {
    "rows": {},
    "leak": {},
    "messages": {"layers": 1, "hidden": 128, "bases": 4, "skip": True},
}


def fb15k237(folder: Path | None = None, share: float = 1.0) -> Graph:
    """The graph with its official split; nodes and relations have the numbers of the files.

    folder: of the files; None: the one of raw files
    share: of the triples that are kept, drawn at random: of few triples little is said of each
        entity
    """
    folder = folder or root_folder(None) / "fb15k237"
    table = pq.read_table(folder / "edges.parquet")
    if share < 1:
        table = table.filter(np.random.default_rng(0).random(len(table)) < share)
    source, relation, target = (
        torch.from_numpy(table[name].to_numpy().copy()) for name in ("src", "rel", "dst")
    )
    split = table["split"].to_numpy()
    nodes = pq.read_metadata(folder / "nodes.parquet").num_rows
    edges, columns = {}, {}
    for number in relation.unique().tolist():
        own, triple = relation == number, ("entity", f"r{number}", "entity")
        edges[triple] = torch.stack([source[own], target[own]])
        columns[triple] = {"split": split[own.numpy()]}
    return Graph.from_kinds({"entity": nodes}, edges, edge_columns=columns)


GRAPHS: dict[str, Callable[[], Graph]] = {
    "fb15k237": fb15k237,
    "sparse": lambda: fb15k237(share=0.1),
    "taxonomy": lambda: taxonomy(6_000),
    "large taxonomy": lambda: taxonomy(40_000),
}


class KnowsHeldOut(QuerySource):
    """Queries whose negatives leave out the triples of all splits: a leak, to be measured."""

    def ask(self, places: Tensor, generator: torch.Generator) -> Asked:
        asked = super().ask(places, generator)
        rows, targets = self.triples.known.partners(asked.sources, asked.directions)
        place = torch.searchsorted(asked.candidates, targets).clamp_(max=len(asked.candidates) - 1)
        drawn = asked.candidates[place] == targets
        return replace(asked, no_negative=(rows[drawn], place[drawn]))


def measured(
    graph: Graph, seed: int, settings: dict[str, Any], splits: list[str], *, leak: bool
) -> dict[str, Any]:
    """One run: scores by split, CPU seconds of training with its evaluations, epochs."""
    values = with_usual({"predict": "relations", "seed": seed, "threads": 1} | settings)
    found = build(Settings, values)
    start = time.process_time()
    job = found.prepare(graph)
    if leak:
        of: Any = job.target
        of.source = KnowsHeldOut(of.edges.triples, of.loss_name, found.train.negatives)
    result = job.train()
    seconds = time.process_time() - start
    triples, decoder = graph.triples, cast(Decoder, job.model.decoder)
    assert triples is not None
    scorer = EmbeddedEdges(decoder, predict(job.model, graph, kind="all"), triples)
    return {
        **{split: score_edges(scorer, triples, split, OF_TRIPLES) for split in splits},
        "cpu_seconds": seconds,
        "epoch": result.epoch,
        "curve": [(point.epoch, point.val) for point in result.curve],
    }


def told(values: list[float]) -> str:
    """Return the mean and the standard deviation."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}"


def line(title: str, runs: list[dict[str, Any]], split: str) -> str:
    scores = "  ".join(
        f"{pair_metric(name).title} {told([run[split][name] for run in runs])}"
        for name in OF_TRIPLES
    )
    return f"{split:5} {title:18} {scores}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", choices=GRAPHS, default="fb15k237")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["rows", "messages"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", type=json.loads, default={}, help="as JSON, by name")
    parser.add_argument("--validate", action="store_true", help="validation scores alone")
    parser.add_argument("--out", type=Path, help="JSON file of all runs")
    options = parser.parse_args()
    splits = ["val"] if options.validate else ["val", "test"]
    graph = split_triples(GRAPHS[options.graph]())
    assert graph.triples is not None
    print(graph, flush=True)
    for title, rule in simple_rules(graph.triples).items():
        for split in splits:
            print(
                line(title, [{split: score_edges(rule, graph.triples, split, OF_TRIPLES)}], split)
            )
    runs: dict[str, list[dict[str, Any]]] = {}
    for way in options.ways:
        runs[way] = []
        settings = WAYS[way] | options.settings
        for seed in range(options.seeds):
            found = measured(graph, seed, settings, splits, leak=way == "leak")
            runs[way].append(found)
            seconds = statistics.mean(run["cpu_seconds"] for run in runs[way])
            for split in splits:
                print(line(way, runs[way], split), f" {seconds:.0f} CPU seconds", flush=True)
            if options.out is not None:
                options.out.write_text(json.dumps(runs, indent=1) + "\n")
    for title, scores in PUBLISHED.items():
        print(f"test  {title}  MRR {scores['mrr']}  Hits@10 {scores['hits@10']}")


if __name__ == "__main__":
    main()
