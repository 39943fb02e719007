"""Bad inputs, one by one, give an error that names the offender and says what to do."""
# ruff: noqa: E501  (one case per line)

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

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
    "node id too large": ({"edge_index": [[0, 1], [1, 4]]}, "1 edges name nodes outside 0..3, first: edge 1 from 1 to 4"),
    "node id negative": ({"edge_index": [[0, -1], [1, 2]]}, "edge 1 from -1 to 2"),
    "not two rows": ({"edge_index": [[0, 1], [1, 2], [2, 3]]}, r"edge_index must be \(2, edges\).*not \(3, 2\)"),
    "one row": ({"edge_index": [0, 1, 2]}, r"edge_index must be \(2, edges\)"),
    "too few weights": ({"edge_weight": [1.0, 2.0]}, r"edge_weight must be one number per edge, \(3,\)"),
    "weights as a column": ({"edge_weight": [[1.0], [2.0], [3.0]]}, r"edge_weight .*not \(3, 1\)"),
    "NaN weight": ({"edge_weight": [1.0, NAN, 1.0]}, "1 edge weights are NaN or infinite, first: edge 1 from 1 to 2"),
    "infinite weight": ({"edge_weight": [1.0, 1.0, INF]}, "first: edge 2 from 2 to 3"),
    "weight beyond float32": ({"edge_weight": [1.0, 1e300, 1.0]}, "edge 1 from 1 to 2"),
}  # fmt: skip

BAD_FEATURES = {
    "NaN": ({"features": [[0, 0], [0, NAN], [0, 0], [0, 0]]}, "features hold NaN or infinite.*node 1, column 1"),
    "infinite": ({"features": [[0, 0], [0, 0], [0, 0], [-INF, 0]]}, "node 3, column 0; fill or drop"),
    "sparse NaN": ({"features": sparse(NAN)}, "NaN or infinite.*node 2, column 1"),
    "sparse infinite": ({"features": sparse(INF)}, "NaN or infinite.*node 2, column 1"),
    "one dimension": ({"features": torch.ones(N)}, r"features must be \(nodes, width\), not of shape \(4,\)"),
    "three dimensions": ({"features": torch.ones(N, 2, 2)}, r"features must be \(nodes, width\)"),
    "sparse, one dimension": ({"features": torch.ones(N).to_sparse()}, r"features must be \(nodes, width\)"),
    "sparse column out of range": ({"features": csr_out_of_range()}, "features"),
    "no nodes": ({"features": torch.ones(0, 2)}, r"features are empty: shape \(0, 2\)"),
    "no columns": ({"features": torch.ones(N, 0)}, r"features are empty: shape \(4, 0\)"),
}  # fmt: skip

BAD_LABELS = {
    "too few": ({"labels": [0, 1]}, r"labels must be \(4,\), one class per node, or \(4, classes\)"),
    "three dimensions": ({"labels": torch.zeros(N, 2, 2)}, "labels must be"),
    "below -1": ({"labels": [0, 1, -2, 1]}, r"1 labels are outside 0..1 \(-1 where unknown\), first: -2 at node 2"),
    "all below -1": ({"labels": [-5, -3, -4, -3]}, r"4 labels are below 0 and not -1, which stands for an unknown one, first: -5 at node 0"),
    "below -1 of no class": ({"labels": [-1, -3, -1, -1]}, r"1 labels are below 0 and not -1.*first: -3 at node 1"),
    "beyond num_classes": ({"labels": Y, "num_classes": 1}, "2 labels are outside 0..0.*first: 1 at node 1"),
    "multi-label of 2": ({"labels": [[0, 1], [0, 2], [1, 1], [0, 0]]}, "must be 0 or 1.*first: 2 at node 1, class 1"),
    "multi-label of 0.5": ({"labels": [[0, 0.5]] + [[0, 1]] * 3}, "must be 0 or 1.*0.5 at node 0, class 1"),
    "multi-label half unknown": ({"labels": [[0, 1], [-1, 1], [1, 1], [0, 0]]}, "a whole row of -1.*node 1, class 0"),
    "multi-label, other num_classes": ({"labels": torch.zeros(N, 3), "num_classes": 2}, "num_classes is 2 but labels have 3"),
    "multi-label without classes": ({"labels": torch.zeros(N, 0), "train": [0]}, r"labels.*\(4, 0\)"),
    "unknown task": ({"labels": Y, "task": "ranking"}, "task 'ranking' is none of classes, multilabel, regression"),
    "classes in columns": ({"labels": torch.zeros(N, 2), "task": "classes"}, r"'classes' takes labels of shape \(nodes,\), not \(4, 2\)"),
    "multi-label in one column": ({"labels": Y, "task": "multilabel"}, r"'multilabel' takes labels of shape \(nodes, classes\), not \(4,\)"),
    "numbers in columns": ({"labels": torch.zeros(N, 2), "task": "regression"}, r"labels must be \(4,\), one number per node; not \(4, 2\)"),
    "infinite number": ({"labels": [0.5, 1, INF, -INF], "task": "regression"}, "2 labels are infinite, first: node 2; give NaN"),
    "classes of numbers": ({"labels": [0.5] * N, "task": "regression", "num_classes": 3}, "num_classes is 3, and task=\"regression\" has no"),
}  # fmt: skip

BAD_SPLITS = {
    "overlap": ({"train": [0, 1], "val": [1, 2]}, "val and train overlap in 1 nodes, first: node 1"),
    "overlap of masks": ({"train": [True] * 4, "test": [False, False, True, True]}, "test and train overlap in 2"),
    "empty list": ({"train": []}, "train is empty; leave it out"),
    "empty mask": ({"val": [False] * N}, "val is empty"),
    "named twice": ({"train": [0, 1, 1]}, "train names 1 nodes more than once"),
    "mask of 0 and 1": ({"train": [1, 1, 0, 1]}, "train names 2 nodes more than once; if it is a mask, make it boolean: train == 1"),
    "out of range": ({"test": [0, 7, 9]}, "test names 2 nodes outside 0..3, first: 7"),
    "negative": ({"test": [-1]}, "test names 1 nodes outside 0..3, first: -1"),
    "mask of the wrong length": ({"train": [True, False]}, "train is a mask of 2 for 4 nodes"),
    "two dimensions": ({"train": [[0], [1]]}, r"train must be one-dimensional, not of shape \(2, 1\)"),
    "no label": ({"labels": [0, 1, -1, -1], "train": [1, 2, 3]}, "train has 2 nodes without a label, first: node 2"),
    "no number": ({"labels": [0.5, NAN, 1, 2], "task": "regression", "train": [0, 1]}, "train has 1 nodes without a label, first: node 1"),
    "no multi-label": ({"labels": [[0, 1]] * 3 + [[NAN, NAN]], "val": [3]}, "val has 1 nodes without a label"),
    "no labels at all": ({"labels": None, "train": [0]}, "there is a train split but there are no labels"),
}  # fmt: skip

WRONG_TYPES = {
    "float edges": ({"edge_index": [[0.0], [1.0]]}, "edge_index must hold integers, not torch.float64"),
    "boolean edges": ({"edge_index": [[False], [True]]}, "edge_index must hold integers"),
    "names as edges": ({"edge_index": [["a"], ["b"]]}, "edge_index must be a tensor or an array of numbers"),
    "ragged edges": ({"edge_index": [[0, 1], [1]]}, "edge_index must be a tensor or an array of numbers"),
    "complex weights": ({"edge_weight": np.ones(3) * 1j}, "edge_weight must be real"),
    "boolean weights": ({"edge_weight": [True] * 3}, "edge_weight must be real numbers, not torch.bool"),
    "complex features": ({"features": X * 1j}, "features must be real numbers, not torch.complex64"),
    "boolean features": ({"features": X > 0}, "features must be real numbers, not torch.bool"),
    "words as features": ({"features": [["a"], ["b"], ["c"], ["d"]]}, "features must be a tensor or an array"),
    "features in columns": ({"features": X.to_sparse_csc()}, "features must be dense or sparse CSR, not torch.sparse_csc"),
    "float classes": ({"labels": [0.0, 1.0, 0.0, 1.0]}, "labels .*must be integers"),
    "float classes, what to do": ({"labels": [0.5, 1.0, 0.0, 1.0]}, 'not torch.float64; if .*task="regression"'),
    "boolean numbers": ({"labels": [True] * N, "task": "regression"}, "must be real numbers, not torch.bool"),
    "complex numbers": ({"labels": np.ones(N) * 1j, "task": "regression"}, "must be real numbers"),
    "complex multi-labels": ({"labels": torch.ones(N, 2) * 1j}, "0 or 1"),
    "float split": ({"train": [0.0, 1.0]}, "train must be node ids or a boolean mask, not torch.float64"),
}  # fmt: skip


def cases(table: dict) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("given", "words"), table.values(), ids=table)


@cases(BAD_EDGES | BAD_FEATURES | BAD_LABELS | BAD_SPLITS)
def test_graph_refuses_wrong_values(given, words):
    with pytest.raises(ValueError, match=words):
        path(**given)


@cases(WRONG_TYPES)
def test_graph_refuses_wrong_types(given, words):
    with pytest.raises(TypeError, match=words):
        path(**given)


def test_unknown_split_name_is_refused():
    with pytest.raises(ValueError, match="no split 'valid'; there are train, val, test"):
        path().split("valid")


@pytest.mark.parametrize("rule", ["gcn", "mean"])
def test_normalised_propagation_refuses_negative_weights(rule):
    graph = trainable(edge_weight=[1.0, -2.0, 1.0])
    words = f"negative weight, first: -2 on the edge from 1 to 2. An average by '{rule}' needs"
    with pytest.raises(ValueError, match=words):
        predict(GCN(2, 3, 2), graph, propagation=rule)


def test_the_first_negative_weight_is_found_beyond_the_first_piece(monkeypatch):
    monkeypatch.setattr("vrgcn.graph.propagation.CHUNK_COST", 2)
    graph = trainable(edge_weight=[1.0, 1.0, -3.0])
    with pytest.raises(
        ValueError, match="1 edge has a negative weight, first: -3 on the edge from 2 to 3"
    ):
        gcn(graph)


def test_own_matrix_may_be_negative():
    P = Propagation.from_matrix(torch.tensor([[0.5, -2.0], [0.0, 1.0]]))
    assert P.to_dense().tolist() == [[0.5, -2.0], [0.0, 1.0]]


BAD_MATRICES = {
    "not square": (torch.ones(2, 3), r"must be square, not of shape \(2, 3\)"),
    "one dimension": (torch.ones(3), r"must be square, not of shape \(3,\)"),
    "three dimensions": (torch.ones(3, 3, 3), r"must be square, not of shape \(3, 3, 3\)"),
    "NaN": (torch.full((2, 2), NAN), "NaN or infinite"),
    "beyond float32": (torch.full((2, 2), 1e300, dtype=torch.float64), "NaN or infinite"),
}  # fmt: skip


@cases(BAD_MATRICES)
def test_bad_propagation_matrix_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Propagation.from_matrix(given)


BAD_CONFIGS = {
    "epochs": ({"epochs": 0}, "epochs must be at least 1, not 0"),
    "batch_size": ({"batch_size": 0}, "batch_size must be at least 1"),
    "sample_size": ({"sample_size": 0}, "sample_size must be at least 1"),
    "evaluate_every": ({"evaluate_every": 0}, "evaluate_every must be at least 1"),
    "patience": ({"patience": -1}, "patience must be at least 0"),
    "threads": ({"threads": 0}, "threads must be at least 1"),
    "history_cap": ({"history_cap": 0}, "history_cap must be at least 1"),
    "weight_decay": ({"weight_decay": -1e-4}, "weight_decay must be at least 0"),
    "weight_decay NaN": ({"weight_decay": NAN}, "weight_decay must be at least 0"),
    "epochs that are not whole": ({"epochs": 2.5}, "epochs must be a whole number, not 2.5"),
    "batch_size of a text": ({"batch_size": "8"}, "batch_size must be a whole number, not '8'"),
    "fanout": ({"fanout": -1}, "fanout must be at least 0, not -1"),
    "one fanout of several": ({"fanout": (2, -3)}, "fanout must be at least 0, not -3"),
    "no fanout": ({"fanout": ()}, "fanout"),
    "zero learning rate": ({"learning_rate": 0.0}, "learning_rate must be positive, not 0"),
    "infinite learning rate": ({"learning_rate": INF}, "learning_rate must be positive, not inf"),
    "NaN learning rate": ({"learning_rate": NAN}, "learning_rate must be positive, not nan"),
    "optimizer": ({"optimizer": "rmsprop"}, "optimizer 'rmsprop'.*adam"),
    "decay": ({"decay": "none"}, "decay 'none'.*first"),
    "select": ({"select": "final"}, "select 'final'.*best"),
    "refresh": ({"refresh": "sometimes"}, "refresh 'sometimes'.*auto"),
    "visit": ({"visit": "val"}, "visit.*'val'"),
    "estimator": ({"estimator": "cvv"}, "estimator 'cvv' is none of exact, ns, is, cv, cvd, history"),
    "propagation": ({"propagation": "sum"}, "propagation 'sum' is none of gcn, symmetric, mean"),
    "history dtype": ({"history_dtype": "int8"}, "'int8' is none of float32, float16, bfloat16"),
    "fanouts": ({"fanout": (1, 2, 3)}, "fanout has 3 entries but the model propagates 2 times; give one number"),
}  # fmt: skip


@cases(BAD_CONFIGS)
def test_bad_setting_is_refused_by_name(given, words):
    with pytest.raises(ValueError, match=words):
        fit(GCN(2, 3, 2), trainable(), TrainConfig(**{"epochs": 1, **given}))


BAD_MINIBATCHES = {
    "batch_size": ({"batch_size": 0}, "batch_size must be at least 1"),
    "fanout": ({"fanout": -2}, "fanout must not be negative"),
    "sample_size": ({"sample_size": 0}, "sample_size must be at least 1"),
    "history_cap": ({"history_cap": 0}, "history_cap must be at least 1"),
    "own edges drawn": (
        {"estimator": "importance/corrected/sampled"}, "importance draws a node's own edge"
    ),
    "visited by name": ({"nodes": "val"}, "nodes must be 'train', 'all' or node ids, not 'val'"),
    "visited out of range": ({"nodes": [0, 4]}, r"nodes names 1 nodes outside 0\.\.3, first: 4"),
    "visited twice": ({"nodes": [0, 1, 1]}, "nodes names some node more than once"),
    "none visited": ({"nodes": []}, "nodes must be a list of at least one node id"),
    "visited in floats": ({"nodes": [0.5]}, "nodes must be"),
    "visited as a mask": ({"nodes": [True, False, False, False]}, "nodes must be"),
    "inductive with one matrix": ({"inductive": True, "propagation": gcn(path())}, "give a function from a graph"),
    "matrix of another graph": ({"propagation": Propagation.from_matrix(torch.eye(3))}, "has 3 rows and the graph 4 nodes"),
}  # fmt: skip


@cases(BAD_MINIBATCHES)
def test_bad_minibatches_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        MiniBatches(GCN(2, 3, 2), trainable(), **given)


BAD_MODELS = {
    "dropout": (lambda: Dropout(1.0), "dropout must be at least 0 and below 1, not 1"),
    "NaN dropout": (lambda: GCN(2, 3, 2, dropout=NAN), "dropout must be .* not nan"),
    "width": (lambda: GCN(0, 3, 2), "in_features must be at least 1"),
    "hidden": (lambda: GCN(2, 0, 2), "hidden must be at least 1"),
    "layers": (lambda: GraphSAGE(2, 3, 2, layers=0), "layers must be at least 1"),
    "dense": (lambda: GraphSAGE(2, 3, 2, dense=0), "dense must be at least 1"),
    "order": (lambda: GCN(2, 3, 2, order="M0"), "order must be 'after' or 'before', not 'M0'"),
    "activation": (lambda: GCN(2, 3, 2, activation="sin"), "activation 'sin' is none of relu"),
    "residual alone": (lambda: Estimator("full", dropout_residual=True), "needs the history"),
    "forward": (lambda: Estimator("full", "none"), "forward 'none' is none of sampled, history"),
    "backward": (lambda: Estimator("full", backward="guess"), "backward 'guess' is none of none"),
    "sampler": (lambda: Estimator("best"), "sampler 'best' is none of full"),
    "composition": (lambda: find_estimator("uniform/history"), "SAMPLER/FORWARD/BACKWARD"),
    "part of a composition": (
        lambda: find_estimator("best/history/none"), "'best/history/none': sampler 'best' is none"
    ),
}  # fmt: skip


@cases(BAD_MODELS)
def test_bad_part_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
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
    "output too narrow": (Scaled(width=1), {}, {}, r"output has shape \(2, 1\), and the graph 2 classes"),
    "output too wide": (Scaled(width=3), {}, {}, r"output has shape \(2, 3\).*must be \(nodes, 2\)"),
    "output too wide, all visited": (Scaled(width=3), {"train": [3], "test": None}, {"visit": "all", "batch_size": 1}, "output has shape"),
    "no parameters": (Parameterless(), {}, {}, "no parameters to train"),
    "no train split": (Scaled(), {"train": None}, {}, "no training nodes: give it a train split"),
    "no train split, all visited": (Scaled(), {"train": None}, {"visit": "all"}, "no training nodes: give it a train split"),
    "no labels": (Scaled(), {"labels": None, "train": None, "val": None, "test": None}, {}, "no labels to train on"),
    "preprocessing an M0 model": (GCN(2, 3, 2, order="before"), {}, {"preprocess": True}, "preprocess=True needs .* use preprocess=False"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "graph", "config", "words"), BAD_FITS.values(), ids=BAD_FITS.keys()
)
def test_fit_refuses(model, graph, config, words):
    with pytest.raises(ValueError, match=words):
        fit(model, trainable(**graph), TrainConfig(**{"epochs": 1, **config}))


@pytest.mark.parametrize("factor", [INF, 1e38])
def test_loss_that_is_not_finite_stops_at_once_and_tells_where(factor):
    with pytest.raises(FloatingPointError, match=r"became (nan|inf) at epoch 1, step 1; lower the"):
        fit(Scaled(factor), trainable(features=X * 1e3), TrainConfig(batch_size=1))


def test_diverging_run_tells_the_learning_rate():
    torch.manual_seed(0)
    config = TrainConfig(learning_rate=1e38, optimizer="sgd", epochs=9, batch_size=1)
    with pytest.raises(FloatingPointError, match=r"epoch [12], step [12]; .*\(now 1e\+38\)"):
        fit(Scaled(), trainable(features=X * 10), config)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([0, 9], r"nodes names 1 nodes outside 0\.\.3, first: 9"),
        ([-1], "first: -1"),
        ([], "at least one node id"),
        (2, "list of at least one node id"),
        ([[0], [1]], "list of at least one node id"),
        ([0.0], "list of at least one node id"),
        ([True, False, True, False], "list of at least one node id"),
    ],
)
def test_predict_refuses_bad_nodes(nodes, words):
    with pytest.raises(ValueError, match=words):
        predict(GCN(2, 3, 2), path(), nodes)


def test_model_must_propagate_all_rows():
    class Half(Scaled):
        def forward(self, x, propagate):
            return self.linear(propagate(x[: len(x) // 2]))

    with pytest.raises(RuntimeError, match="propagate call 1 was given 1 rows, and has 2 nodes"):
        fit(Half(), trainable())


def test_own_must_be_of_the_current_nodes():
    class Early(Scaled):
        def forward(self, x, propagate):
            return self.linear(propagate.own(x[:1]) + propagate(x))

    with pytest.raises(RuntimeError, match=r"own was given 1 rows where 2 .*write h\[:len\(y\)\]"):
        predict(Early(), path())


def test_model_must_propagate_as_often_as_at_first():
    model = Scaled()
    batches = MiniBatches(model, trainable())
    model.calls = 2
    with pytest.raises(RuntimeError, match="called propagate more than the 1 times"):
        next(iter(batches)).run(model)
    fewer = Scaled(calls=2)
    batches = MiniBatches(fewer, trainable(), estimator="exact", batch_size=1)
    fewer.calls = 1
    with pytest.raises(RuntimeError, match="propagate"):
        batches.batch(torch.tensor([1])).run(fewer)


def test_commit_comes_once_and_after_run():
    model = Scaled()
    batch = next(iter(MiniBatches(model, trainable())))
    with pytest.raises(
        RuntimeError, match=r"batch.commit\(\) comes after batch.run\(model\), once"
    ):
        batch.commit()
    batch.run(model)
    batch.commit()
    with pytest.raises(RuntimeError, match="once"):
        batch.commit()
