"""A small graph on disk, a run trained on it, and a way to run the command line in this process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import torch

from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import load_model
from vrgcn.training.clock import Clock
from vrgcn.training.progress import EpochProgress

CLASSES = ["amber", "blue", "cyan"]


def small_graph(nodes: int = 120, classes: int = 3, seed: int = 0) -> Graph:
    """A ring of communities that is easy to classify."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(nodes) % classes
    source = torch.arange(nodes).repeat_interleave(4)
    target = (source + classes * torch.randint(1, 10, source.shape, generator=generator)) % nodes
    features = torch.randn(nodes, 8, generator=generator)
    features[:, :classes] += 2 * torch.eye(classes)[labels]
    order = torch.randperm(nodes, generator=generator)
    return Graph(
        torch.stack([source, target]),
        features,
        labels,
        undirected=True,
        train=order[: nodes // 2],
        val=order[nodes // 2 : 3 * nodes // 4],
        test=order[3 * nodes // 4 :],
    )


def named(graph: Graph, order: list[int] | None = None) -> Graph:
    """The graph with ids n-0, n-1, ..., class names, and feature columns f0, ... in some order."""
    order = order or list(range(graph.num_features))
    names = Names(
        pa.array([f"n-{i}" for i in range(graph.num_nodes)]),
        CLASSES,
        [f"f{i}" for i in order],
    )
    splits = {name: graph.split(name) for name in ("train", "val", "test")}
    return Graph.from_parts(
        graph.adjacency, graph.features[:, order], graph.labels, splits, 3, names
    )


def expected(run: Path, graph: Graph) -> torch.Tensor:
    saved = load_model(run / "model.safetensors")
    scaled = graph.with_features(saved.scaling.apply(graph.features), saved.scaling)
    return torch.softmax(predict(saved.model, scaled, propagation=saved.propagation), 1)


@pytest.fixture
def graph_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    save_graph(small_graph(), folder)
    return folder


@pytest.fixture
def run(vrgcn, tmp_path: Path) -> Path:
    """A trained run on a named graph, its features standardised."""
    save_graph(named(small_graph()), tmp_path / "graph")
    code, _, err = vrgcn(
        "train",
        "--graph",
        tmp_path / "graph",
        "--scaling",
        "standard",
        "--epochs",
        5,
        "--out",
        "run",
    )
    assert code == 0, err
    return tmp_path / "run"


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by hand: each epoch takes half a second, and nothing else takes any time."""
    now, shown = [0.0], EpochProgress.epoch

    def epoch(self, point) -> None:
        shown(self, point)
        now[0] += 0.5

    monkeypatch.setattr(EpochProgress, "epoch", epoch)
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: now[0]))
