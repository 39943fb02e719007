"""PyG's own GraphSAGE and GCN, trained on the whole graph by PyG and with histories by ours:
processor seconds until the same validation score, one thread.

    python -m lab.studies.pyg_models --graph tolokers

Both sides train the same class from the same weights (`torch_geometric.nn`, three layers of 128,
jumping knowledge, BatchNorm), at each of several learning rates, of which the soonest counts. PyG
multiplies by an adjacency in PyTorch's CSR, several times as fast as its edge_index. Preparations
and steps are counted on both sides, evaluations on neither. The score to be reached is the lower
of the two best.
"""

from __future__ import annotations

import argparse
import copy
import sys
from functools import partial

import torch
from torch import nn
from torch_geometric.nn import GCN, GraphSAGE

from lab.harness.records import Record
from lab.league.real_graphs import Entry, data_folder, entry_of, load
from lab.studies.pyg_race import Budget, Method, race
from lab.studies.pyg_residual import csr_adjacency
from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_dense
from vrgcn.inference.predict import predict
from vrgcn.runs.job import prepare
from vrgcn.tasks.config import LossConfig
from vrgcn.training.config import TrainConfig
from vrgcn.training.trainer import Trainer

MODELS = {
    "GraphSAGE": partial(GraphSAGE, jk="cat", norm="batch", dropout=0.2),
    "GCN": partial(GCN, jk="cat", norm="batch", dropout=0.2, cached=True),
}
PARTS = 4  # evaluations in one of our epochs
_NEVER = 1_000_000  # epochs


class Ours:
    """The model as it is, trained by `vrgcn.fit`'s job."""

    def __init__(self, model: nn.Module, entry: Entry, rate: float, estimator: str) -> None:
        config = TrainConfig(
            estimator,
            metric=entry.asked,
            learning_rate=rate,
            threads=1,
            epochs=_NEVER,
            evaluate_every=_NEVER,
        )
        job = prepare(model, entry.graph, config)
        self.estimator = job.config.estimator
        self.trainer = Trainer(model, entry.graph, job.config, job.target)
        self.steps, self.val = len(self.trainer.minibatches), entry.graph.val
        self.turns = 0

    def advance(self) -> None:
        before, after = (self.steps * turn // PARTS for turn in (self.turns, self.turns + 1))
        for _ in range(after - before):
            self.trainer.advance()
        self.turns += 1

    def outputs(self) -> torch.Tensor:
        return self.trainer.evaluation.outputs(self.val)


class Peer:
    """The model as it is, trained by PyG on the whole graph: every step is an epoch."""

    def __init__(self, model: nn.Module, entry: Entry, rate: float) -> None:
        self.model, self.graph = model, entry.graph
        self.adjacency, self.features = csr_adjacency(entry.graph), dense_features(entry.graph)
        assert entry.graph.labels is not None
        self.labels = entry.graph.labels[entry.graph.train]
        self.loss = entry.task.criterion(LossConfig(), {})
        self.optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)

    def advance(self) -> None:
        self.model.train()
        outputs = self.model(self.features, self.adjacency)[self.graph.train]
        loss = self.loss(outputs, self.labels).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def outputs(self) -> torch.Tensor:
        self.model.eval()
        with torch.no_grad():
            outputs: torch.Tensor = self.model(self.features, self.adjacency)
        return outputs[self.graph.val]


def dense_features(graph: Graph) -> torch.Tensor:
    return graph.features if is_dense(graph.features) else graph.features.to_dense()


def built(name: str, entry: Entry, hidden: int, layers: int) -> nn.Module:
    """A model of PyG with the weights of seed 0."""
    torch.manual_seed(0)
    outputs = entry.task.outputs(entry.graph.num_classes)
    model: nn.Module = MODELS[name](entry.graph.num_features, hidden, layers, outputs)
    return model


def agreement(model: nn.Module, entry: Entry) -> float:
    """The largest difference between our exact prediction and PyG's full forward pass."""
    model.eval()
    with torch.no_grad():
        theirs = model(dense_features(entry.graph), entry.graph.edge_index())
    return float((predict(model, entry.graph) - theirs).abs().max())


def seconds_to(curve: list[tuple[float, float]], score: float) -> float:
    """Processor seconds of training before the first evaluation with at least this score."""
    return next((spent for spent, value in curve if value >= score), float("inf"))


def compare(
    name: str, entry: Entry, rates: list[float], budget: Budget, estimator: str, layers: int = 3
) -> tuple[list[str], float]:
    """Lines of the table for one model, and how many times sooner ours reaches the same score."""
    start = built(name, entry, 128, layers)
    found: dict[str, list[tuple[float, Record]]] = {"PyG": [], "vrgcn": []}
    trained: list[nn.Module] = []
    for rate in rates:
        for side, runs in found.items():
            model = copy.deepcopy(start)

            def make(model: nn.Module = model, rate: float = rate, side: str = side) -> Method:
                if side == "PyG":
                    return Peer(model, entry, rate)
                trained.append(model)
                return Ours(model, entry, rate, estimator)

            runs.append((rate, race(make, entry, budget)))
    best = {side: max(top(run) for _, run in runs) for side, runs in found.items()}
    score = min(best.values())
    soonest = {
        side: min(seconds_to(run["curve"], score) for _, run in runs)
        for side, runs in found.items()
    }
    lines = [
        f"{name:10} {side:6} rate {rate:<6g} best {top(run):.4f}, {score:.4f} after "
        f"{seconds_to(run['curve'], score):6.1f} s, {len(run['curve'])} evaluations"
        + (f", {run['estimator']}" if run["estimator"] else "")
        for side, runs in found.items()
        for rate, run in runs
    ]
    ratio = soonest["PyG"] / soonest["vrgcn"]
    lines.append(
        f"{name:10} {entry.metric.title} {score:.4f}: PyG {soonest['PyG']:.1f} s, vrgcn "
        f"{soonest['vrgcn']:.1f} s, {ratio:.1f} times sooner; trained, our exact prediction and "
        f"PyG's forward differ by {max(agreement(model, entry) for model in trained):.0e}"
    )
    return lines, ratio


def top(run: Record) -> float:
    return max(value for _, value in run["curve"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.studies.pyg_models")
    parser.add_argument("--graph", default="tolokers")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rates", nargs="+", type=float, default=[0.003, 0.01])
    parser.add_argument("--estimator", default=AUTO)
    parser.add_argument("--seconds", type=float, default=60.0, help="of training, for each run")
    parser.add_argument("--patience", type=int, default=60, help="evaluations without a better")
    given = parser.parse_args()
    folder = data_folder()
    if folder is None:
        sys.exit("the real graphs are not here: name their folder by VRGCN_DATA")
    torch.set_num_threads(1)
    entry = entry_of(given.graph, load(given.graph, 0, folder))
    degree = entry.graph.num_edges / entry.graph.num_nodes
    print(f"{given.graph}: {entry.graph.num_nodes:,} nodes, mean degree {degree:.0f}")
    budget = Budget(given.seconds, 1000, given.patience)
    for name in given.models:
        lines, _ = compare(name, entry, given.rates, budget, given.estimator)
        print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
