"""Compares the ways to train on pairs: minibatches of nodes or of pairs, estimators, own edges.

    .venv/bin/python -m lab.studies.pair_ways ways --data cora citeseer pubmed movies ratings ddi
    .venv/bin/python -m lab.studies.pair_ways own-edges --data pubmed pubmed-rows movies

`ways` trains each way with each estimator at several learning rates for the same CPU seconds, and
prints for the best rate of each how many CPU seconds of training it took to a common validation
score. `own-edges` compares what is done with a training pair's own edge, after the same CPU
seconds: validation chooses the rate and the epoch, the test score is read once.

    cora, citeseer, pubmed   citations, GCN with cosines and shared negatives, which `vrgcn train`
                  takes as the usual model, AUC
    gae           the citations of PubMed, GCN with dot products and a negative for each pair, AUC
    pubmed-rows   the same graph without its features: LightGCN, AUC
    movies        who rated which film of MovieLens 100k, LightGCN, shared negatives, NDCG@20
    ratings       how they rated it, official split u1, GraphSAGE with learned rows, RMSE: the model
                  looks at no computed neighbours, so that there is nothing to estimate
    ddi           ogbl-ddi, LightGCN, shared negatives, Hits@20 among the official negatives
    gowalla       who visited which place, LightGCN, shared negatives, recall@20

Seconds of evaluation are not counted. A training that comes to no evaluation within its seconds has
no score.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import torch
from torch import Tensor

from lab.studies.ddi import drugs
from lab.studies.gowalla import RELATION as PLACES
from lab.studies.gowalla import gowalla
from lab.studies.ratings import imported
from vrgcn import Graph, PairModel, TrainConfig, predict, split_pairs
from vrgcn.data import root_folder
from vrgcn.data.opening import open_graph
from vrgcn.graph.scaling import scale_graph
from vrgcn.runs.building import build_network
from vrgcn.runs.candidates import candidates
from vrgcn.runs.config_file import build
from vrgcn.runs.job import prepare
from vrgcn.runs.pair_candidates import NODES, PAIRS, Way, batch_size_of
from vrgcn.runs.settings import Settings
from vrgcn.targets.opening import find_target
from vrgcn.targets.ranking import EmbeddedEdges, score_edges
from vrgcn.targets.spec import with_usual
from vrgcn.training.listener import Listener, StopTraining
from vrgcn.training.state import Epoch

WAYS: dict[str, tuple[str, ...]] = {
    NODES: ("exact", "ns", "cvd", "history", "two-way"),
    PAIRS: ("exact", "ns", "cvd", "history"),
}
RATED = "user-rated-item"
EXACT: dict[str, tuple[str, ...]] = {NODES: ("exact",), PAIRS: ("exact",)}
_LATE = 1.2  # times the budget that an epoch may take to its end


class Problem(NamedTuple):
    """A graph of pairs, the model for a seed, settings of the training, sizes of minibatches."""

    graph: Graph
    model: Callable[[], PairModel]
    settings: dict[str, Any]
    batch_size: dict[str, int]
    goal: float  # share of the best score of all that the others are timed to; above 1 for errors
    ways: dict[str, tuple[str, ...]] = WAYS


class Clock(Listener):
    """The CPU seconds of training steps and the scores so far; ends the run after a budget."""

    def __init__(self, budget: float) -> None:
        self.points: list[tuple[float, float]] = []
        self.budget = budget
        self.seconds, self._last = 0.0, time.process_time()

    def step(self, done: int, total: int) -> None:
        now = time.process_time()
        self.seconds += now - self._last
        self._last = now
        if self.seconds > _LATE * self.budget:  # an epoch may be longer than the budget
            raise StopTraining

    def epoch(self, point: Epoch) -> None:
        if point.val is not None:
            self.points.append((self.seconds, point.val))
        self._last = time.process_time()
        if self.seconds > self.budget:
            raise StopTraining

    def kept(self, point: Epoch) -> None:
        self._last = time.process_time()


def usual(seed: int, **given: Any) -> Problem:
    """The usual model of `vrgcn train` for some pairs, before a race compares it with others."""
    values = with_usual({"seed": seed, "split_seed": seed, "threads": 1, **given})
    settings = build(Settings, values)
    graph = settings.open_graph().graph
    first = candidates(settings.model, settings.train, graph)[0]
    model, train = first.model, first.train
    target = find_target(graph, train)
    ways: tuple[Way, ...] = (NODES, PAIRS)
    sizes: dict[str, int] = {way: batch_size_of(way, TrainConfig(), graph) for way in ways}
    kept = ("metric", "loss", "negative_sampling", "negatives")
    links = graph.pairs is not None and graph.pairs.target is None

    def made() -> PairModel:
        network = build_network(model, graph, target, seed)
        assert isinstance(network, PairModel)
        return network

    return Problem(
        graph,
        made,
        {name: getattr(train, name) for name in kept},
        sizes,
        0.99 if links else 1.01,
        WAYS if links else EXACT,
    )


def ratings(seed: int) -> Problem:
    """Ratings of MovieLens 100k."""
    with tempfile.TemporaryDirectory() as folder:
        graph = imported(Path(folder) / "movies")
        return usual(seed, graph=graph, predict=f"{RATED}.rating", split_column="split_u1")


def light(graph: Graph, relation: str, metric: str, seed: int, *, goal: float) -> Problem:
    """LightGCN with shared negatives."""
    pairs = graph.pairs
    assert pairs is not None
    settings = {
        "metric": metric,
        "loss": "softmax",
        "negative_sampling": "shared",
        "negatives": 4096 if graph.num_nodes > 50_000 else 512,
        "own_edges": "keep",
    }

    def made() -> PairModel:
        torch.manual_seed(seed)
        return PairModel(
            "lightgcn",
            "cosine",
            relation=relation,
            directed=pairs.directed,
            in_features=graph.num_features,
            nodes=graph.num_nodes,
            classes=64,
            layers=2,
        )

    large = graph.num_nodes > 50_000
    return Problem(graph, made, settings, {NODES: 2048 if large else 512, PAIRS: 16_384}, goal)


def pubmed(seed: int, *, rows: bool) -> Problem:
    """Links of PubMed."""
    opened = open_graph("pubmed", None, root_folder(None))
    graph = split_pairs(scale_graph(opened.graph, opened.scaling)[0], seed=seed)
    settings = {"metric": "auc", "loss": "logistic"}
    pairs = graph.pairs
    assert pairs is not None
    if rows:
        graph = graph.with_features(torch.ones(graph.num_nodes, 1))
        model: dict[str, Any] = {"nodes": graph.num_nodes, "layers": 2}
    else:
        model = {"hidden": 64, "dropout": 0.0, "layer_norm": False}

    def made() -> PairModel:
        torch.manual_seed(seed)
        return PairModel(
            "lightgcn" if rows else "gcn",
            "dot",
            relation="edges",
            directed=pairs.directed,
            in_features=graph.num_features,
            classes=64,
            **model,
        )

    return Problem(graph, made, settings, {NODES: 512, PAIRS: 2048}, 0.99)


def movies(seed: int) -> Problem:
    """Films that users of MovieLens 100k rated, as pairs without the rating."""
    table = pq.read_table(root_folder(None) / "ml100k" / "edges.parquet")
    ends = torch.stack([torch.from_numpy(table[n].to_numpy() - 1) for n in ("user", "item")])
    users, items = (int(part.max()) + 1 for part in ends)
    whole = Graph.from_kinds({"user": users, "item": items}, {("user", "rated", "item"): ends})
    graph = split_pairs(whole, RATED, seed=seed)
    settings = {
        "metric": "ndcg@20",
        "loss": "softmax",
        "negative_sampling": "shared",
        "negatives": 512,
    }

    def made() -> PairModel:
        torch.manual_seed(seed)
        sizes: dict[str, Any] = {"in_features": graph.num_features, "nodes": graph.num_nodes}
        return PairModel(
            "lightgcn", "cosine", relation=RATED, directed=True, classes=64, layers=3, **sizes
        )

    return Problem(graph, made, settings, {NODES: 256, PAIRS: 4096}, 0.97)


DATA: dict[str, Callable[[int], Problem]] = {
    **{
        name: lambda seed, name=name: usual(seed, dataset=name, predict="edges")  # type: ignore[misc]
        for name in ("cora", "citeseer", "pubmed")
    },
    "gae": lambda seed: pubmed(seed, rows=False),
    "pubmed-rows": lambda seed: pubmed(seed, rows=True),
    "movies": movies,
    "ratings": ratings,
    "ddi": lambda seed: light(
        drugs(root_folder(None), validate=True), "edges", "hits@20", seed, goal=0.9
    ),
    "gowalla": lambda seed: light(
        gowalla(root_folder(None), validate=True), PLACES, "recall@20", seed, goal=0.9
    ),
}


def trained(
    problem: Problem, way: str, estimator: str, rate: float, budget: float, **more: Any
) -> tuple[PairModel, Clock]:
    """A model after so many CPU seconds of training, and its curve."""
    model, clock = problem.model(), Clock(budget)
    settings = {
        "estimator": estimator,
        "pair_batches": way,
        "batch_size": problem.batch_size[way],
        "learning_rate": rate,
        "epochs": 10_000,
        "diagnostics": 0,
        **problem.settings,
        **more,
    }
    with suppress(StopTraining):
        prepare(model, problem.graph, TrainConfig(**settings)).train(clock)
    return model, clock


def seconds_to(
    points: Iterable[tuple[float, float]], reached: Callable[[float], bool]
) -> float | None:
    """The CPU seconds after which a score was reached; None if it was not."""
    return next((seconds for seconds, found in points if reached(found)), None)


def compare_ways(name: str, budget: float, seed: int, rates: list[float]) -> dict[str, Any]:
    """Curves of all ways, estimators and rates."""
    problem, found = DATA[name](seed), {}
    best_of = min if problem.goal > 1 else max
    methods = [(way, each) for way, several in problem.ways.items() for each in several]
    for way, estimator in methods:
        for rate in rates:
            _, clock = trained(problem, way, estimator, rate, budget)
            found[f"{way} {estimator} {rate}"] = clock.points
            best = best_of([score for _, score in clock.points], default=float("nan"))
            spent = f"{len(clock.points)} epochs, {clock.seconds:.1f} CPU s"
            print(f"{name}  {way} {estimator} {rate}  best {best:.4f}  {spent}", flush=True)
    goal = problem.goal * best_of(score for points in found.values() for _, score in points)
    print(f"\n{name}: CPU seconds of training to a validation score of {goal:.4f}")
    for way, estimator in methods:
        rows = {rate: found[f"{way} {estimator} {rate}"] for rate in rates}
        times = {
            rate: seconds_to(points, lambda score: best_of(score, goal) == score)
            for rate, points in rows.items()
        }
        reached = {rate: at for rate, at in times.items() if at is not None}
        scores = [score for points in rows.values() for _, score in points]
        told = "not reached"
        if reached:
            rate = min(reached, key=lambda one: reached[one])
            told = f"{reached[rate]:.1f} s at rate {rate}"
        best = best_of(scores, default=float("nan"))
        print(f"  {way:6} {estimator:8} {told:24} best {best:.4f}", flush=True)
    return {"goal": goal, "budget": budget, "curves": found}


OWN_EDGES: dict[str, tuple[str, dict[str, Any]]] = {
    "nodes, keep": (NODES, {"own_edges": "keep"}),
    "nodes, redraw 0.2": (NODES, {"own_edges": "redraw", "held_share": 0.2}),
    "nodes, redraw 0.5": (NODES, {"own_edges": "redraw", "held_share": 0.5}),
    "pairs, keep": (PAIRS, {"own_edges": "keep"}),
    "pairs, redraw 0.2": (PAIRS, {"own_edges": "redraw", "held_share": 0.2}),
    "pairs, redraw 0.5": (PAIRS, {"own_edges": "redraw", "held_share": 0.5}),
    "pairs, exclude": (PAIRS, {"own_edges": "exclude"}),
}


def _embeddings(model: PairModel, graph: Graph) -> Tensor:
    return predict(model, graph, kind="all")


def compare_own_edges(
    name: str, budget: float, seed: int, rates: list[float], estimator: str
) -> dict[str, Any]:
    """Validation and test scores of each rule about own edges."""
    problem, found = DATA[name](seed), {}
    pairs, metric = problem.graph.pairs, problem.settings["metric"]
    assert pairs is not None
    for rule, (way, more) in OWN_EDGES.items():
        used = "exact" if way == PAIRS else estimator
        tried = [trained(problem, way, used, rate, budget, **more) for rate in rates]
        model, clock = max(tried, key=lambda one: max(score for _, score in one[1].points))
        z = _embeddings(model, problem.graph)
        scorer = EmbeddedEdges(model.decoder, z, pairs)
        test = score_edges(scorer, pairs, "test", (metric,))[metric]
        val = max(score for _, score in clock.points)
        epochs = len(clock.points)
        found[rule] = {"val": val, "test": test, "epochs": epochs, "cpu": clock.seconds}
        print(f"{name}  {rule:18} val {val:.4f}  test {test:.4f}  {epochs} epochs", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=["ways", "own-edges"])
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=["pubmed", "movies"])
    parser.add_argument("--budget", type=float, default=20.0, help="CPU seconds of each training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003, 0.01, 0.03])
    parser.add_argument("--estimator", default="exact", help="of node minibatches in own-edges")
    parser.add_argument("--out", type=Path, help="JSON file of all curves")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for name in options.data:
        given = name, options.budget, options.seed, options.rates
        if options.table == "ways":
            found[name] = compare_ways(*given)
        else:
            found[name] = compare_own_edges(*given, options.estimator)
        if options.out is not None:
            options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
