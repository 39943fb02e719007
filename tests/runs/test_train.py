"""Runs from Python: written to a folder as `vrgcn train` writes them, opened and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.messages import refused
from tests.runs.test_fit import graph
from vrgcn import Epoch, StopTraining, fit, load_graph, load_run, predict, save_graph, train
from vrgcn.graph.scaling import scale_graph
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import build_model
from vrgcn.training.config import TrainConfig

SETTINGS = {
    "hidden": 8,
    "dropout": 0.3,
    "epochs": 3,
    "batch_size": 16,
    "diagnostics": 0,
    "checkpoint_every": "1",
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    save_graph(graph(), tmp_path / "graph")
    return tmp_path / "graph"


def outcome(folder: Path) -> tuple[list[dict], dict[str, torch.Tensor]]:
    run = load_run(folder)
    points = [{k: v for k, v in p.items() if k != "seconds"} for p in run.curve]
    return points, run.saved.model.state_dict()


def assert_same(one: Path, other: Path) -> None:
    (points, weights), (others, other_weights) = outcome(one), outcome(other)
    assert points == others
    assert weights.keys() == other_weights.keys()
    assert all(torch.equal(weights[name], other_weights[name]) for name in weights)


def test_a_run_from_python_is_that_of_the_command_line(store, tmp_path, vrgcn) -> None:
    run = train(store, out=tmp_path / "python", **SETTINGS)
    flags = ("--hidden", 8, "--dropout", 0.3, "--epochs", 3, "--batch-size", 16)
    code, _, err = vrgcn(
        "train",
        store,
        *flags,
        "--diagnostics",
        0,
        "--checkpoint-every",
        1,
        "--out",
        tmp_path / "command",
    )
    assert code == 0, err
    assert_same(tmp_path / "python", tmp_path / "command")
    ours, theirs = run.config, load_run(tmp_path / "command").config
    assert {k: ours.get(k) for k in theirs if k in ours} == {k: theirs[k] for k in ours}
    assert run.finished
    assert run.result is not None
    assert run.result["epoch"] <= 3
    code, out, err = vrgcn("train", "--resume", tmp_path / "python", "--epochs", 4)
    assert (code, "resuming after epoch" in out) == (0, True), err
    for command in ("evaluate", "report"):
        code, _, err = vrgcn(command, tmp_path / "python")
        assert code == 0, err
    out = tmp_path / "p.csv"
    assert vrgcn("predict", tmp_path / "python", "--out", out)[0] == 0
    assert len(out.read_text().splitlines()) == graph().num_nodes + 1


def test_a_graph_in_memory_is_kept_with_its_run(tmp_path) -> None:
    run = train(graph(), out=tmp_path / "run", **SETTINGS)
    kept = load_graph(tmp_path / "run" / "graph")
    assert torch.equal(kept.features, graph().features)
    assert torch.equal(run.predict(), predict(run.saved, graph()))
    with refused(FileExistsError):
        train(graph(), out=tmp_path / "run", **SETTINGS)
    train(graph(), out=tmp_path / "run", overwrite=True, **SETTINGS)
    assert_same(tmp_path / "run", tmp_path / "run")


def test_a_run_equals_fit_on_the_scaled_graph(store, tmp_path) -> None:
    run = train(store, out=tmp_path / "run", estimator="cv", **SETTINGS)
    scaled, _ = scale_graph(load_graph(store), "standard")
    model = build_model(ModelConfig(hidden=8, dropout=0.3), scaled.num_features, 3, 0)
    training = {k: v for k, v in SETTINGS.items() if k not in ("hidden", "dropout")}
    result = fit(model, scaled, TrainConfig(estimator="cv", **training))
    assert [p.loss for p in result.curve] == [p["loss"] for p in run.curve]


def test_a_run_that_was_stopped_is_resumed_to_the_same_bits(store, tmp_path) -> None:
    def stop(point: Epoch) -> None:
        if point.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(store, out=tmp_path / "cut", on_epoch=stop, **SETTINGS)
    train(store, out=tmp_path / "cut", resume=True)
    train(store, out=tmp_path / "whole", **SETTINGS)
    assert_same(tmp_path / "cut", tmp_path / "whole")
    longer = train(store, out=tmp_path / "cut", resume=True, epochs=5)
    assert len(longer.curve) == 5
    assert longer.config["epochs"] == 5


def test_another_run_is_not_resumed(store, tmp_path) -> None:
    train(store, out=tmp_path / "run", **SETTINGS)
    with refused():
        train(store, out=tmp_path / "run", resume=True, hidden=9)


def test_what_auto_stood_for_is_noted_beside_the_request(store, tmp_path) -> None:
    run = train(store, out=tmp_path / "run", **SETTINGS)
    assert run.config["estimator"] == "auto"
    chosen = run.config["chosen_estimator"]
    again = train(store, out=tmp_path / "run", resume=True, epochs=4)
    assert (again.config["estimator"], again.config["chosen_estimator"]) == ("auto", chosen)
    # To name what was chosen is no change.
    train(store, out=tmp_path / "run", resume=True, epochs=5, estimator=chosen)
    named = train(store, out=tmp_path / "named", estimator="cv", **SETTINGS)
    assert "chosen_estimator" not in named.config


def test_a_setting_that_does_not_exist_is_refused(store, tmp_path) -> None:
    with refused():
        train(store, out=tmp_path / "run", epoch=3)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("given", [{"negatives": 5}, {"embedding": 8}, {"leave_one_out": True}])
def test_a_setting_that_the_target_does_not_have_is_refused(store, tmp_path, given) -> None:
    ((name, value),) = given.items()
    with refused():
        train(store, out=tmp_path / "run", **given)
    file = tmp_path / "settings.toml"
    file.write_text(f"{name} = {str(value).lower()}\n")
    with refused():
        train(store, out=tmp_path / "run", config=file)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("graph", [3, {}])
def test_what_is_no_graph_is_refused_by_its_type(tmp_path, graph) -> None:
    with refused(TypeError):
        train(graph, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_stopping_by_a_callback_ends_the_run(store, tmp_path) -> None:
    def stop(point: object) -> None:
        raise StopTraining

    run = train(store, out=tmp_path / "run", on_epoch=stop, **SETTINGS)
    assert run.finished
    assert len(run.curve) == 1
