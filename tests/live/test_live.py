"""A live model of a run: rows of the import, tables on disk, readers beside a writer."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from torch_geometric.nn import GraphSAGE as PyGSAGE

import vrgcn
from tests.live.book import WIDTH, a_book
from tests.messages import refused
from vrgcn import GCN, Graph, GraphSAGE, PairModel
from vrgcn.inference.average import Average
from vrgcn.inference.calibration import Calibration
from vrgcn.inference.saved import SavedModel
from vrgcn.live.changes import Changes
from vrgcn.live.live import Live
from vrgcn.live.reading import UnknownNodeError

CITIES = ("Ulm", "Bonn", "Kiel")


def tables(rng: np.random.Generator) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    nodes = pandas.DataFrame(
        {
            "id": [f"u{n}" for n in range(40)],
            "age": rng.integers(18, 80, 40),
            "city": rng.choice(CITIES, 40),
            "likes": [";".join(rng.choice(["tea", "jam", "pie", "nut"], 2)) for _ in range(40)],
            "topic": rng.choice(["a", "b"], 40),
        }
    )
    edges = pandas.DataFrame(rng.choice(nodes.id, (70, 2)), columns=["from", "to"])
    return nodes, edges


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("live")
    nodes, edges = tables(np.random.default_rng(0))
    options = {"label": "topic", "ratio": (0.6, 0.2, 0.2), "source": "from", "target": "to"}
    Graph.from_pandas(nodes, edges, out=folder / "graph", column="likes=categories", **options)
    return vrgcn.train(str(folder / "graph"), out=str(folder / "run"), epochs=2, smooth="always")


def changed_tables() -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """The tables as they are after the changes of `change`."""
    nodes, edges = tables(np.random.default_rng(0))
    new = {"id": "x", "age": 33, "city": "Bonn", "likes": "tea;nut"}
    nodes = pandas.concat([nodes, pandas.DataFrame([new])], ignore_index=True)
    nodes.loc[nodes.id == "u3", "age"] = 77
    nodes.loc[nodes.id == "u4", "likes"] = "jam"
    nodes = nodes[nodes.id != "u5"]
    more = pandas.DataFrame([("x", "u1"), ("u2", "x")], columns=["from", "to"])
    edges = pandas.concat([edges, more], ignore_index=True)
    return nodes, edges[(edges["from"] != "u5") & (edges["to"] != "u5")]


def change(live: Live) -> None:
    live.add_nodes({"id": "x", "age": 33, "city": "Bonn", "likes": "tea;nut"})
    live.add_edges(pandas.DataFrame([("x", "u1"), ("u2", "x")], columns=["from", "to"]))
    live.set_features([{"id": "u3", "age": 77}, {"id": "u4", "likes": "jam"}])
    live.remove_nodes("u5")


@pytest.mark.parametrize("memory", ["ram", "disk"])
def test_a_run_answers_what_predict_answers_on_tables_imported_anew(
    run: Any, memory: Any, tmp_path: Path
) -> None:
    live = run.live(memory=memory)
    change(live)
    nodes, edges = changed_tables()
    folder = Path(run.config["graph"])
    anew = Graph.from_pandas(nodes, edges, like=folder, source="from", target="to")
    assert run.saved.smoothing is not None
    wanted, ids = run.predict(anew), anew.names.nodes.to_pylist()
    assert torch.allclose(live.predict(ids).outputs, wanted, atol=1e-5)
    live.save(tmp_path / "state", note=[1, 2])
    opened = Live.open(tmp_path / "state", run.saved)
    assert opened.note == [1, 2]
    assert torch.equal(opened.predict(ids).outputs, live.predict(ids).outputs)
    opened.add_nodes({"id": "y", "age": 20, "city": "Ulm", "likes": "pie"})  # by the same recipe
    with refused():
        Live.open(tmp_path / "state", SavedModel(GCN(3, 4, 2), "gcn"))


def test_rows_of_the_import_have_its_errors(run: Any) -> None:
    live = run.live()
    row = {"id": "x", "age": 33, "city": "Bonn", "likes": "tea"}
    for wrong in ({"age": "old"}, {"id": ""}):
        with refused():
            live.add_nodes(row | wrong)
    with refused():
        live.add_nodes({"id": "x", "age": 3})
    with refused():
        live.set_features({"id": "u1", "agee": 3})
    with refused(UnknownNodeError):
        live.predict("zz")


def test_slots_run_out_and_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vrgcn.live.slots._LEAST", 2)
    rng = np.random.default_rng(1)
    book = a_book(rng, undirected=True, weighted=False)
    torch.manual_seed(0)
    saved = SavedModel(GraphSAGE(WIDTH, 5, 3).double(), "mean")
    live = Live(saved, book.graph(), undirected=True)
    for number in range(9):
        book.nodes[f"new{number}"] = [float(number), 0.0, 1.0, 0.0]
        book.edges[book.key(f"new{number}", "n1")] = 1.0
        with live.changes() as changes:
            changes.add_nodes({"id": f"new{number}", "features": book.nodes[f"new{number}"]})
            changes.add_edges((f"new{number}", "n1"))
        book.check(live, saved, 1e-12)
    assert live._world.graph.num_nodes > 12


@pytest.mark.parametrize("sparse", [False, True])
def test_old_versions_of_rows_are_thrown_away(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrgcn.live.state._WASTE", 20)
    rng = np.random.default_rng(1)
    book = a_book(rng, undirected=True, weighted=False, sparse=sparse)
    torch.manual_seed(0)
    saved = SavedModel(GraphSAGE(WIDTH, 5, 3).double(), "mean")
    live = Live(saved, book.graph(), undirected=True)
    graphs = set()
    for number in range(12):
        pair = book.key("n0", "n1" if number % 2 else "n10")
        book.nodes["n3"] = [1.0, 2.0, 3.0, float(number)]
        live.set_features({"id": "n3", "features": book.nodes["n3"]})
        if pair in book.edges:
            del book.edges[pair]
            live.remove_edges(pair)
        else:
            book.edges[pair] = 1.0
            live.add_edges(pair)
        book.check(live, saved, 1e-12)
        graphs.add(id(live._world.graph))
        assert not live._world.state.wasteful
    assert len(graphs) > 1


def test_readers_never_see_half_a_change() -> None:
    """A writer moves two nodes between two states; readers see both in one state or the other."""
    torch.manual_seed(0)
    graph = Graph(torch.tensor([[0], [1]]), torch.zeros(2, 1).double(), undirected=True)
    model = GCN(1, 4, 2, layer_norm=False).double()
    live = Live(SavedModel(model, "gcn"), graph, undirected=True)
    states = []
    for value in (0.0, 1.0):
        live.set_features([{"id": n, "features": [value]} for n in (0, 1)])
        states.append(live.predict([0, 1]).outputs.clone())
    assert not torch.equal(*states)
    done, seen = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            found = live.predict([0, 1]).outputs
            seen.append(any(torch.equal(found, state) for state in states))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for step in range(60):
        value = float(step % 2)
        live.set_features([{"id": n, "features": [value]} for n in (0, 1)])
    done.set()
    for reader in readers:
        reader.join()
    assert seen
    assert all(seen)


def test_predictions_are_calibrated_as_those_of_predict() -> None:
    torch.manual_seed(0)
    graph = Graph(torch.tensor([[0, 1], [1, 2]]), torch.eye(3), undirected=True)
    calibration = Calibration(2.5, None, 0, torch.rand(40).double().sort().values)
    saved = SavedModel(GCN(3, 4, 2), "gcn", stages=(calibration,))
    live = Live(saved, graph, undirected=True)
    wanted = vrgcn.predict(saved, graph)
    torch.testing.assert_close(live.predict([0, 1, 2]).outputs, wanted)
    same = Changes()
    same.set_features({"id": 0, "features": [1.0, 0.0, 0.0]})
    torch.testing.assert_close(live.what_if(same, [0, 2]).outputs, wanted[[0, 2]])
    assert "set" in live.predict([0]).to_arrow(coverage=0.9).column_names


def test_what_cannot_be_live_is_refused() -> None:
    graph = Graph([], torch.eye(3))
    own = SavedModel(GCN(3, 4, 2), None, own_matrix=True)
    with refused():
        Live(own, graph)
    with refused():
        Live(SavedModel(PyGSAGE(3, 4, 2, 2), None), graph)
    average = Average.of_members({"a": SavedModel(GCN(3, 4, 2), "gcn")}, {"a": 1.0}, "runs/best")
    with refused():
        Live(average, graph)
    shared: dict[str, Any] = {
        "relation": "edges",
        "directed": True,
        "in_features": 3,
        "hidden": 4,
        "classes": 2,
    }
    values = PairModel("gcn", "mlp", values=0, **shared)
    with refused():
        Live(SavedModel(values, "gcn"), graph)
    scaled, _ = vrgcn.scale_graph(Graph([], torch.eye(3), [0, 1, 0], train=[0, 1]), "standard")
    with refused():
        Live(SavedModel(GCN(3, 4, 2), "gcn"), scaled)
