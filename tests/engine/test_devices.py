"""Devices by name, and what a GPU would be asked to do.

No GPU is needed: `pretended_cuda` stops an operation where a GPU would. Its numbers are the CPU's,
so a run there must end in the bits of a run on the CPU: nothing was left out on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.engine.cuda_kernels import without_cuda_kernel
from tests.engine.pretended_cuda import CPU, CUDA, PretendedCuda, pretended_cuda
from tests.messages import refused
from tests.training.test_state import graph as classes_graph
from vrgcn import (
    ESTIMATORS,
    GCN,
    Graph,
    GraphSAGE,
    MiniBatches,
    TrainConfig,
    embeddings,
    fit,
    load_model,
    predict,
    save_model,
)
from vrgcn.diagnostics.diagnosis import diagnose
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.graph.mapped import is_mapped, note_mapped, zeros
from vrgcn.graph.scaling import scale_graph
from vrgcn.targets.opening import find_target
from vrgcn.training.result import TrainResult
from vrgcn.training.trainer import Trainer

GRAPH = classes_graph()  # 90 nodes, directed and weighted; a third each to train, validate, test
THIRD = torch.arange(30)
SPLITS: dict[str, Any] = {"train": THIRD, "val": THIRD + 30, "test": THIRD + 60}
BATCH = 24


def several_classes() -> Graph:
    labels = torch.rand(90, 3, generator=torch.Generator().manual_seed(1)) > 0.5
    return Graph(GRAPH.edge_index(), GRAPH.features, labels.float(), **SPLITS)


def numbers() -> Graph:
    labels = torch.randn(90, generator=torch.Generator().manual_seed(1))
    return Graph(GRAPH.edge_index(), GRAPH.features, labels, task="regression", **SPLITS)


def sparse_features(width: int = 5) -> Graph:
    features = torch.randn(90, width, generator=torch.Generator().manual_seed(1))
    kept = (features * (features > 1)).to_sparse_csr()
    return Graph(GRAPH.edge_index(), kept, GRAPH.labels, **SPLITS)


def config(**settings: Any) -> TrainConfig:
    return TrainConfig(
        **{"epochs": 2, "batch_size": BATCH, "diagnostics": 0, "seed": 4, **settings}
    )


@contextmanager
def on_cuda() -> Iterator[PretendedCuda]:
    """`pretended_cuda`, where a GPU has a kernel for every operation that ran there."""
    with pretended_cuda() as cuda:
        yield cuda
    assert not without_cuda_kernel(cuda.operations)


def train(graph: Graph, settings: TrainConfig, given: dict[str, Any], **kept: Any) -> TrainResult:
    outputs = 1 if graph.task == "regression" else graph.num_classes
    torch.manual_seed(7)
    kind = given.get("kind", GraphSAGE)
    options = {name: value for name, value in given.items() if name != "kind"}
    model = kind(graph.num_features, 8, outputs, **{"dropout": 0.3, **options})
    return fit(model, graph, settings, **kept)


def assert_as_on_the_cpu(graph: Graph, settings: TrainConfig, **model: Any) -> None:
    wanted = train(graph, settings, model)
    with on_cuda() as cuda:
        assert_same(train(graph, replace(settings, device="cuda"), model), wanted)
    assert cuda.operations["aten::mm", False]


def assert_same(found: TrainResult, wanted: TrainResult) -> None:
    assert found.weights.keys() == wanted.weights.keys()
    for name, weight in wanted.weights.items():
        assert found.weights[name].device == CPU
        assert torch.equal(found.weights[name], weight), name
    assert (found.val, found.test) == (wanted.val, wanted.test)
    for ours, theirs in zip(found.curve, wanted.curve, strict=True):
        assert replace(ours, seconds=0.0) == replace(theirs, seconds=0.0)


def test_a_device_is_tried_out_before_anything_depends_on_it() -> None:
    assert find_device("cpu") == torch.device("cpu")
    for name in ("nowhere", "meta"):  # tensors of the second hold no numbers
        with refused():
            find_device(name)
    with pretended_cuda():
        assert find_device("cuda").type == "cuda"


def test_threads_are_set_only_where_some_are_asked_for() -> None:
    use_threads(2)
    use_threads(None)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("memory", ["ram", "disk"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_trains_and_resumes_on_a_gpu(tmp_path, estimator, memory) -> None:
    """Three layers, warm histories and diagnostics; broken off after the first of two epochs."""
    settings = config(
        estimator=estimator, memory=memory, warm_start=True, diagnostics=2, checkpoint_every="1"
    )
    model = {"layers": 3}
    wanted = train(GRAPH, settings, model)
    settings = replace(settings, device="cuda")
    with on_cuda() as cuda:
        train(GRAPH, replace(settings, epochs=1), model, checkpoints=tmp_path / "run")
        found = train(GRAPH, settings, model, resume=tmp_path / "run")
    assert_same(found, wanted)
    assert cuda.operations["aten::_fused_adam_", False]


SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "float16": ({"estimator": "two-way", "history_dtype": "float16"}, {}),
    "bfloat16, sgd": ({"estimator": "cv", "history_dtype": "bfloat16", "optimizer": "sgd"}, {}),
    "thinned, refreshed": ({"estimator": "cv", "history_cap": 2, "refresh": "always"}, {}),
    "inductive": ({"estimator": "cvd", "inductive": True}, {}),
    "without preprocessing": ({"estimator": "two-way-cv", "preprocess": False}, {}),
    "dropout first": ({"estimator": "cv"}, {"order": "before", "kind": GCN}),
    "cosine, clipped": ({"estimator": "two-way", "schedule": "cosine", "clip": 0.1}, {}),
    "plateau, auto": ({"schedule": "plateau", "warmup": 1}, {"kind": GCN}),
    "composition": ({"estimator": "uniform/history/corrected/residual", "visit": "all"}, {}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_change_nothing_about_devices(name) -> None:
    settings, model = SETTINGS[name]
    assert_as_on_the_cpu(GRAPH, config(**settings), **model)


@pytest.mark.parametrize("metric", ["accuracy", "macro-f1", "roc-auc"])
def test_one_class_is_learned_and_scored(metric) -> None:
    given = {"class_weights": "balanced", "label_smoothing": 0.1}
    assert_as_on_the_cpu(GRAPH, config(epochs=1, estimator="history", metric=metric, **given))


@pytest.mark.parametrize("metric", ["micro-f1", "macro-f1", "roc-auc"])
def test_several_classes_are_learned_and_scored(metric) -> None:
    weights = "balanced" if metric == "micro-f1" else "none"
    settings = config(epochs=1, estimator="history", metric=metric, class_weights=weights)
    assert_as_on_the_cpu(several_classes(), settings)


@pytest.mark.parametrize(("metric", "loss"), [("rmse", "mse"), ("mae", "mae"), ("r2", "mse")])
def test_numbers_are_learned_and_scored(metric, loss) -> None:
    assert_as_on_the_cpu(numbers(), config(epochs=1, estimator="history", metric=metric, loss=loss))


@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("estimator", ["ns", "cvd"])
def test_sparse_features_stay_sparse(estimator, order) -> None:
    assert_as_on_the_cpu(sparse_features(), config(epochs=1, estimator=estimator), order=order)


class Ordinary(nn.Module):
    """A model of PyTorch's own layers, which draw from the default generator, over two matrices."""

    def __init__(self, features: int, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, hidden), nn.Linear(features, hidden)
        self.norm, self.dropout = nn.BatchNorm1d(hidden), nn.Dropout(dropout)
        self.last = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        h = self.first(propagate(x, over="gcn")) + self.second(propagate(x, over="mean"))
        h = self.dropout(torch.relu(self.norm(h)))
        return self.last(propagate(h, over="gcn") + propagate(h, over="mean"))


@pytest.mark.parametrize("estimator", ["cvd", "two-way"])
def test_an_ordinary_model_resumes_with_the_default_random_numbers_of_the_gpu(
    tmp_path, estimator
) -> None:
    settings = config(estimator=estimator, checkpoint_every="1")
    given: dict[str, Any] = {"propagation": {"gcn": "gcn", "mean": "mean"}}
    wanted = train(GRAPH, settings, {"kind": Ordinary}, **given)
    settings = replace(settings, device="cuda")
    with on_cuda():
        part = replace(settings, epochs=1)
        train(GRAPH, part, {"kind": Ordinary}, checkpoints=tmp_path, **given)
        found = train(GRAPH, settings, {"kind": Ordinary}, resume=tmp_path, **given)
    assert_same(found, wanted)


@pytest.mark.parametrize("directory", [None, "tables"])
def test_a_saved_model_predicts_on_a_gpu_and_answers_on_the_cpu(tmp_path, directory) -> None:
    graph, scaling = scale_graph(numbers(), "standard")
    assert scaling.kind == "standard"
    model = GraphSAGE(5, 8, 1)
    fit(model, graph, config(estimator="two-way", epochs=1))
    save_model(model, tmp_path / "model.safetensors")
    wanted = predict(model, graph), embeddings(model, graph, nodes=[3, 14])
    folder = None if directory is None else tmp_path / directory
    with on_cuda() as cuda:
        saved = load_model(tmp_path / "model.safetensors")
        saved.model.to("cuda")
        found = (
            predict(saved, numbers(), directory=folder),
            embeddings(saved, numbers(), nodes=torch.tensor([3, 14], device="cuda")),
        )
        save_model(saved, tmp_path / "again.safetensors")
    assert cuda.operations["aten::mm", False]
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.device == CPU
        assert torch.equal(ours, theirs)
    first, again = (tmp_path / f"{name}.safetensors" for name in ("model", "again"))
    assert first.read_bytes() == again.read_bytes()


def test_diagnostics_compare_estimators_on_a_gpu() -> None:
    graph, settings = sparse_features(1100), config(estimator="cvd", epochs=1)

    def gradients(device: str) -> list[float]:
        torch.manual_seed(7)
        model = GraphSAGE(1100, 4, 3, dropout=0.3, order="before")
        chosen = {name: ESTIMATORS[name] for name in ("cvd",)}
        found = diagnose(
            model, graph, replace(settings, device=device), estimators=chosen, passes=2
        )
        return [measured.gradient.error for measured in found.estimators.values()]

    wanted = gradients("cpu")
    with on_cuda():
        assert gradients("cuda") == wanted


def test_tensors_of_a_gpu_may_be_given_in_place_of_those_of_the_cpu() -> None:
    """The graph and what is planned stay on the CPU."""
    with on_cuda():
        matrix = (torch.ones(90, 90) / 90).to("cuda")
        graph = Graph(
            GRAPH.edge_index().to("cuda"),
            GRAPH.features.to("cuda"),
            GRAPH.labels.to("cuda"),
            train=THIRD.to("cuda"),
        )
        graph = graph.with_features(graph.features.to("cuda") * 2)
        assert graph.features.device == CPU
        torch.manual_seed(7)
        model = GraphSAGE(5, 8, 3).to("cuda")
        batches = MiniBatches(
            model,
            graph,
            estimator="two-way",
            batch_size=BATCH,
            propagation=matrix,
            trained=torch.ones(90, dtype=torch.bool, device="cuda"),
        )
        for batch in (*batches, batches.batch(THIRD[:4].to("cuda"))):
            outputs, labels = batch.run(model)[batch.in_loss], batch.labels[batch.in_loss]
            loss = batch.mean(F.cross_entropy(outputs, labels, reduction="none"))
            loss.backward()
            batch.commit()
            assert (batch.nodes.device, loss.device) == (CPU, CUDA)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_step_in_memory_brings_no_table_back_from_the_gpu(estimator) -> None:
    """A byte for each node of the minibatch, whether it counts in the loss, and single numbers."""
    with pretended_cuda() as cuda:
        model = GraphSAGE(5, 8, 3, layers=3, dropout=0.3).to("cuda")
        settings = config(estimator=estimator, device="cuda")
        trainer = Trainer(model, GRAPH, settings, find_target(GRAPH, settings))
        trainer.advance()
        cuda.copied = cuda.waits = 0
        trainer._step(next(iter(trainer.minibatches)))
        assert 0 < cuda.copied <= BATCH
        assert 0 < cuda.waits <= (41 if estimator == "two-way-cv" else 11)


def test_a_tensor_that_was_left_on_the_cpu_is_named() -> None:
    class Forgetful(GCN):
        def __init__(self, *widths: int, **given: Any) -> None:
            super().__init__(*widths, **given)
            self.shift = torch.zeros(3)  # no buffer: `model.to` does not know it

        def forward(self, x: Tensor, propagate: Any) -> Tensor:
            return super().forward(x, propagate) + self.shift

    train(GRAPH, config(epochs=1), {"kind": Forgetful})
    with (
        pretended_cuda(),
        refused(RuntimeError),
    ):
        train(GRAPH, config(epochs=1, device="cuda"), {"kind": Forgetful})


def test_a_table_of_a_gpu_is_mapped_from_no_file(tmp_path: Path) -> None:
    """A GPU's table may lie at an address where a file was mapped before."""
    assert is_mapped(zeros((4, 4), torch.float32, tmp_path / "table.bin"))
    with pretended_cuda():
        assert not is_mapped(note_mapped(torch.zeros(4, 4, device="cuda")))
