"""Bad inputs, one by one, give an error that names the offender and says what to do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.messages import refused
from vrgcn import (
    GCN,
    Dropout,
    Estimator,
    Graph,
    GraphSAGE,
    MiniBatches,
    Propagation,
    TrainConfig,
    fit,
    predict,
)
from vrgcn.engine.estimators import find_estimator
from vrgcn.graph.propagation import gcn

NAN, INF = float("nan"), float("inf")
N = 4
X = torch.ones(N, 2)
Y = [0, 1, 0, 1]


def sparse(value: float) -> torch.Tensor:
    x = torch.zeros(N, 2)
    x[2, 1] = value
    return x.to_sparse_csr()


def path(**given) -> Graph:
    return Graph(**{"edge_index": [[0, 1, 2], [1, 2, 3]], "features": X, "labels": Y, **given})


def trainable(**given) -> Graph:
    return path(**{"train": [0, 1], "val": [2], "test": [3], **given})


def csr_out_of_range() -> torch.Tensor:
    """Return a matrix as a wrong column in a file makes it: PyTorch checks only when asked to."""
    return torch.sparse_csr_tensor(
        torch.arange(N + 1), torch.tensor([0, 1, 0, 9]), torch.ones(N), (N, 2),
        check_invariants=False,
    )  # fmt: skip


BAD_EDGES = {
    "node id too large": {"edge_index": [[0, 1], [1, 4]]},
    "node id negative": {"edge_index": [[0, -1], [1, 2]]},
    "not two rows": {"edge_index": [[0, 1], [1, 2], [2, 3]]},
    "one row": {"edge_index": [0, 1, 2]},
    "too few weights": {"edge_weight": [1.0, 2.0]},
    "weights as a column": {"edge_weight": [[1.0], [2.0], [3.0]]},
    "NaN weight": {"edge_weight": [1.0, NAN, 1.0]},
    "infinite weight": {"edge_weight": [1.0, 1.0, INF]},
    "weight beyond float32": {"edge_weight": [1.0, 1e300, 1.0]},
}

BAD_FEATURES = {
    "NaN": {"features": [[0, 0], [0, NAN], [0, 0], [0, 0]]},
    "infinite": {"features": [[0, 0], [0, 0], [0, 0], [-INF, 0]]},
    "sparse NaN": {"features": sparse(NAN)},
    "sparse infinite": {"features": sparse(INF)},
    "one dimension": {"features": torch.ones(N)},
    "three dimensions": {"features": torch.ones(N, 2, 2)},
    "sparse, one dimension": {"features": torch.ones(N).to_sparse()},
    "sparse column out of range": {"features": csr_out_of_range()},
    "no nodes": {"features": torch.ones(0, 2)},
    "no columns": {"features": torch.ones(N, 0)},
}

BAD_LABELS = {
    "too few": {"labels": [0, 1]},
    "three dimensions": {"labels": torch.zeros(N, 2, 2)},
    "below -1": {"labels": [0, 1, -2, 1]},
    "all below -1": {"labels": [-5, -3, -4, -3]},
    "below -1 of no class": {"labels": [-1, -3, -1, -1]},
    "beyond num_classes": {"labels": Y, "num_classes": 1},
    "multi-label of 2": {"labels": [[0, 1], [0, 2], [1, 1], [0, 0]]},
    "multi-label of 0.5": {"labels": [[0, 0.5]] + [[0, 1]] * 3},
    "multi-label half unknown": {"labels": [[0, 1], [-1, 1], [1, 1], [0, 0]]},
    "multi-label, other num_classes": {"labels": torch.zeros(N, 3), "num_classes": 2},
    "multi-label without classes": {"labels": torch.zeros(N, 0), "train": [0]},
    "unknown task": {"labels": Y, "task": "ranking"},
    "classes in columns": {"labels": torch.zeros(N, 2), "task": "classes"},
    "multi-label in one column": {"labels": Y, "task": "multilabel"},
    "numbers in columns": {"labels": torch.zeros(N, 2), "task": "regression"},
    "infinite number": {"labels": [0.5, 1, INF, -INF], "task": "regression"},
    "classes of numbers": {"labels": [0.5] * N, "task": "regression", "num_classes": 3},
}

BAD_SPLITS = {
    "overlap": {"train": [0, 1], "val": [1, 2]},
    "overlap of masks": {"train": [True] * 4, "test": [False, False, True, True]},
    "empty list": {"train": []},
    "empty mask": {"val": [False] * N},
    "named twice": {"train": [0, 1, 1]},
    "mask of 0 and 1": {"train": [1, 1, 0, 1]},
    "out of range": {"test": [0, 7, 9]},
    "negative": {"test": [-1]},
    "mask of the wrong length": {"train": [True, False]},
    "two dimensions": {"train": [[0], [1]]},
    "no label": {"labels": [0, 1, -1, -1], "train": [1, 2, 3]},
    "no number": {"labels": [0.5, NAN, 1, 2], "task": "regression", "train": [0, 1]},
    "no multi-label": {"labels": [[0, 1]] * 3 + [[NAN, NAN]], "val": [3]},
    "no labels at all": {"labels": None, "train": [0]},
}

WRONG_TYPES = {
    "float edges": {"edge_index": [[0.0], [1.0]]},
    "boolean edges": {"edge_index": [[False], [True]]},
    "names as edges": {"edge_index": [["a"], ["b"]]},
    "ragged edges": {"edge_index": [[0, 1], [1]]},
    "complex weights": {"edge_weight": np.ones(3) * 1j},
    "boolean weights": {"edge_weight": [True] * 3},
    "complex features": {"features": X * 1j},
    "boolean features": {"features": X > 0},
    "words as features": {"features": [["a"], ["b"], ["c"], ["d"]]},
    "features in columns": {"features": X.to_sparse_csc()},
    "float classes": {"labels": [0.0, 1.0, 0.0, 1.0]},
    "float classes, what to do": {"labels": [0.5, 1.0, 0.0, 1.0]},
    "boolean numbers": {"labels": [True] * N, "task": "regression"},
    "complex numbers": {"labels": np.ones(N) * 1j, "task": "regression"},
    "complex multi-labels": {"labels": torch.ones(N, 2) * 1j},
    "float split": {"train": [0.0, 1.0]},
}


def cases(table: dict) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("given", table.values(), ids=table)


@cases(BAD_EDGES | BAD_FEATURES | BAD_LABELS | BAD_SPLITS)
def test_graph_refuses_wrong_values(given):
    with refused():
        path(**given)


@cases(WRONG_TYPES)
def test_graph_refuses_wrong_types(given):
    with refused(TypeError):
        path(**given)


def test_unknown_split_name_is_refused():
    with refused():
        path().split("valid")


@pytest.mark.parametrize("rule", ["gcn", "mean"])
def test_normalised_propagation_refuses_negative_weights(rule):
    graph = trainable(edge_weight=[1.0, -2.0, 1.0])
    with refused():
        predict(GCN(2, 3, 2), graph, propagation=rule)


def test_the_first_negative_weight_is_found_beyond_the_first_piece(monkeypatch):
    monkeypatch.setattr("vrgcn.graph.propagation.CHUNK_COST", 2)
    graph = trainable(edge_weight=[1.0, 1.0, -3.0])
    with refused():
        gcn(graph)


def test_own_matrix_may_be_negative():
    P = Propagation.from_matrix(torch.tensor([[0.5, -2.0], [0.0, 1.0]]))
    assert P.to_dense().tolist() == [[0.5, -2.0], [0.0, 1.0]]


BAD_MATRICES = {
    "not square": torch.ones(2, 3),
    "one dimension": torch.ones(3),
    "three dimensions": torch.ones(3, 3, 3),
    "NaN": torch.full((2, 2), NAN),
    "beyond float32": torch.full((2, 2), 1e300, dtype=torch.float64),
}


@cases(BAD_MATRICES)
def test_bad_propagation_matrix_is_refused(given):
    with refused():
        Propagation.from_matrix(given)


BAD_CONFIGS = {
    "epochs": {"epochs": 0},
    "batch_size": {"batch_size": 0},
    "sample_size": {"sample_size": 0},
    "evaluate_every": {"evaluate_every": 0},
    "patience": {"patience": -1},
    "threads": {"threads": 0},
    "history_cap": {"history_cap": 0},
    "weight_decay": {"weight_decay": -1e-4},
    "weight_decay NaN": {"weight_decay": NAN},
    "epochs that are not whole": {"epochs": 2.5},
    "batch_size of a text": {"batch_size": "8"},
    "fanout": {"fanout": -1},
    "one fanout of several": {"fanout": (2, -3)},
    "no fanout": {"fanout": ()},
    "zero learning rate": {"learning_rate": 0.0},
    "infinite learning rate": {"learning_rate": INF},
    "NaN learning rate": {"learning_rate": NAN},
    "optimizer": {"optimizer": "rmsprop"},
    "decay": {"decay": "none"},
    "select": {"select": "final"},
    "refresh": {"refresh": "sometimes"},
    "visit": {"visit": "val"},
    "estimator": {"estimator": "cvv"},
    "propagation": {"propagation": "sum"},
    "history dtype": {"history_dtype": "int8"},
    "fanouts": {"fanout": (1, 2, 3)},
}


@cases(BAD_CONFIGS)
def test_bad_setting_is_refused_by_name(given):
    with refused():
        fit(GCN(2, 3, 2), trainable(), TrainConfig(**{"epochs": 1, **given}))


BAD_MINIBATCHES = {
    "batch_size": {"batch_size": 0},
    "fanout": {"fanout": -2},
    "sample_size": {"sample_size": 0},
    "history_cap": {"history_cap": 0},
    "own edges drawn": {"estimator": "importance/corrected/sampled"},
    "visited by name": {"nodes": "val"},
    "visited out of range": {"nodes": [0, 4]},
    "visited twice": {"nodes": [0, 1, 1]},
    "none visited": {"nodes": []},
    "visited in floats": {"nodes": [0.5]},
    "visited as a mask": {"nodes": [True, False, False, False]},
    "inductive with one matrix": {"inductive": True, "propagation": gcn(path())},
    "matrix of another graph": {"propagation": Propagation.from_matrix(torch.eye(3))},
}


@cases(BAD_MINIBATCHES)
def test_bad_minibatches_are_refused(given):
    with refused():
        MiniBatches(GCN(2, 3, 2), trainable(), **given)


BAD_MODELS = {
    "dropout": lambda: Dropout(1.0),
    "NaN dropout": lambda: GCN(2, 3, 2, dropout=NAN),
    "width": lambda: GCN(0, 3, 2),
    "hidden": lambda: GCN(2, 0, 2),
    "layers": lambda: GraphSAGE(2, 3, 2, layers=0),
    "dense": lambda: GraphSAGE(2, 3, 2, dense=0),
    "order": lambda: GCN(2, 3, 2, order="M0"),
    "activation": lambda: GCN(2, 3, 2, activation="sin"),
    "residual alone": lambda: Estimator("full", dropout_residual=True),
    "forward": lambda: Estimator("full", "none"),
    "backward": lambda: Estimator("full", backward="guess"),
    "sampler": lambda: Estimator("best"),
    "composition": lambda: find_estimator("uniform/history"),
    "part of a composition": lambda: find_estimator("best/history/none"),
}


@cases(BAD_MODELS)
def test_bad_part_is_refused(given):
    with refused():
        given()


class Scaled(nn.Module):
    """One linear layer whose outputs are multiplied: by infinity, the loss is NaN."""

    def __init__(self, factor: float = 1.0, width: int = 2, calls: int = 1) -> None:
        super().__init__()
        self.linear = nn.Linear(2, width)
        self.factor = factor
        self.calls = calls

    def forward(self, x, propagate):
        for _ in range(self.calls):
            x = propagate(x)
        return self.linear(x) * self.factor


class Parameterless(nn.Module):
    def forward(self, x, propagate):
        return propagate(x)


BAD_FITS = {
    "output too narrow": (Scaled(width=1), {}, {}),
    "output too wide": (Scaled(width=3), {}, {}),
    "output too wide, all visited": (
        Scaled(width=3),
        {"train": [3], "test": None},
        {"visit": "all", "batch_size": 1},
    ),
    "no parameters": (Parameterless(), {}, {}),
    "no train split": (Scaled(), {"train": None}, {}),
    "no train split, all visited": (Scaled(), {"train": None}, {"visit": "all"}),
    "no labels": (Scaled(), {"labels": None, "train": None, "val": None, "test": None}, {}),
    "preprocessing an M0 model": (GCN(2, 3, 2, order="before"), {}, {"preprocess": True}),
}


@pytest.mark.parametrize(("model", "graph", "config"), BAD_FITS.values(), ids=BAD_FITS.keys())
def test_fit_refuses(model, graph, config):
    with refused():
        fit(model, trainable(**graph), TrainConfig(**{"epochs": 1, **config}))


@pytest.mark.parametrize("factor", [INF, 1e38])
def test_loss_that_is_not_finite_stops_at_once_and_tells_where(factor):
    with refused(FloatingPointError):
        fit(Scaled(factor), trainable(features=X * 1e3), TrainConfig(batch_size=1))


def test_diverging_run_tells_the_learning_rate():
    torch.manual_seed(0)
    config = TrainConfig(learning_rate=1e38, optimizer="sgd", epochs=9, batch_size=1)
    with refused(FloatingPointError):
        fit(Scaled(), trainable(features=X * 10), config)


@pytest.mark.parametrize(
    "nodes",
    [
        [0, 9],
        [-1],
        [],
        2,
        [[0], [1]],
        [0.0],
        [True, False, True, False],
    ],
)
def test_predict_refuses_bad_nodes(nodes):
    with refused():
        predict(GCN(2, 3, 2), path(), nodes)


def test_model_must_propagate_all_rows():
    class Half(Scaled):
        def forward(self, x, propagate):
            return self.linear(propagate(x[: len(x) // 2]))

    with refused(RuntimeError):
        fit(Half(), trainable())


def test_own_must_be_of_the_current_nodes():
    class Early(Scaled):
        def forward(self, x, propagate):
            return self.linear(propagate.own(x[:1]) + propagate(x))

    with refused(RuntimeError):
        predict(Early(), path())


def test_model_must_propagate_as_often_as_at_first():
    model = Scaled()
    batches = MiniBatches(model, trainable())
    model.calls = 2
    with refused(RuntimeError):
        next(iter(batches)).run(model)
    fewer = Scaled(calls=2)
    batches = MiniBatches(fewer, trainable(), estimator="exact", batch_size=1)
    fewer.calls = 1
    with refused(RuntimeError):
        batches.batch(torch.tensor([1])).run(fewer)


def test_commit_comes_once_and_after_run():
    model = Scaled()
    batch = next(iter(MiniBatches(model, trainable())))
    with refused(RuntimeError):
        batch.commit()
    batch.run(model)
    batch.commit()
    with refused(RuntimeError):
        batch.commit()
