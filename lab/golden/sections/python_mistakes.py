"""Mistakes from Python: type and message of each exception.

Each is a line of Python that knows the public names of `vrgcn`, `torch`, `np`, and these:

    edges    (2, 240) edges of 60 nodes      graph     a Graph of them, with classes and splits
    x        (60, 4) features                numbers   the same with numbers to be predicted
    y        (60,) classes                   model     a GraphSAGE for `graph`
"""

from __future__ import annotations

from functools import partial
from typing import Any

from lab.golden.public import public
from lab.golden.workspace import Workspace

LINES = """
TrainConfig(epoch=3)
TrainConfig(epochs=0)
TrainConfig(epochs=2.5)
TrainConfig(epochs="3")
TrainConfig(epochs=True)
TrainConfig(batch_size=0)
TrainConfig(estimator="cvv")
TrainConfig(estimator=None)
TrainConfig(fanout=-1)
TrainConfig(fanout="many")
TrainConfig(sample_size=0)
TrainConfig(learning_rate=0)
TrainConfig(learning_rate="fast")
TrainConfig(weight_decay=-1)
TrainConfig(optimizer="adamw")
TrainConfig(schedule="linear")
TrainConfig(warmup=-1)
TrainConfig(clip=0)
TrainConfig(loss="huber")
TrainConfig(class_weights="equal")
TrainConfig(label_smoothing=1)
TrainConfig(metric="f1")
TrainConfig(patience=0)
TrainConfig(time_limit="soon")
TrainConfig(checkpoint_every="soon")
TrainConfig(history_dtype="float8")
TrainConfig(memory="tape")
TrainConfig(seed=-1)
TrainConfig(threads=0)
ModelConfig(model="gat")
ModelConfig(hidden=0)
ModelConfig(layers=0)
ModelConfig(dropout=1.0)
ModelConfig(order="between")
Graph(edges, x, y[:5])
Graph(edges + 60, x, y)
Graph(edges[0], x, y)
Graph(edges.float(), x, y)
Graph(edges, x[:, 0], y)
Graph(edges, x.long(), y)
Graph(edges, x * float("nan"), y)
Graph(edges, x, y - 5)
Graph(edges, x, y.float())
Graph(edges, x, y, task="ranking")
Graph(edges, x, y, train=[0, 1], val=[1, 2])
Graph(edges, x, y, train=[0, 60])
Graph(edges, x, y, train=torch.ones(5, dtype=torch.bool))
Graph(edges, x, torch.full((60,), -1), train=[0])
Graph(edges, x, y, edge_weight=torch.ones(3))
Graph(edges, x, y, edge_weight=torch.full((240,), float("inf")))
Graph(edges, x, y).split("dev")
Graph.from_pyg(None)
fit(model, graph, TrainConfig(estimator="is", epochs=1), estimator="cvd")
fit(model, Graph(edges, x, y))
fit(model, Graph(edges, x, train=[0, 1]))
fit(GraphSAGE(7, 8, 3), graph)
fit(GraphSAGE(4, 8, 2), graph)
fit(model, numbers)
fit(model, graph, {"epochs": 3})
fit(model, graph, epochs=3)
fit(model, graph, TrainConfig(epochs=1), checkpoints="a", resume="b")
fit(model, graph, TrainConfig(epochs=1, on_nan="rollback"))
fit(model, graph, TrainConfig(epochs=1, class_weights="balanced"), objective=lambda o, y: o.sum(1))
fit(model, graph, TrainConfig(epochs=1), objective=lambda o, y: o.sum())
fit(model, graph, TrainConfig(epochs=1), propagation="laplacian")
fit(model, graph, TrainConfig(epochs=1, fanout=(1, 2, 3), estimator="cvd"))
fit(model, graph, TrainConfig(epochs=1, metric="rmse"))
fit(model, graph, TrainConfig(epochs=1, device="gpu"))
fit(model, graph, TrainConfig(epochs=2, learning_rate=1e30))
fit(torch.nn.Linear(4, 3), graph, TrainConfig(epochs=1))
fit(model, graph, TrainConfig(epochs=1), checkpoints="run/checkpoints")
fit(model, graph, TrainConfig(epochs=1), resume="run/checkpoints")
fit(model, graph, TrainConfig(epochs=1), on_epoch=5)
predict(model, Graph(edges, x[:, :2]))
predict(model, graph, nodes=[60])
predict(model, graph, nodes=["n1"])
predict(model, scale_graph(graph, "standard")[0])
predict(load_model("run").model, load_graph("papers"))
predict(model, graph, propagation="laplacian")
predictions(model, graph, nodes=[-1])
predictions(model, graph).to_pandas(top=0)
embeddings(model, graph, layer=7)
embeddings(model, graph, layer="last")
load_model("nowhere")
load_model("badrun")
load_model("full")
load_model("own.safetensors")
load_model("own.safetensors", model="nomodule:Residual")
save_model(model, "file/model.safetensors")
save_model(torch.nn.Linear(2, 2), "full")
load_graph("nowhere")
load_graph("damaged", memory="tape")
load_graph("badmeta")
load_graph("newer")
save_graph(graph, "papers")
save_graph(scale_graph(graph, "standard")[0], "new")
load_dataset("coraa")
scale_graph(graph, "max")
random_split(graph, (0.5, 0.6, 0.1))
random_split(graph, (0.5, 0.5))
random_split(Graph(edges, x), (0.6, 0.2, 0.2))
MiniBatches(model, graph, estimator="cvv")
MiniBatches(model, graph, batch_size=0)
MiniBatches(model, graph, nodes="some")
Propagation.from_matrix(torch.ones(3, 4))
tune(graph, trials=0)
tune(graph, search=("depth",), trials=1)
tune(Graph(edges, x, y), trials=1)
tune(graph, time_limit="soon")
GCN(4, 8, 3, layers=0)
GraphSAGE(4, 8, 3, dropout=2)
GraphSAGE(4, 8, 3, order="between")
Dropout(1.5)
Graph.from_pandas(frame, frame)
Graph.from_pandas(frame, links, label="colour")
Graph.from_pandas(frame, links, ratios=(1, 0, 0))
Graph.from_pandas(frame, links, features="degree", label="kind", column="a=colour")
Graph.from_networkx(frame)
VRGCNClassifier().fit(x)
VRGCNClassifier().fit(x, y[:5])
VRGCNClassifier().fit(x, y, edge_index=edges + 60)
VRGCNClassifier(epochs=0).fit(x, y)
VRGCNClassifier(model="gat").fit(x, y)
VRGCNClassifier(settings={"epoch": 3}).fit(x, y)
VRGCNClassifier(settings={"epochs": 3}).fit(x, y)
VRGCNClassifier(validation_fraction=2).fit(x, y)
VRGCNClassifier(class_weight="equal").fit(x, y)
VRGCNClassifier(scaling="max").fit(x, y)
VRGCNClassifier(estimator="cvv").fit(x, y)
VRGCNClassifier().predict(x)
VRGCNClassifier(epochs=1).fit(x, y, edge_index=edges).predict(x[:5])
VRGCNClassifier(epochs=1).fit(x, y, edge_index=edges).predict(x[:, :2])
VRGCNClassifier(epochs=1).fit(x, np.full(60, -1))
VRGCNClassifier(epochs=1).fit(x, y, train_mask=[True])
VRGCNClassifier(epochs=1, graph=graph).fit([0, 70], [0, 1])
VRGCNClassifier(epochs=1).fit(x, y, sample_weight=[1.0])
VRGCNRegressor().fit(x, ["a"] * 60)
VRGCNRegressor(epochs=1).fit(x, np.full(60, np.nan))
VRGCNRegressor().predict(x)
""".strip().splitlines()


def record(work: Workspace) -> None:
    """Record each mistake; the folder is that of the mistakes on the command line."""
    for line in LINES:
        work.function(f"python/{line.replace('/', ':')}", partial(_attempt, line))


def _attempt(line: str) -> None:
    names = _names()
    print(f">>> {line}")
    try:
        answer = eval(line, names)
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
        print(f"{type(error).__name__}, a kind of {kinds[0]}: {error}")
    else:
        print(f"no error: {type(answer).__name__}")


def _names() -> dict[str, Any]:
    import numpy as np
    import pandas
    import torch

    vrgcn = public()
    names = {name: getattr(vrgcn, name) for name in dir(vrgcn)}
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(60, (2, 240), generator=draw)
    x = torch.randn(60, 4, generator=draw)
    y = torch.arange(60) % 3
    split = {"train": range(30), "val": range(30, 45), "test": range(45, 60)}
    torch.manual_seed(0)
    frame = pandas.DataFrame({"id": range(6), "a": range(6), "kind": list("xyxyxy")})
    links = pandas.DataFrame({"source": [0, 1, 2], "target": [3, 4, 5]})
    return names | {
        **{"torch": torch, "np": np, "edges": edges, "x": x, "y": y},
        "graph": vrgcn.Graph(edges, x, y, **split),
        "numbers": vrgcn.Graph(edges, x, x[:, 0].double(), task="regression", **split),
        "model": vrgcn.GraphSAGE(4, 8, 3),
        "frame": frame,
        "links": links,
    }
