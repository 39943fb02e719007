"""PyG beside ours on real graphs: processor seconds until the same validation score, one thread.

    python -m lab.studies.pyg_race --out results/pyg-race.jsonl
    python -m lab.studies.pyg_race --show results/pyg-race.jsonl --figure pyg-race.png
    python -m lab.studies.pyg_race --publish results/pyg-race.jsonl

Ours is the network of `vrgcn train --model graphsage`, whose other settings depend on the graph.
The peers are PyG's GCN and GraphSAGE with skip
connections and norm, on the whole graph (`pyg_residual.py`), as wide and as deep, each at three
learning rates, of which the soonest counts. The same networks trained by ours, at the same rates,
tell what is due to the network and to centred features, which PyG's layers do not have. Split,
features and score are the same. Preparations
(P X and the choice of the estimator, of PyG's the adjacency) and steps are counted on both sides,
evaluations on neither. Every (graph, method, rate, split) is a line of the file; what is there is
not run again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch

from lab.harness.records import Record, append_record, read_lines, rounded
from lab.harness.trainers import EndlessTrainer
from lab.harness.version import code_version
from lab.league.real_graphs import GRAPHS, Entry, data_folder, entry_of, load
from lab.studies.pyg_residual import Layer, Residual, SameResidual, csr_adjacency
from lab.studies.pyg_times import OURS, draw, publish, same, table
from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.models.dense import standardise_inputs
from vrgcn.runs.job import prepare
from vrgcn.runs.settings import Settings
from vrgcn.tasks.config import LossConfig
from vrgcn.training.config import TrainConfig

RACED = ("tolokers", "blogcatalog_attributed", "amazon_computers", "facebook100")
PEERS: dict[str, Layer] = {"PyG GCN": "GCN", "PyG GraphSAGE": "GraphSAGE"}
RATES = (0.003, 0.01, 0.03)
PARTS = 4  # evaluations in one of our epochs


class Method(Protocol):
    """A network in training."""

    def advance(self) -> None:
        """Train until the next evaluation."""

    def outputs(self) -> torch.Tensor:
        """(validation nodes, columns)"""


class Ours:
    """A network trained by the estimator that `auto` stands for, with the usual settings, evaluated
    several times per epoch.

    layer: of the peer's network; None: the network of `vrgcn train --model graphsage`
    """

    def __init__(
        self, entry: Entry, layer: Layer | None, rate: float, seed: int, estimator: str = AUTO
    ) -> None:
        given: dict[str, Any] = {
            "estimator": estimator,
            "metric": entry.asked,
            "threads": 1,
            "seed": seed,
        }
        given |= {"learning_rate": rate}
        if layer is None:
            job = Settings().changed({"model": "graphsage", **given}).prepare(entry.graph)
        else:
            config = TrainConfig(**given)
            torch.manual_seed(seed)
            job = prepare(network(SameResidual, layer, entry), entry.graph, config)
        self.estimator = job.config.estimator
        self.training = EndlessTrainer(job.model, entry.graph, job.config)
        self.val, self.turns = entry.graph.val, 0

    def advance(self) -> None:
        steps = self.training.steps_per_epoch
        before, after = (steps * turn // PARTS for turn in (self.turns, self.turns + 1))
        self.training.run(after - before)
        self.turns += 1
        if self.training.diverged is not None:
            raise FloatingPointError(self.training.diverged)

    def outputs(self) -> torch.Tensor:
        with self.training.evaluated():
            return self.training.trainer.evaluation.outputs(self.val)


class Peer:
    """PyG on the whole graph: every step is an epoch."""

    def __init__(self, entry: Entry, layer: Layer, rate: float, seed: int) -> None:
        torch.manual_seed(seed)
        self.graph, self.features = entry.graph, entry.graph.features
        self.adjacency = csr_adjacency(entry.graph)
        assert entry.graph.labels is not None
        self.labels = entry.graph.labels[entry.graph.train]
        self.model = network(Residual, layer, entry)
        self.loss = entry.task.criterion(LossConfig(), {})
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate, fused=True)

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
            return self.model(self.features, self.adjacency)[self.graph.val]


def network(
    kind: Callable[..., torch.nn.Module],
    layer: Layer,
    entry: Entry,
    *,
    depth: int = ModelConfig.layers,
    centred: bool = True,
) -> torch.nn.Module:
    """A network as wide as that of `vrgcn train` by default.

    centred: centre sparse features as `vrgcn train` does, if the network is one of ours
    """
    usual, graph = ModelConfig(), entry.graph
    sizes = (graph.num_features, usual.hidden, entry.task.outputs(graph.num_classes))
    made = kind(layer, *sizes, layers=depth, dropout=usual.dropout)
    if centred:
        standardise_inputs(made, graph.features, graph.train)
    return made


@dataclass(frozen=True)
class Budget:
    """When a run ends. seconds: of the processor, in training; evaluations: at most, and without a
    better score"""

    seconds: float
    evaluations: int
    patience: int


def race(make: Callable[[], Method], entry: Entry, budget: Budget) -> Record:
    """Train until the budget is used up.

    Returns `curve`, pairs of processor seconds and validation scores, and `prepared`, the seconds
    before the first step, which the curve includes.
    """
    assert entry.graph.labels is not None
    labels = entry.graph.labels[entry.graph.val]
    wall, start = time.perf_counter(), time.process_time()
    method = make()
    spent = prepared = time.process_time() - start
    curve: list[tuple[float, float]] = []
    best, behind = None, 0
    while spent < budget.seconds and len(curve) < budget.evaluations and behind < budget.patience:
        start = time.process_time()
        method.advance()
        spent += time.process_time() - start
        value = entry.metric.compute(method.outputs(), labels)
        curve.append((rounded(spent), rounded(value)))
        behind += 1
        if best is None or entry.metric.better(value, best):
            best, behind = value, 0
    return {
        "prepared": rounded(prepared),
        "wall": rounded(time.perf_counter() - wall),
        "estimator": getattr(method, "estimator", None),
        "curve": curve,
    }


def units(graphs: Sequence[str], splits: int) -> Iterator[tuple[str, str, float, int]]:
    """Yield graph, method, learning rate and split; on a graph and split ours comes first."""
    for graph in graphs:
        for split in range(splits):
            yield graph, OURS, TrainConfig().learning_rate, split
            for peer in PEERS:
                for name in (same(peer), peer):
                    for rate in RATES:
                        yield graph, name, rate, split


def run(out: Path, graphs: Sequence[str], splits: int, budget: Budget) -> None:
    """Race what has no record yet."""
    folder = data_folder()
    if folder is None:
        sys.exit("the real graphs are not here: name their folder by VRGCN_DATA")
    torch.set_num_threads(1)
    warm_up()
    done = {(r["graph"], r["method"], r["rate"], r["split"]) for r in read_lines(out)}
    held: tuple[tuple[str, int], Entry] | None = None
    for unit in units(graphs, splits):
        graph, name, rate, split = unit
        if unit in done:
            continue
        if held is None or held[0] != (graph, split):
            held = (graph, split), entry_of(graph, load(graph, split, folder))
        entry = held[1]
        found = race(partial(_method, unit, entry), entry, budget)
        edges, nodes = entry.graph.num_edges, entry.graph.num_nodes
        record = {"graph": graph, "method": name, "rate": rate, "split": split}
        record |= {"degree": round(edges / nodes, 1), **found, "version": code_version()}
        append_record(out, record)
        best = max(value for _, value in found["curve"])
        print(
            f"{graph} {split} {name} {rate:g}: best {best:.4f}, {found['wall']:.0f} s", flush=True
        )


def _method(unit: tuple[str, str, float, int], entry: Entry) -> Method:
    _, name, rate, split = unit
    if name in PEERS:
        return Peer(entry, PEERS[name], rate, split)
    layers = {OURS: None, **{same(peer): layer for peer, layer in PEERS.items()}}
    return Ours(entry, layers[name], rate, split)


def warm_up() -> None:
    """Train every method on a small graph: what is imported or compiled once counts for nobody."""
    ring = torch.arange(60)
    features, labels = torch.randn(60, 8), ring % 2
    ends = torch.stack([ring, ring.roll(1)])
    graph = Graph(ends, features, labels, train=ring[:30], val=ring[30:], undirected=True)
    for name in (OURS, *PEERS, *map(same, PEERS)):
        method = _method(("small", name, 0.01, 0), Entry("small", graph))
        method.advance()
        method.outputs()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.studies.pyg_race")
    parser.add_argument("--out", type=Path, default=Path("results/pyg-race.jsonl"))
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(RACED))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0, help="of training, for each run")
    parser.add_argument("--evaluations", type=int, default=400, help="at most, of each run")
    parser.add_argument("--patience", type=int, default=100, help="evaluations without a better")
    parser.add_argument("--show", nargs="+", type=Path, help="print these records, run nothing")
    parser.add_argument("--figure", type=Path, help="draw the curves there")
    parser.add_argument("--publish", nargs="+", type=Path, help="write them to the pages of docs")
    given = parser.parse_args()
    shown = given.publish or given.show
    if not shown:
        budget = Budget(given.seconds, given.evaluations, given.patience)
        run(given.out, given.graphs, given.splits, budget)
        shown = [given.out]
    records = [record for file in shown for record in read_lines(file)]
    if not records:
        sys.exit(f"{' '.join(map(str, shown))}: no records yet")
    print(table(records))
    if given.figure is not None:
        draw(records, given.figure)
    if given.publish:
        publish(records)


if __name__ == "__main__":
    main()
