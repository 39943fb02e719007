"""`vrgcn train --model NAME` for a baseline: a run like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import torch

from tests.baselines.problems import small
from tests.messages import refused
from vrgcn import train
from vrgcn.baselines import RECIPES
from vrgcn.baselines.problem import Problem
from vrgcn.costs.order import build_for
from vrgcn.inference.fitting import fit_recipe
from vrgcn.models.config import NETWORKS, ModelConfig
from vrgcn.runs.run import load_run

QUICK: dict[str, Any] = {"threads": 1, "calibrate": "never"}


def test_every_baseline_is_a_model_and_no_other() -> None:
    names = get_args(get_type_hints(ModelConfig)["model"])
    assert set(names) == {*NETWORKS, *RECIPES}
    assert ModelConfig("trees").is_baseline
    assert not any(ModelConfig(name).is_baseline for name in NETWORKS)


@pytest.mark.parametrize("name", ["linear", "link", "labels", "smoothed"])
def test_a_baseline_is_a_run(tmp_path: Path, name: str) -> None:
    graph = small()
    run = train(graph, out=tmp_path / "run", model=name, **QUICK)
    alone = fit_recipe(RECIPES[name], Problem.of(graph)).predict(graph)
    again = load_run(run.folder)
    assert torch.allclose(again.predict(), alone, atol=1e-5)
    assert run.config["model"] == run.config["baseline"] == name
    assert graph.labels is not None
    right = (alone.argmax(1) == graph.labels)[graph.test].double().mean()
    assert run.result["test"] == pytest.approx(float(right))
    assert (run.result["stopped"], run.result["epoch"]) == ("fitted", 0)
    assert f"baseline `{name}`" in (run.folder / "README.md").read_text()


def test_labels_of_validation_and_test_nodes_do_not_reach_a_fit(tmp_path: Path) -> None:
    graph = small()
    assert graph.labels is not None
    other = graph.labels.clone()
    other[graph.test] = 2 - other[graph.test]
    one, two = (
        train(each, out=tmp_path / name, model="link", **QUICK).predict()
        for name, each in (("one", graph), ("two", graph.replace(labels=other)))
    )
    assert torch.equal(one, two)


@pytest.mark.parametrize("given", [{"seeds": 2}, {"inductive": True}])
def test_what_only_networks_have_is_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with refused():
        train(small(), out=tmp_path / "run", model="linear", **given)


def test_a_baseline_predicts_no_edges(tmp_path: Path) -> None:
    with refused():
        train(small(), out=tmp_path / "run", model="linear", predict="edges")


def test_a_baseline_is_no_network_to_build() -> None:
    with refused():
        build_for(ModelConfig("linear"), small(), 3, 0)


def test_a_baseline_is_not_resumed(tmp_path: Path) -> None:
    train(small(), out=tmp_path / "run", model="linear", **QUICK)
    with refused():
        train(out=tmp_path / "run", resume=True, epochs=3)
