"""A search over a graph of several kinds: the kind that has labels is scored, wherever its numbers
begin."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from vrgcn import Graph, TrainConfig, load_model, predict, tune
from vrgcn.models.config import ModelConfig
from vrgcn.tasks import find_task

pytest.importorskip("optuna")
pytest.importorskip("sklearn")


def store() -> Graph:
    """Users, whose labels are predicted, have the numbers after those of the items."""
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(12, (90,), generator=generator), torch.arange(90) % 45
    users = torch.randn(45, 3, generator=generator)
    return Graph.from_kinds(
        {"item": torch.randn(12, 2, generator=generator), "user": users},
        {("item", "bought_by", "user"): torch.stack(ends)},
        {"user": (users[:, 0] > 0).long()},
        train=range(20),
        val=range(20, 35),
        test=range(35, 45),
    )


def test_models_and_baselines_are_scored_on_the_kind_that_has_labels(tmp_path: Path) -> None:
    graph = store()
    assert graph.labels is not None
    config = TrainConfig(epochs=1, batch_size=32)
    names = ("linear", "smoothed")
    given = {"trials": 1, "baselines": names, "folder": tmp_path}
    result = tune(graph, ModelConfig(hidden=4), config, **given)
    # Correct & Smooth spreads labels between nodes of one kind: it is left out.
    assert [(tried.name, tried.state) for tried in result.baselines] == [("linear", "complete")]
    saved = load_model(tmp_path / "best" / "model.safetensors")
    outputs = predict(saved, graph, range(20, 35))  # numbers of users
    found = find_task("classes").find_metric().compute(outputs, graph.labels[graph.val])
    assert found == pytest.approx(result.best.val)
