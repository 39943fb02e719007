"""Model files of every kind: networks, models of pairs, triples and values, baselines, averages,
smoothed and calibrated models, and users' own."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch_geometric.nn.models import GraphSAGE as TheirSAGE

from tests.baselines.problems import small
from tests.fuzz.mutations import bytes_changed, value_changed
from tests.fuzz.target import Target, some_graph
from tests.pairs.test_values import rated_graph
from tests.targets.test_triple_split import knowledge
from vrgcn.baselines import RECIPES, Problem
from vrgcn.baselines.estimator import Remembered
from vrgcn.baselines.perceptron import Perceptron
from vrgcn.costs.order import build_for
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling
from vrgcn.inference.average import Average
from vrgcn.inference.calibration import calibrate
from vrgcn.inference.fitting import fit_recipe
from vrgcn.inference.model_file import signed
from vrgcn.inference.predict import predict
from vrgcn.inference.predictions import predictions
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.inference.smoothing import Smoothing
from vrgcn.models.config import ModelConfig
from vrgcn.pairs.model import PairModel
from vrgcn.targets.pair_split import split_pairs
from vrgcn.targets.scored import scored_edges
from vrgcn.targets.triple_split import split_triples
from vrgcn.tasks import find_task

Case = tuple[Graph, SavedModel]


def _network(graph: Graph, **settings: Any) -> Case:
    outputs = find_task(graph.task).outputs(graph.num_classes)
    config = ModelConfig(hidden=4, dropout=0.0, **settings)
    return graph, SavedModel.of(build_for(config, graph, outputs, seed=0))


def _links(graph: Graph, encoder: str, decoder: str, **settings: Any) -> Case:
    predicted = graph.pairs or graph.triples
    assert predicted is not None
    config = ModelConfig(model=encoder, hidden=4, embedding=4, dropout=0.0, **settings)  # type: ignore[arg-type]
    width = 5 if decoder == "lift" else 4
    built = build_for(config, graph, width, seed=0)
    return graph, SavedModel.of(PairModel.around(built, decoder, predicted, 0))


def _baseline(name: str) -> Case:
    graph = small(nodes=24)
    return graph, fit_recipe(RECIPES[name], Problem.of(graph))


def _scaled(case: Case) -> Case:
    graph, saved = case
    scaling = Scaling.fit("standard", graph.features, graph.train)
    return graph, replace(saved, scaling=scaling, classes=graph.names.classes)


def _calibrated(case: Case) -> Case:
    graph, saved = case
    assert graph.labels is not None
    outputs = predict(saved, graph)
    kept = calibrate(find_task(graph.task), outputs, graph.labels, graph.val)
    return graph, saved.then(kept)


def _average(smooth: bool) -> Case:
    graph, one = _baseline("smoothed" if smooth else "linear")
    _, other = _baseline("labels")
    parts = {"one": one.before(Smoothing), "other": other}
    average = Average.of_members(parts, {"one": 0.25, "other": 0.75})
    return graph, replace(average, stages=one.stages)


def _own() -> Case:
    graph = small(nodes=24)
    torch.manual_seed(0)
    return graph, SavedModel.of(TheirSAGE(6, 4, 2, 3).eval())


def _remembered() -> Case:
    model = Remembered(6, 3, 24)
    model.known.set(torch.ones(24, 4))
    return small(nodes=24), SavedModel(model, "adjacency")


def _edges(nodes: int = 30) -> Graph:
    edges = torch.randint(nodes, (2, 80), generator=torch.Generator().manual_seed(0))
    return split_pairs(Graph(edges, torch.randn(nodes, 4), undirected=True))


CASES: dict[str, Callable[[], Case]] = {
    "gcn": lambda: _scaled(_network(some_graph("names"), model="gcn")),
    "residual": lambda: _network(small(nodes=24), model="residual"),
    "mlp": lambda: _network(small("regression", nodes=24), model="mlp"),
    "labels of neighbours": lambda: _network(
        small("multilabel", nodes=24), neighbour_labels=True, label_hops=2, norm="batch"
    ),
    "learned rows": lambda: _network(some_graph("names"), learned_rows=True, jumping="cat"),
    "relational": lambda: _network(some_graph("kinds"), bases=2, skip=True),
    "calibrated": lambda: _calibrated(_network(small(nodes=24))),
    "pairs": lambda: _links(_edges(), "gcn", "mlp"),
    "recommender": lambda: _links(_edges(), "lightgcn", "lift"),
    "pairs of kinds": lambda: _links(
        split_pairs(some_graph("kinds"), "user-bought-item"), "graphsage", "distmult"
    ),
    "ratings": lambda: _links(
        split_pairs(rated_graph([1.0, 2, 3, 4, 5, 6]), "user-rated-item.rating"), "gcn", "mlp"
    ),
    "classes of pairs": lambda: _links(
        split_pairs(rated_graph(list("abcabc")), "user-rated-item.rating"), "graphsage", "distmult"
    ),
    "triples": lambda: _links(split_triples(knowledge()), "graphsage", "complex", bases=2),
    "triples of rows": lambda: _links(
        split_triples(knowledge()), "graphsage", "distmult", layers=0
    ),
    **{
        name: lambda name=name: _baseline(name)  # type: ignore[misc]
        for name in ("labels", "linear-2", "link", "trees-2", "smoothed")
    },
    "perceptron": lambda: (
        small(nodes=24),
        SavedModel(Perceptron(6, 3, hidden=4, hops=2, components=0, spectral=0, label_hops=0,
                              known=0), "adjacency"),
    ),
    "remembered": _remembered,
    "average": lambda: _average(smooth=False),
    "smoothed average": lambda: _average(smooth=True),
    "PyG": _own,
}  # fmt: skip


@cache
def case(name: str) -> Case:
    return CASES[name]()


def _make(folder: Path) -> None:
    for name in CASES:
        (folder / name).mkdir()
        _, saved = case(name)
        save_model(saved, folder / name / "m.safetensors")


def _damage(folder: Path, draw: random.Random) -> None:
    file = folder / "m.safetensors"
    file.write_bytes(bytes_changed(file.read_bytes(), draw))


def _damage_signed(folder: Path, draw: random.Random) -> None:
    """Damage a model and write its checksum again."""
    file = folder / "m.safetensors"
    with safe_open(file, framework="pt") as opened:
        texts = opened.metadata() or {}
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    description = json.loads(texts.get("vrgcn-model", "null"))
    if description is None or draw.random() < 0.4:
        name = draw.choice(sorted(tensors))
        tensors[name] = _tensor_changed(tensors[name], draw)
    else:
        description = value_changed(description, draw)
    if isinstance(description, dict):
        description = signed(description, tensors)
    save_file(tensors, file, metadata={"vrgcn-model": json.dumps(description)})


def _tensor_changed(tensor: Tensor, draw: random.Random) -> Tensor:
    changes: tuple[Callable[[], Tensor], ...] = (
        lambda: tensor[:-1] if tensor.dim() else tensor[None],
        lambda: torch.cat([tensor, tensor]) if tensor.dim() else tensor[None],
        lambda: tensor / 0,
        lambda: tensor.long() if tensor.is_floating_point() else tensor.double(),
        lambda: torch.zeros(()),
        lambda: tensor * 10**9,
        lambda: -tensor - 1,
        lambda: tensor.flip(0) if tensor.dim() else tensor,
        lambda: tensor[..., None],
        tensor.bool,
        lambda: torch.complex(tensor.float(), tensor.float()),
    )
    return draw.choice(changes)().contiguous()


def _read(folder: Path) -> None:
    graph, _ = case(folder.name)
    own = (lambda: TheirSAGE(6, 4, 2, 3)) if folder.name == "PyG" else None
    saved = load_model(folder / "m.safetensors", own)
    with suppress(ValueError):  # columns of other names, or numbers that overflow: explained
        _use(graph, saved)


def _use(graph: Graph, saved: SavedModel) -> None:
    """Predict nodes; score pairs or triples if the model is one of them."""
    outputs = predict(saved, graph, kind="all")
    model = saved.model
    if not isinstance(model, PairModel):
        if graph.task == "classes":
            predictions(saved, graph).to_arrow(coverage=None)
        return
    edges = scored_edges(graph)
    if edges is not None:
        edges.scorer(model.decoder, outputs).score(edges.predicted.test)


MODELS: dict[str, Target] = {
    "models": Target(_make, _damage, _read, sealed=True, each=True),
    "signed models": Target(_make, _damage_signed, _read, each=True),
}
