"""Numbers, several classes per node, baselines, and every scaling: live as `predict`."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.problems import TASKS, small
from vrgcn import GraphSAGE, predict
from vrgcn.baselines import RECIPES, Problem
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling, scale_graph
from vrgcn.inference.calibration import Calibration
from vrgcn.inference.fitting import fit_recipe
from vrgcn.inference.saved import SavedModel
from vrgcn.live.live import Live


def follow(saved: SavedModel, graph: Graph, most: float) -> None:
    """A few changes of every kind, each compared."""
    live = Live(saved, graph)
    row = [0.5, -1.0, 0.0, 2.0, 0.0, 1.0]
    live.add_nodes({"id": 5000, "features": row})
    live.add_edges([(5000, 3), (5000, 200), (7, 9)])
    live.set_features({"id": 5, "features": row})
    live.remove_nodes([11, 12])
    changed = live.graph()
    wanted = predict(saved, changed)
    found = live.predict(changed.names.nodes.to_pylist())
    torch.testing.assert_close(found.outputs, wanted, atol=most, rtol=most)
    assert found.to_arrow().num_rows == changed.num_nodes


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", ["none", "standard", "row"])
def test_every_task_and_scaling(task: str, kind: str) -> None:
    torch.manual_seed(0)
    graph = small(task)
    width = max(graph.num_classes, 1)
    scaling = Scaling.fit(kind, graph.features, graph.train)
    saved = SavedModel(
        GraphSAGE(6, 8, width),
        "mean",
        scaling,
        multilabel=task == "multilabel",
        regression=task == "regression",
    )
    follow(saved, graph, 1e-5)


@pytest.mark.parametrize(
    "recipe", ["linear-2", "trees-2", "mlp-tables", "labels", "smoothed", "link"]
)
def test_baselines(recipe: str) -> None:
    pytest.importorskip("sklearn")
    graph = small("classes")
    scaled, _ = scale_graph(graph, "standard")
    follow(fit_recipe(RECIPES[recipe], Problem.of(scaled)), graph, 1e-5)


def test_a_temperature_divides_outputs_once() -> None:
    torch.manual_seed(0)
    graph = small("classes")
    calibration = Calibration(2.5, None, 10, torch.empty(0, dtype=torch.float64))
    plain = SavedModel(GraphSAGE(6, 8, graph.num_classes), "mean")
    saved = plain.then(calibration)
    follow(saved, graph, 1e-5)
    live = Live(saved, graph)
    assert torch.allclose(live.predict(3).outputs * 2.5, Live(plain, graph).predict(3).outputs)
    value = float(live.predict(3).probabilities.max())
    assert live.explain(3).value == pytest.approx(value)
    same = live.what_if({"change": "remove_nodes", "ids": [200]}, 3)
    assert torch.allclose(same.outputs, live.predict(3).outputs, atol=0.5)
