"""Weights & Biases and MLflow get the curve, the settings and the scores of a run that asks for
them; what goes wrong there does not end a training.

The real packages are used where they are installed, Weights & Biases offline and MLflow with a
database of the test's own; their part is checked with stand-ins elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import small_graph
from vrgcn import save_graph
from vrgcn.runs import run_settings
from vrgcn.training import tracking

FLAGS = ("--epochs", 3, "--hidden", 8, "--no-baseline")


class Book:
    """A tracker that keeps what it is sent; it breaks in an epoch, if one is named."""

    opened: list[tuple[str, str, str | None]]
    sent: dict[int, dict[str, float]]
    ends: list[Any]
    breaks: int | None = None

    def __init__(
        self, home: str, folder: Path, config: Mapping[str, Any], known: str | None
    ) -> None:
        type(self).opened.append((home, folder.name, known))
        self.id = known or "number-1"
        assert None not in config.values()
        assert config["hidden"] == 8

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        if epoch == self.breaks:
            raise ConnectionError("nobody there\nlong story")
        type(self).sent[epoch] = dict(numbers)

    def finish(self, numbers: Mapping[str, float]) -> None:
        type(self).ends.append(dict(numbers))

    def close(self, failed: bool) -> None:
        type(self).ends.append(failed)


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Book]:
    kind = type("Book", (Book,), {"opened": [], "sent": {}, "ends": []})
    monkeypatch.setitem(tracking.TRACKERS, "wandb", ("Weights & Biases", kind))
    monkeypatch.setattr(run_settings, "find_spec", lambda name: object())
    monkeypatch.chdir(tmp_path)
    save_graph(small_graph(), tmp_path / "graph")
    return kind


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_tracker_gets_each_epoch_and_the_scores_and_goes_on_with_a_resumed_run(
    vrgcn, book: type[Book], tmp_path: Path
) -> None:
    code, _, err = vrgcn("train", "graph", *FLAGS, "--wandb", "mine", "--out", "run")
    assert code == 0, err
    assert book.opened == [("mine", "run", None)]
    for line in lines(tmp_path / "run"):
        assert book.sent[line["epoch"]]["val"] == line["val"]
        assert book.sent[line["epoch"]]["loss"] == line["loss"]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    scores = {"best_val": result["val"], "test": result["test"], "best_epoch": result["epoch"]}
    assert book.ends == [scores, False]
    assert json.loads((tmp_path / "run" / "tracking.json").read_text()) == {"wandb": "number-1"}
    code, _, err = vrgcn("train", "--resume", "run", "--epochs", 4)
    assert code == 0, err
    assert book.opened[1:] == [("mine", "run", "number-1")]
    assert 4 in book.sent
    assert "wandb" not in (tmp_path / "run" / "README.md").read_text()


def test_an_error_of_a_tracker_is_told_once_and_training_goes_on(
    vrgcn, book: type[Book], tmp_path: Path
) -> None:
    book.breaks = 2
    code, out, err = vrgcn("train", "graph", *FLAGS, "--wandb", "mine", "--out", "run")
    assert code == 0, err
    assert list(book.sent) == [1]
    assert book.ends == []
    told = " ".join((out + err).split())
    assert told.count("Weights & Biases does not answer as it should") == 1
    assert "(ConnectionError: nobody there); training continues" in told
    assert len(lines(tmp_path / "run")) == 3


def test_nothing_is_sent_unasked_and_a_missing_package_is_named(
    vrgcn, book: type[Book], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vrgcn("train", "graph", *FLAGS, "--out", "run")[0] == 0
    assert book.opened == []
    monkeypatch.setattr(run_settings, "find_spec", lambda name: None)
    code, _, err = vrgcn("train", "graph", *FLAGS, "--mlflow", "mine", "--out", "other")
    assert code == 1
    assert "--mlflow: needs mlflow: pip install 'vrgcn[mlflow]'" in err
    assert not Path("other").exists()


@pytest.mark.filterwarnings("ignore")  # MLflow uses parts of SQLAlchemy that will be gone
def test_mlflow_has_the_curve_and_the_settings(
    vrgcn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'vrgcn[mlflow]'")
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'store.db'}")
    monkeypatch.chdir(tmp_path)
    save_graph(small_graph(), tmp_path / "graph")
    code, out, err = vrgcn("train", "graph", *FLAGS, "--mlflow", "mine", "--out", "run")
    assert code == 0, err
    assert "does not answer" not in out + err
    client = MlflowClient()
    name = json.loads((tmp_path / "run" / "tracking.json").read_text())["mlflow"]
    found = client.get_run(name)
    assert found.info.status == "FINISHED"
    assert found.data.params["hidden"] == "8"
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert found.data.metrics["test"] == result["test"]
    history = {each.step: each.value for each in client.get_metric_history(name, "loss")}
    assert history == {line["epoch"]: line["loss"] for line in lines(tmp_path / "run")}
    code, _, err = vrgcn("train", "--resume", "run", "--epochs", 4)
    assert code == 0, err
    assert len(client.get_metric_history(name, "loss")) == 4


def test_wandb_offline_keeps_the_curve_in_the_folder_of_the_run(
    vrgcn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed: pip install 'vrgcn[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
    save_graph(small_graph(), tmp_path / "graph")
    code, out, err = vrgcn("train", "graph", *FLAGS, "--wandb", "mine", "--out", "run")
    assert code == 0, err
    assert "does not answer" not in out + err
    name = json.loads((tmp_path / "run" / "tracking.json").read_text())["wandb"]
    [file] = (tmp_path / "run" / "wandb").glob(f"offline-run-*/run-{name}.wandb")
    kept = file.read_bytes()
    assert b"hidden" in kept
    assert b"best_val" in kept
