"""Numbers of nodes: networks with and without a linear path beside linear models, on real graphs.

    python -m lab.studies.node_numbers tolokers facebook_large --seeds 2

Labels are numbers that the graphs have: a numeric column of tolokers, which its other columns and
its class predict; the year of facebook100's people; log10(1 + degree) of pages and of products,
from their words alone. Splits are drawn, 60/20/20; validation nodes choose epochs, forms and
penalties. Printed are test errors (RMSE), in brackets those of validation, and CPU seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.league.real_graphs import RATIO, data_folder, load
from vrgcn import Graph
from vrgcn.baselines.logistic import fit_logistic
from vrgcn.baselines.problem import Problem
from vrgcn.data.store import load_graph
from vrgcn.data.tables import import_tables
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.graph.scaling import scale_graph, suitable_scaling
from vrgcn.inference.predict import predict
from vrgcn.runs.config_file import build
from vrgcn.runs.settings import Settings
from vrgcn.targets.label_split import random_split

COLUMN = 8  # of tolokers, which is predicted


def tolokers(folder: Path) -> Graph:
    graph = load("tolokers", 0, folder)
    assert graph.labels is not None
    kept = [place for place in range(graph.num_features) if place != COLUMN]
    features = torch.cat([graph.features[:, kept], graph.labels[:, None].float()], 1)
    return numbers(graph, features, graph.features[:, COLUMN])


def of_degrees(name: str) -> Callable[[Path], Graph]:
    def made(folder: Path) -> Graph:
        graph = load(name, 0, folder)
        return numbers(graph, graph.features, (1 + graph.adjacency.counts.double()).log10())

    return made


def years(folder: Path) -> Graph:
    tables = folder / "facebook100"
    with tempfile.TemporaryDirectory() as home:
        spec = ImportSpec(
            tables / "edges.parquet",
            Path(home) / "graph",
            nodes=tables / "nodes.parquet",
            label=("year",),
            split="split_random",
            drop=("split_by_school",),
            task="regression",
        )
        import_tables(spec)
        return load_graph(spec.out)


GRAPHS: dict[str, Callable[[Path], Graph]] = {
    "tolokers": tolokers,
    "facebook_large": of_degrees("facebook_large"),
    "amazon_computers": of_degrees("amazon_computers"),
    "facebook100": years,
}


def numbers(graph: Graph, features: torch.Tensor, labels: torch.Tensor) -> Graph:
    """The same edges, with other features and numbers to be predicted."""
    ends = torch.stack([graph.adjacency.row_of_entry, graph.adjacency.indices.long()])
    return Graph(ends, features, labels.double(), undirected=True, task="regression")


def scores(graph: Graph, seed: int) -> Iterator[tuple[str, float, float, float]]:
    """The name of each model, its validation and test errors, and its CPU seconds."""
    start = time.process_time()
    for name, hops in (("linear, own columns", 0), ("linear, two hops", 2)):
        problem = Problem.of(graph)
        found = predict(fit_logistic(problem, hops), graph, kind="all")
        val, test = (error(graph, found, split) for split in ("val", "test"))
        yield name, val, test, spent(start)
        start = time.process_time()
    for path in ("never", "auto"):
        for model in ("graphsage", "gcn", "residual"):
            values: dict[str, Any] = {"linear_path": path, "model": model, "seed": seed}
            result = build(Settings, values | {"threads": 1}).prepare(graph).train()
            assert result.val is not None
            assert result.test is not None
            title = f"{model}, linear path {path}, epoch {result.epoch}"
            yield title, result.val, result.test, spent(start)
            start = time.process_time()


def error(graph: Graph, outputs: torch.Tensor, split: str) -> float:
    assert graph.labels is not None
    nodes = graph.split(split)
    return float((outputs[nodes, 0].double() - graph.labels[nodes]).square().mean().sqrt())


def spent(start: float) -> float:
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", choices=GRAPHS)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = data_folder()
    assert folder is not None
    for name in options.graphs:
        whole = GRAPHS[name](folder)
        for seed in range(options.seeds):
            split = random_split(whole, RATIO, seed=seed)
            graph = scale_graph(split, suitable_scaling(split.features))[0]
            labels = graph.labels[graph.test]  # type: ignore[index]
            print(f"{name}, seed {seed}, deviation {np.std(labels.numpy()):.4f}", flush=True)
            for title, val, test, seconds in scores(graph, seed):
                print(f"  {title:48} {test:.4f} ({val:.4f})  {seconds:.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
