"""A search on nodes that are split by time: nothing later reaches a fit."""

from __future__ import annotations

from pathlib import Path

from tests.baselines.test_past import dated
from vrgcn import TrainConfig, tune
from vrgcn.graph.scaling import scale_graph
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import load_model
from vrgcn.models.config import ModelConfig
from vrgcn.tuning.finishing import TuneResult

# Validation nodes choose no epoch: they are different ones in another future.
CONFIG = TrainConfig(epochs=3, batch_size=32, estimator="exact", diagnostics=0, select="last")


def searched(folder: Path, *, other_future: bool = False) -> TuneResult:
    graph = scale_graph(dated(other_future=other_future), "standard")[0]
    return tune(
        graph,
        ModelConfig(model="graphsage", hidden=8),
        CONFIG,
        trials=1,
        baselines=("labels", "linear-2"),
        folder=folder,
        on_note=lambda _: None,
    )


def test_baselines_are_fitted_to_the_past_and_scored_with_all_edges(tmp_path: Path) -> None:
    found = searched(tmp_path / "search")
    graph = scale_graph(dated(), "standard")[0]
    assert graph.labels is not None
    by_name = {each.baseline: each for each in found.baselines}
    for name in ("labels", "linear-2"):
        model = load_model(tmp_path / "search" / "baselines" / name)
        outputs = predict(model, graph, graph.val, kind="all")
        right = (outputs.argmax(1) == graph.labels[graph.val]).float().mean().item()
        assert by_name[name].val == right
    assert by_name["labels"].val == 1.0  # later edges lead to labels of the past
    assert found.result.test is not None


def test_another_future_changes_no_fitted_model_and_no_weight(tmp_path: Path) -> None:
    searched(tmp_path / "one")
    searched(tmp_path / "other", other_future=True)
    for folder in ("baselines/labels", "baselines/linear-2", "trials/trial-000"):
        one, other = (
            load_model(tmp_path / search / folder).model.state_dict() for search in ("one", "other")
        )
        assert one.keys() == other.keys()
        assert all(bool((one[key] == other[key]).all()) for key in one), folder
