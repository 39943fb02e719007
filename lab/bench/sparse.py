"""Section `sparse`: steps and evaluations on wide sparse features beside those on few dense ones.

One generated graph, whose nodes have either `COLUMNS` columns with `ENTRIES` entries in each row,
as tags are, or `DENSE` dense columns. The model and the estimator are the same. Sparse features are
multiplied by the first weights before they are propagated, and after: vrgcn/costs/order.py tells
which of the two `auto` takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from lab.bench.bench import Bench
from lab.bench.section import Section, Table
from lab.harness.algorithms import Algorithm, Recipe
from lab.harness.timing import Spread, ratio, seconds, take_turns
from vrgcn.costs.order import settle_order
from vrgcn.data.synthetic import COMMUNITIES, community_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import CSR
from vrgcn.inference.predict import predict
from vrgcn.models.config import ModelConfig

COLUMNS, ENTRIES, DENSE = 4_000, 18, 64
REFERENCE = f"{DENSE} dense columns"
FIRST = f"{COLUMNS:,} sparse columns, P (X W)"
AFTER = f"{COLUMNS:,} sparse columns, (P X) W"


def run(bench: Bench) -> Section:
    dense, sparse = graphs(bench.scale.growth.base_nodes, bench.scale.growth.base_degree)
    usual = bench.architecture
    first = replace(usual, transform_first=True)
    algorithms = {
        REFERENCE: Algorithm(dense, Recipe("two-way"), usual, inductive=False),
        FIRST: Algorithm(sparse, Recipe("two-way", preprocess=False), first, inductive=False),
        AFTER: Algorithm(sparse, Recipe("two-way"), usual, inductive=False),
    }
    steps = {
        name: partial(algorithm.milliseconds, bench.scale.steps)
        for name, algorithm in algorithms.items()
    }
    times = take_turns(steps, bench.track(range(bench.scale.turns), "sparse: taking turns"))
    evaluations = {name: _evaluation(algorithm) for name, algorithm in algorithms.items()}
    evaluated = take_turns(
        evaluations, bench.track(range(bench.scale.heavy_turns), "sparse: evaluating")
    )
    results: dict[str, Any] = {}
    rows = []
    for name in algorithms:
        step, against = Spread.of(times[name]), ratio(times[name], times[REFERENCE])
        whole, beside = Spread.of(evaluated[name]), ratio(evaluated[name], evaluated[REFERENCE])
        rows.append([name, step.text(1), against.text(2), whole.text(2), beside.text(2)])
        results[name] = {
            "step_ms": step.as_dict(),
            "ratio": against.as_dict(),
            "evaluation_seconds": whole.as_dict(),
            "evaluation_ratio": beside.as_dict(),
        }
    auto = FIRST if settle_order(ModelConfig(), sparse).transform_first == "always" else AFTER
    table = Table(
        f"sparse: two-way on {dense.num_nodes:,} nodes, {bench.scale.turns} turns",
        ("", "ms a step", "ratio to dense", "s an evaluation", "ratio to dense"),
        rows,
    )
    note = f"{ENTRIES} entries in a sparse row; auto takes {auto} here"
    return Section([table], {"rows": results, "auto": auto}, [note])


def graphs(nodes: int, degree: int) -> tuple[Graph, Graph]:
    """Return the graph with dense and with sparse features."""
    spec = replace(COMMUNITIES, nodes=nodes, pairs=nodes * degree // 2, train=nodes, val=0, test=0)
    graph = community_graph(spec)
    generator = torch.Generator().manual_seed(0)
    dense = graph.with_features(torch.randn(nodes, DENSE, generator=generator))
    # Few columns are frequent, as with tags: a row's columns are the squares of uniform numbers.
    places = torch.rand(nodes, ENTRIES, generator=generator).square().mul(COLUMNS).long()
    places = places.sort(1).values
    kept = torch.ones_like(places, dtype=torch.bool)
    kept[:, 1:] = places.diff(dim=1) > 0
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), kept.sum(1).cumsum(0)])
    tags = CSR(indptr, places[kept], torch.ones(int(indptr[-1])), COLUMNS)
    return dense, graph.with_features(tags.to_torch())


def _evaluation(algorithm: Algorithm) -> Callable[[], float]:
    return partial(seconds, partial(predict, algorithm.model, algorithm.batches.graph))
