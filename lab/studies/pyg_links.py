"""Links of PubMed by PyG and by ours: CPU seconds to the same validation AUC, one thread.

    .venv/bin/python -m lab.studies.pyg_links --budget 20
    PYTHONPATH=wheels .venv/bin/python -m lab.studies.pyg_links --loader   # needs torch-sparse

The same GAE (two GCN layers of 64, product, one negative for each pair, Adam), the same split and
score for all, at each of several learning rates, of which the soonest counts.

    PyG, full batch      GCNConv with a cached matrix in PyTorch's CSR: a step is an epoch
    PyG, LinkNeighborLoader   minibatches of 512 pairs, 10 neighbours at each of two hops
    ours, nodes          what `vrgcn train pubmed --predict edges` does
    ours, pairs          minibatches of 2,048 pairs, sampled neighbours

Steps and, of the loader, sampling are counted; evaluations are not. The score to be reached is the
lowest of the best scores of all.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import LinkNeighborLoader
from torch_geometric.nn import GCNConv
from torch_geometric.utils import negative_sampling

from lab.studies.pair_ways import Problem, pubmed, seconds_to, trained
from vrgcn.graph.graph import Graph
from vrgcn.pairs.decoders import DECODERS
from vrgcn.runs.pair_candidates import NODES, PAIRS
from vrgcn.targets.ranking import EmbeddedEdges, score_edges

Points = list[tuple[float, float]]
WIDTH = 64


class GAE(nn.Module):
    """Two GCN layers. cached: for one matrix that does not change"""

    def __init__(self, features: int, *, cached: bool) -> None:
        super().__init__()
        self.first = GCNConv(features, WIDTH, cached=cached)
        self.last = GCNConv(WIDTH, WIDTH, cached=cached)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        hidden: Tensor = torch.relu(self.first(x, edges))
        embedded: Tensor = self.last(hidden, edges)
        return embedded


def pair_loss(z: Tensor, true: Tensor, false: Tensor) -> Tensor:
    """The logistic loss of true pairs and negatives, each (2, pairs)."""
    scores = [(z[ends[0]] * z[ends[1]]).sum(1) for ends in (true, false)]
    return F.softplus(-scores[0]).mean() + F.softplus(scores[1]).mean()


class Timed:
    """CPU seconds of training and validation scores of a PyG model."""

    def __init__(self, graph: Graph, model: GAE, matrix: Tensor) -> None:
        self.graph, self.model, self.matrix = graph, model, matrix
        self.points: Points = []
        self.seconds, self._start = 0.0, time.process_time()

    def score(self) -> None:
        """Add a point: the steps since the last one, and the score now."""
        self.seconds += time.process_time() - self._start
        pairs = self.graph.pairs
        assert pairs is not None
        with torch.no_grad():
            z = self.model(self.graph.features, self.matrix)
        scorer = EmbeddedEdges(DECODERS["dot"](WIDTH, False), z, pairs)
        self.points.append((self.seconds, score_edges(scorer, pairs, "val", ("auc",))["auc"]))
        self._start = time.process_time()


def full_batch(problem: Problem, rate: float, budget: float) -> Points:
    """PyG with all nodes and pairs in a step."""
    graph, pairs = problem.graph, problem.graph.pairs
    assert pairs is not None
    torch.manual_seed(0)
    model = GAE(graph.num_features, cached=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    matrix = graph.adjacency.to_torch(torch.float32)
    known, true = graph.edge_index(), pairs.train.t()
    timed, step = Timed(graph, model, matrix), 0
    while timed.seconds < budget:
        false = negative_sampling(known, graph.num_nodes, true.shape[1])
        loss = pair_loss(model(graph.features, matrix), true, false)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 5 == 0:
            timed.score()
    return timed.points


def with_loader(problem: Problem, rate: float, budget: float) -> Points:
    """PyG with minibatches of pairs and sampled neighbours."""
    graph, pairs = problem.graph, problem.graph.pairs
    assert pairs is not None
    torch.manual_seed(0)
    model = GAE(graph.num_features, cached=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    loader = LinkNeighborLoader(
        Data(x=graph.features, edge_index=graph.edge_index(), num_nodes=graph.num_nodes),
        num_neighbors=[10, 10],
        edge_label_index=pairs.train.t().contiguous(),
        edge_label=torch.ones(len(pairs.train)),
        neg_sampling_ratio=1.0,
        batch_size=512,
        shuffle=True,
    )
    timed, step = Timed(graph, model, graph.edge_index()), 0
    while timed.seconds < budget:
        for batch in loader:
            z, label = model(batch.x, batch.edge_index), batch.edge_label
            ends = batch.edge_label_index
            loss = pair_loss(z, ends[:, label > 0], ends[:, label == 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 37 == 0:
                timed.score()
    return timed.points


def ours(way: str, estimator: str) -> Callable[[Problem, float, float], Points]:
    """Our training in one of the two ways."""

    def run(problem: Problem, rate: float, budget: float) -> Points:
        return trained(problem, way, estimator, rate, budget)[1].points

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=20.0, help="CPU seconds of each training")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.03])
    parser.add_argument("--seed", type=int, default=0, help="of the split")
    parser.add_argument("--loader", action="store_true", help="LinkNeighborLoader too")
    parser.add_argument("--out", type=Path, help="JSON file of all curves")
    options = parser.parse_args()
    torch.set_num_threads(1)
    problem = pubmed(options.seed, rows=False)
    methods: dict[str, Callable[[Problem, float, float], Points]] = {
        "PyG, full batch": full_batch,
        "ours, nodes, exact": ours(NODES, "exact"),
        "ours, nodes, cvd": ours(NODES, "cvd"),
        "ours, pairs, ns": ours(PAIRS, "ns"),
    }
    if options.loader:
        methods["PyG, LinkNeighborLoader"] = with_loader
    curves: dict[str, dict[float, Any]] = {}
    for name, run in methods.items():
        curves[name] = {rate: run(problem, rate, options.budget) for rate in options.rates}
        best = max(score for points in curves[name].values() for _, score in points)
        print(f"{name:24} best validation AUC {best:.4f}", flush=True)
    goal = min(max(s for points in part.values() for _, s in points) for part in curves.values())
    print(f"CPU seconds of training to a validation AUC of {goal:.4f}")
    for name, part in curves.items():
        times = {
            rate: seconds_to(points, lambda score: score >= goal) for rate, points in part.items()
        }
        reached = {rate: at for rate, at in times.items() if at is not None}
        rate = min(reached, key=lambda one: reached[one])
        print(f"  {name:24} {reached[rate]:6.2f} s at rate {rate}")
    if options.out is not None:
        options.out.write_text(json.dumps(curves, indent=1) + "\n")


if __name__ == "__main__":
    main()
