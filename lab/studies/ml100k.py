"""How much relations add on MovieLens-100k: 943 users, 1,682 items, five relations, one per rating.

    python -m lab.studies.ml100k            5 splits

Predicts users' occupation (21 classes) from age, gender and region, and items' first genre (18
classes) from the year, without the genre columns. An MLP and boosted trees see the kind's own
columns alone; the relational model sees who rated what, too. Splits are 60/20/20, drawn by the
seed. The epoch and the number of trees are chosen by validation nodes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor

from lab.league.real_graphs import data_folder
from vrgcn import Graph, ModelConfig, TrainConfig, fit
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.trees import fit_trees
from vrgcn.costs.order import build_for
from vrgcn.graph.scaling import scale_graph, suitable_scaling
from vrgcn.targets.label_split import random_split

GENRES = range(1, 19)  # 0 is "unknown"


def one_hot(values: list[str]) -> tuple[Tensor, Tensor]:
    """Numbers of texts, and a column for each."""
    numbers = torch.from_numpy(np.unique(values, return_inverse=True)[1])
    return numbers, torch.nn.functional.one_hot(numbers).float()


def movies(folder: Path, target: str, seed: int) -> Graph:
    """The graph with users' occupations or items' genres as labels, its features scaled."""
    users = pq.read_table(folder / "users.parquet").to_pydict()
    items = pq.read_table(folder / "items.parquet").to_pydict()
    edges = pq.read_table(folder / "edges.parquet")
    occupation, occupations = one_hot(users["occupation"])
    region = one_hot([code[0] if code[0].isdigit() else "other" for code in users["zip"]])[1]
    own = [torch.tensor(users["age"]).float()[:, None], one_hot(users["gender"])[1], region]
    found = [re.search(r"\((\d{4})\)", title or "") for title in items["title"]]
    year = torch.tensor([float(match[1]) if match else 1990.0 for match in found])[:, None]
    genres = torch.tensor([items[f"genre{n}"] for n in GENRES]).t().float()
    genre = torch.where(genres.any(1), genres.argmax(1), -1)
    labels = genre if target == "item" else occupation
    ends = torch.from_numpy(np.stack([edges[name].to_numpy() - 1 for name in ("user", "item")]))
    rating = torch.from_numpy(edges["rating"].to_numpy().copy())
    graph = Graph.from_kinds(
        {
            "user": torch.cat([*own, *([occupations] if target == "item" else [])], 1),
            "item": torch.cat([year, *([genres] if target == "user" else [])], 1),
        },
        {("user", f"rated{n}", "item"): ends[:, rating == n] for n in range(1, 6)},
        {target: labels},
    )
    split = random_split(graph, (0.6, 0.2, 0.2), seed)
    return scale_graph(split, suitable_scaling(split.features))[0]


def network(graph: Graph, seed: int, **changes: Any) -> float:
    """Test accuracy in per cent of a network at its best epoch."""
    settings = ModelConfig(hidden=64, dropout=0.5, **changes)
    built = build_for(settings, graph, graph.num_classes, seed)
    config = TrainConfig(epochs=60, batch_size=256, estimator="exact", seed=seed)
    test = fit(built, graph, config).test
    assert test is not None
    return 100 * test


def trees(graph: Graph, seed: int) -> float:
    """Test accuracy in per cent of boosted trees on a node's own columns."""
    problem = Problem.of(graph, seed=seed)
    assert graph.labels is not None
    with torch.no_grad():
        outputs = fit_trees(problem, hops=0)(graph.features, problem.propagate)
    right = outputs[graph.test].argmax(1) == graph.labels[graph.test]
    return 100 * float(right.float().mean())


def main() -> None:
    data = data_folder()
    if data is None:
        raise SystemExit("the folder of real graphs is not there: name it by VRGCN_DATA")
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for target, words in (("user", "users' occupation"), ("item", "items' first genre")):
        graphs = [movies(data / "ml100k", target, seed) for seed in range(splits)]
        most = [100 * float(g.labels[g.test].bincount().max() / len(g.test)) for g in graphs]  # type: ignore[index]
        rows = {
            "most frequent class": most,
            "trees, own columns": [trees(graph, n) for n, graph in enumerate(graphs)],
            "MLP, own columns": [network(g, n, model="mlp") for n, g in enumerate(graphs)],
            "relational GraphSAGE": [network(g, n) for n, g in enumerate(graphs)],
            "with learned rows": [
                network(g, n, node_embeddings=True) for n, g in enumerate(graphs)
            ],
        }
        print(f"{words}: test accuracy, {splits} splits, mean ± deviation")
        for name, scores in rows.items():
            print(f"  {name:22}{np.mean(scores):6.2f} ± {np.std(scores, ddof=1):.2f}", flush=True)


if __name__ == "__main__":
    main()
