"""The public functions and classes from Python: the output of each case."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from lab.golden.contents import array_line, describe, describe_folder, table_lines
from lab.golden.masks import Masks
from lab.golden.public import public
from lab.golden.tables import graph as imported
from lab.golden.tables import write_tables
from lab.golden.workspace import Workspace

CASES: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    """Record what a function prints, under its name."""
    CASES[function.__name__.strip("_").replace("_", " ")] = function
    return function


def record(work: Workspace) -> None:
    """Record every case, each in a fork of its own."""
    write_tables(work.folder)
    for name in ("papers", "crowd", "towns", "genes"):
        imported(work, name)
    work.run("train", "papers", "--hidden", 8, "--epochs", 3, "--out", "run")
    for name, function in CASES.items():
        work.function(name, function)


def _opened(name: str) -> Any:
    vrgcn = public()
    scaled, _ = vrgcn.scale_graph(vrgcn.load_graph(name), "standard")
    return scaled


def _model(graph: Any, kind: str = "GraphSAGE", **settings: Any) -> Any:
    import torch

    vrgcn = public()
    torch.manual_seed(0)
    outputs = 1 if graph.task == "regression" else graph.num_classes
    return getattr(vrgcn, kind)(graph.num_features, hidden=8, classes=outputs, **settings)


def _config(**settings: Any) -> Any:
    vrgcn = public()
    return vrgcn.TrainConfig(**{"epochs": 3, "batch_size": 40, **settings})


def _show(**values: Any) -> None:
    """Print arrays and tensors by their hash, everything else as it is."""
    for name, value in values.items():
        arrays = hasattr(value, "dtype") and hasattr(value, "shape")
        print(f"{name}: {array_line(value) if arrays else value}")


def _show_graph(graph: Any) -> None:
    print(repr(graph))
    _show(edges=graph.edge_index(), weights=graph.adjacency.values, features=graph.features)
    _show(labels=graph.labels, train=graph.train, val=graph.val, test=graph.test)
    _show(task=graph.task, classes=graph.num_classes, weighted=graph.weighted)
    names = graph.names
    nodes = None if names.nodes is None else names.nodes[:3].to_pylist()
    print("names:", names.classes, names.features, nodes)


def _show_trained(model: Any, graph: Any, result: Any, **options: Any) -> None:
    vrgcn = public()
    print(result)
    for point in result.curve:
        values = {name: value for name, value in vars(point).items() if name != "seconds"}
        print(values)
    _show(**{f"weight {name}": value for name, value in model.state_dict().items()})
    _show(kept=result.epoch, val=repr(result.val), test=repr(result.test), stopped=result.stopped)
    _show(outputs=vrgcn.predict(model, graph, **options))


@case
def _fit_classes() -> None:
    vrgcn = public()
    graph = _opened("crowd")
    model = _model(graph)
    heard: list[tuple[object, ...]] = []
    result = vrgcn.fit(
        model,
        graph,
        _config(estimator="cvd", diagnostics=1),
        on_epoch=lambda point: heard.append(("epoch", point.epoch)),
        on_kept=lambda point: heard.append(("kept", point.epoch)),
        on_step=lambda done, total: heard.append(("step", done, total)),
        on_batch=lambda batch: heard.append(("batch", array_line(batch.nodes))),
        on_note=lambda text: heard.append(("note", text)),
    )
    _show_trained(model, graph, result)
    print(*heard, sep="\n")


@case
def _fit_numbers() -> None:
    vrgcn = public()
    graph = _opened("towns")
    model = _model(graph)
    _show_trained(model, graph, vrgcn.fit(model, graph, _config(metric="mae", estimator="two-way")))


@case
def _fit_several_classes() -> None:
    vrgcn = public()
    graph = _opened("genes")
    model = _model(graph, "GCN", dropout=0.1)
    _show_trained(model, graph, vrgcn.fit(model, graph, _config(class_weights="balanced")))


@case
def _fit_verbose() -> None:
    vrgcn = public()
    graph = _opened("papers")
    vrgcn.fit(_model(graph, "MLP"), graph, _config(), verbose=True)


@case
def _fit_stopped_by_a_callback() -> None:
    vrgcn = public()

    def stop(point: Any) -> None:
        if point.epoch == 2:
            raise vrgcn.StopTraining

    graph = _opened("papers")
    model = _model(graph)
    _show_trained(model, graph, vrgcn.fit(model, graph, _config(epochs=9), on_epoch=stop))


@case
def _fit_with_an_estimator_and_a_loss_of_ones_own() -> None:
    import torch.nn.functional as F

    vrgcn = public()
    graph = _opened("towns")
    model = _model(graph)
    estimator = vrgcn.Estimator("uniform", forward="history", backward="sampled")

    def huber(outputs: Any, labels: Any) -> Any:
        return F.huber_loss(outputs, labels, reduction="none", delta=20.0)

    result = vrgcn.fit(model, graph, _config(), estimator=estimator, objective=huber)
    _show_trained(model, graph, result)


@case
def _fit_with_checkpoints() -> None:
    vrgcn = public()
    graph = _opened("crowd")
    heard: list[object] = []
    callbacks = {
        "on_checkpoint": lambda: heard.append("checkpoint"),
        "on_restore": lambda curve: heard.append(("restored", [point.epoch for point in curve])),
    }
    config = _config(estimator="two-way")
    vrgcn.fit(_model(graph), graph, config, checkpoints="own", checkpoint_every=1, **callbacks)
    model = _model(graph)
    longer = _config(estimator="two-way", epochs=5)
    result = vrgcn.fit(model, graph, longer, resume="own", **callbacks)
    _show_trained(model, graph, result)
    print(*heard, sep="\n")
    for name, text in describe_folder(Path("own"), Masks()).items():
        if not name.endswith(".json"):  # seconds, and versions, which no mask here knows
            print(f"{name}\n{text}")


@case
def _own_model() -> None:
    import torch

    from lab.golden.sections.models import Residual

    vrgcn = public()
    graph = _opened("crowd")
    torch.manual_seed(0)
    model = Residual(graph.num_features, 8, graph.num_classes)
    result = vrgcn.fit(model, graph, _config(estimator="cvd", fanout=1))
    _show_trained(model, graph, result)
    vrgcn.save_model(model, "residual.safetensors")
    saved = vrgcn.load_model("residual.safetensors", model=Residual)
    _show(saved=saved.predict(vrgcn.load_graph("crowd")), kind=type(saved.model).__name__)
    _show(embeddings=vrgcn.embeddings(model, graph), inputs=vrgcn.embeddings(model, graph, layer=0))


@case
def _several_matrices() -> None:
    import torch

    from lab.golden.sections.models import Relational

    vrgcn = public()
    graph = _opened("crowd")
    generator = torch.Generator().manual_seed(1)
    shape = (graph.num_nodes, graph.num_nodes)
    knows = (torch.rand(shape, generator=generator) < 0.03).float()
    matrices = {"cites": "mean", "knows": vrgcn.Propagation.from_matrix(knows)}
    torch.manual_seed(0)
    model = Relational(graph.num_features, 8, graph.num_classes)
    result = vrgcn.fit(model, graph, _config(estimator="two-way"), propagation=matrices)
    _show_trained(model, graph, result, propagation=matrices)


@case
def _own_loop() -> None:
    import torch
    import torch.nn.functional as F

    vrgcn = public()
    graph = _opened("crowd")
    for estimator, nodes in (("cvd", "train"), ("two-way", "all"), ("is", "train")):
        model = _model(graph)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        flags = {"estimator": estimator, "batch_size": 40, "seed": 3, "nodes": nodes}
        batches = vrgcn.MiniBatches(model, graph, **flags)
        for _ in range(2):
            for batch in batches:
                if not batch.needs_gradient:
                    batch.renew(model)
                    batch.commit()
                    continue
                outputs, labels = batch.run(model)[batch.in_loss], batch.labels[batch.in_loss]
                losses = F.cross_entropy(outputs, labels, reduction="none")
                loss = batch.mean(losses) if nodes == "all" else losses.mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                batch.commit()
        _show(estimator=estimator, steps=batches.step, length=len(batches), age=batches.mean_age())
        _show(outputs=vrgcn.predict(model, graph))


@case
def _predictions() -> None:
    vrgcn = public()
    for name in ("crowd", "towns", "genes"):
        graph = _opened(name)
        model = _model(graph, order="before")
        vrgcn.fit(model, graph, _config())
        some = vrgcn.predictions(model, graph, nodes=[7, 0, 150])
        _show(length=len(some), outputs=some.outputs)
        _show(some=vrgcn.predict(model, graph, nodes=[3, 14]))
        if graph.task != "regression":
            _show(probabilities=some.probabilities)
        print(table_lines(some.to_arrow()))
        print(some.to_pandas().to_string())
        print(table_lines(vrgcn.predictions(model, graph).to_arrow()))
    print(vrgcn.predictions(model, graph, nodes=[7, 0]).to_pandas(top=2).to_string())


@case
def _embeddings() -> None:
    vrgcn = public()
    graph = _opened("crowd")
    model = _model(graph, layers=3)
    for layer in (-2, -1, 0, 1, 2):
        _show(**{f"layer {layer}": vrgcn.embeddings(model, graph, layer=layer)})
    _show(some=vrgcn.embeddings(model, graph, nodes=[3, 14]))


@case
def _saved_models() -> None:
    vrgcn = public()
    for name, kind in (("crowd", "GCN"), ("towns", "GraphSAGE"), ("genes", "MLP")):
        graph = _opened(name)
        model = _model(graph, kind)
        vrgcn.fit(model, graph, _config(epochs=2))
        vrgcn.save_model(model, f"{name}.safetensors")
        saved, opened = vrgcn.load_model(f"{name}.safetensors"), vrgcn.load_graph(name)
        _show(task=saved.task, propagation=saved.propagation, classes=saved.classes)
        _show(width=saved.num_features, outputs=saved.num_classes, scaling=saved.scaling.kind)
        _show(predicted=saved.predict(opened), again=vrgcn.predict(saved, opened))
        _show_graph(saved.prepare(opened))
        print(describe(Path(f"{name}.safetensors"), Masks()))
    run = vrgcn.load_model("run")
    _show(run=run.predict(vrgcn.load_graph("papers")), features=run.features)


@case
def _graphs() -> None:
    import torch

    vrgcn = public()
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(50, (2, 300), generator=draw)
    x = torch.rand(50, 6, generator=draw)
    weights = torch.rand(300, generator=draw)
    y = torch.arange(50) % 4
    mask = torch.arange(50) < 25
    graphs = {
        "plain": vrgcn.Graph(edges, x, y, train=mask, val=range(25, 40), test=range(40, 50)),
        "weighted": vrgcn.Graph(edges, x, y, edge_weight=weights, undirected=True),
        "sparse": vrgcn.Graph(edges, (x * (x > 0.6)).to_sparse_csr(), y, train=mask, val=~mask),
        "several": vrgcn.Graph(edges, x, (x[:, :3] > 0.5).float(), train=mask),
        "numbers": vrgcn.Graph(edges, x, x[:, 0].double(), task="regression", train=mask),
        "double": vrgcn.Graph(edges, x.double(), y, num_classes=6),
        "unlabelled": vrgcn.Graph(edges, x),
    }
    for name, graph in graphs.items():
        print(f"== {name}")
        _show_graph(graph)
        vrgcn.save_graph(graph, f"saved-{name}")
        for file, text in describe_folder(Path(f"saved-{name}"), Masks()).items():
            print(f"{file}: {text}")
        _show_graph(vrgcn.load_graph(f"saved-{name}", memory="disk"))
    plain = graphs["plain"]
    _show_graph(plain.among(plain.train))
    _show_graph(plain.with_features(x[:, :2]))
    _show_graph(vrgcn.random_split(plain, (0.5, 0.3, 0.2), seed=4))
    for kind in ("standard", "row", "none"):
        scaled, scaling = vrgcn.scale_graph(plain, kind)
        _show_graph(scaled)
        print(None if scaling is None else scaling.kind)
    sparse, _ = vrgcn.scale_graph(graphs["sparse"], "row")
    model = _model(sparse, dropout=0.0)
    _show_trained(model, sparse, vrgcn.fit(model, sparse, _config(estimator="cv")))
    data = plain.to_pyg()
    print(sorted(data.keys()))
    _show_graph(vrgcn.Graph.from_pyg(data))


@case
def _from_pandas() -> None:
    import pandas

    vrgcn = public()
    nodes, edges = (pandas.read_csv(f"papers-{name}.csv") for name in ("nodes", "edges"))
    _show_graph(vrgcn.Graph.from_pandas(nodes, edges, label="kind", verbose=True))
    indexed = nodes.set_index("id").drop(columns="split")
    indexed["born"] = pandas.date_range("2001-03-01", periods=len(indexed), freq="9h")
    indexed["tags"] = [["a", "b"][: place % 3] for place in range(len(indexed))]
    options = {"label": "kind", "ratio": (0.6, 0.2, 0.2), "fill": "f0=median", "out": "frames"}
    first = vrgcn.Graph.from_pandas(indexed, edges.drop(columns="weight"), **options)
    _show_graph(first)
    tomorrow = indexed.iloc[::-1]
    _show_graph(vrgcn.Graph.from_pandas(tomorrow, edges, like="frames"))
    towns = pandas.read_csv("towns-nodes.csv")
    links = pandas.read_csv("towns-edges.csv")
    _show_graph(vrgcn.Graph.from_pandas(towns, links, label="price", task="regression"))


@case
def _from_networkx() -> None:
    vrgcn, networkx = public(), import_module("networkx")
    club = networkx.karate_club_graph()
    _show_graph(vrgcn.Graph.from_networkx(club, label="club", ratio=(0.5, 0.25, 0.25)))
    ring = networkx.cycle_graph(12)
    for features in (None, "degree", "constant"):
        _show_graph(vrgcn.Graph.from_networkx(ring, features=features))
    directed = networkx.gn_graph(20, seed=3)
    for node in directed:
        directed.nodes[node]["size"] = node * 0.5
    for place, (source, target) in enumerate(directed.edges):
        directed.edges[source, target]["km"] = place + 1.0
    _show_graph(vrgcn.Graph.from_networkx(directed, weight="km", directed=True))


@case
def _from_pyg() -> None:
    import torch
    from torch_geometric.data import Data

    vrgcn = public()
    draw = torch.Generator().manual_seed(5)
    edges = torch.randint(30, (2, 90), generator=draw)
    x, y = torch.rand(30, 4, generator=draw), torch.arange(30) % 3
    third = torch.arange(30) % 3
    masks = {"train_mask": third == 0, "val_mask": third == 1, "test_mask": third == 2}
    weight = torch.rand(90, generator=draw)
    _show_graph(vrgcn.Graph.from_pyg(Data(x=x, edge_index=edges, y=y, **masks)))
    _show_graph(vrgcn.Graph.from_pyg(Data(x=x, edge_index=edges, y=y, edge_weight=weight)))
    _show_graph(vrgcn.Graph.from_pyg(Data(x=x, edge_index=edges, y=x[:, 0]), task="regression"))
    _show_graph(vrgcn.Graph.from_pyg(Data(x=x, edge_index=edges, y=(x > 0.5).float(), **masks)))


@case
def _built_in_graph() -> None:
    vrgcn = public()
    _show_graph(vrgcn.load_dataset("sparse-communities"))


@case
def _tune() -> None:
    vrgcn = public()
    graph = _opened("crowd")
    found = vrgcn.tune(graph, config=_config(epochs=2), trials=4, folder="search")
    print(found)
    for trial in found.trials:
        print(trial.number, trial.values, repr(trial.val), trial.state)
    print(found.settings)
    _show(outputs=vrgcn.predict(found.model, graph))
    again = vrgcn.tune(graph, config=_config(epochs=2), trials=6, folder="search", verbose=True)
    print(again)


@case
def _tensorboard_log() -> None:
    vrgcn = public()
    graph = _opened("papers")
    with vrgcn.TensorBoardLog("logged") as log:
        vrgcn.fit(_model(graph), graph, _config(), on_epoch=log.epoch)
    for name, text in describe_folder(Path("logged"), Masks()).items():
        print(f"{name}\n{text}")


@case
def _configs() -> None:
    vrgcn = public()
    print(vrgcn.TrainConfig())
    print(vrgcn.TrainConfig(fanout=2), vrgcn.TrainConfig(fanout=[1, 2]))
    print(vrgcn.ModelConfig())
    graph = _opened("papers")
    for kind in ("GCN", "GraphSAGE", "MLP"):
        print(_model(graph, kind, layers=3, dense=2, bias=True))


def _classifier_data() -> tuple[Any, Any, Any]:
    graph = _opened("crowd")
    labels = graph.labels.numpy()
    return graph.features.numpy(), labels, graph.edge_index().numpy()


@case
def _classifier() -> None:
    import numpy as np

    vrgcn = public()
    x, y, edges = _classifier_data()
    known = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    names = ("amber", "blue", "cyan")
    flags = {"hidden": 8, "epochs": 4, "batch_size": 40, "random_state": 0}
    texts = [None if place < 0 else names[place] for place in known]
    variants: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
        "plain": (flags, known, {}),
        "settings": ({**flags, "settings": {"layer_norm": False, "schedule": "cosine"}}, known, {}),
        "validated": ({**flags, "validation_fraction": 0.2, "patience": 2}, known, {}),
        "balanced": ({**flags, "class_weight": "balanced", "estimator": "cvd"}, known, {}),
        "weights": ({**flags, "class_weight": {0: 2.0, 1: 1.0, 2: 0.5}}, known, {}),
        "texts": (flags, np.array(texts, object), {}),
        "mask": (flags, y, {"train_mask": known >= 0}),
        "samples": (flags, known, {"sample_weight": np.linspace(0.5, 2, len(y))}),
        "several": (flags, np.stack([known > 0, known != 1], 1).astype(int), {}),
    }
    for name, (settings, labels, options) in variants.items():
        classifier = vrgcn.VRGCNClassifier(**settings)
        classifier.fit(x, labels, edge_index=edges, **options)
        chances = classifier.predict_proba(x)
        _show(variant=name, classes=list(classifier.classes_), probabilities=chances)
        print("first:", classifier.predict(x)[:5].tolist(), classifier.n_features_in_)
        _show(weights=next(iter(classifier.model_.state_dict().values())))
        print("score:", classifier.score(x, labels))
    print(classifier)
    print(sorted(classifier.get_params()))


@case
def _classifier_with_a_fixed_graph() -> None:
    import numpy as np
    from sklearn.model_selection import GridSearchCV, cross_val_score

    vrgcn = public()
    x, y, edges = _classifier_data()
    fixed = vrgcn.Graph(edges, x)
    nodes = np.flatnonzero(y >= 0)
    classifier = vrgcn.VRGCNClassifier(graph=fixed, epochs=3, hidden=4, random_state=1)
    print(cross_val_score(classifier, nodes, y[nodes], cv=3).tolist())
    search = GridSearchCV(classifier, {"layers": [1, 2]}, cv=2).fit(nodes, y[nodes])
    print(search.best_params_, search.cv_results_["mean_test_score"].tolist())
    graph = _opened("crowd")
    print(vrgcn.VRGCNClassifier(epochs=2, random_state=0).fit(graph).score(graph))


@case
def _regressor() -> None:
    vrgcn = public()
    graph = _opened("towns")
    x, y, edges = graph.features.numpy(), graph.labels.numpy(), graph.edge_index().numpy()
    regressor = vrgcn.VRGCNRegressor(hidden=8, epochs=4, random_state=0)
    regressor.fit(x, y, edge_index=edges)
    _show(predicted=regressor.predict(x), score=regressor.score(x, y))
    _show(rows=regressor.predict(x[:5], edge_index=edges[:, :0]))
    print(regressor)


@case
def _plot() -> None:
    vrgcn = public()
    graph = _opened("papers")
    axes = vrgcn.fit(_model(graph), graph, _config()).plot()
    for panel in axes:
        print(panel.get_xlabel(), panel.get_ylabel())
        for line in panel.get_lines():
            _show(x=line.get_xdata(), y=line.get_ydata())


@case
def _star_import() -> None:
    names: dict[str, Any] = {}
    exec("from vrgcn import *", names)
    print(*sorted(name for name in names if not name.startswith("__")), sep="\n")
