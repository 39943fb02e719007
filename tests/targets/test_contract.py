"""What every target does alike: labels, links, values and relations."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import vrgcn as package
from tests.messages import refused
from tests.targets.shop import LIKED, STARS, evaluated, save
from vrgcn import Run, load_run
from vrgcn.inference.predict import exact_sweeps
from vrgcn.targets.scored import scored_edges

Command = Callable[..., tuple[int, str, str]]
# Splits are columns of the tables.
TARGETS: dict[str, dict[str, Any]] = {
    "labels": {"estimator": "two-way"},
    "links": {"predict": LIKED, "split_column": "part", "embedding": 4},
    "values": {"predict": STARS, "split_column": "part", "embedding": 4, "estimator": "ns"},
    "relations": {"predict": "relations", "layers": 1, "embedding": 4, "estimator": "cvd"},
}
SMALL: dict[str, Any] = {"hidden": 4, "batch_size": 32, "model": "graphsage"}
EPOCHS = 3

every_target = pytest.mark.parametrize("name", TARGETS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("shop") / "store")


@pytest.fixture(scope="module")
def runs(store: Path) -> Iterator[Callable[[str], Run]]:
    """Give the run of a target, trained once."""
    made: dict[str, Run] = {}

    def run(name: str) -> Run:
        if name not in made:
            made[name] = train(store, store.parent / name, name)
        return made[name]

    return run


def train(graph: Path, out: Path, name: str, **more: Any) -> Run:
    settings = {"epochs": EPOCHS, **SMALL, **TARGETS[name], **more}
    return package.train(graph, out=out, **settings)


def weights(run: Run) -> bytes:
    return (run.folder / "model.safetensors").read_bytes()


@every_target
def test_a_run_that_is_resumed_and_one_on_disk_have_the_bits_of_one_that_was_not(
    runs, store: Path, tmp_path: Path, name: str
) -> None:
    whole = runs(name)
    train(store, tmp_path / "part", name, epochs=1, checkpoint_every="1")
    part = package.train(store, out=tmp_path / "part", resume=True, epochs=EPOCHS)
    assert [point["loss"] for point in part.curve] == [point["loss"] for point in whole.curve]
    assert weights(part) == weights(whole)
    assert weights(train(store, tmp_path / "disk", name, memory="disk")) == weights(whole)


@every_target
def test_nothing_of_the_test_split_changes_a_bit_of_what_is_trained(
    runs, tmp_path: Path, name: str
) -> None:
    wrong = "links" if name == "relations" else name
    garbage = save(tmp_path / "garbage", garbage=wrong)
    other = train(garbage, tmp_path / "other", name)
    assert not torch.equal(held_out(other), held_out(runs(name)))
    assert weights(other) == weights(runs(name))


def held_out(run: Run) -> Tensor:
    """What the test split of a run says."""
    graph = run.graph()
    edges = scored_edges(graph)
    if edges is None:
        assert graph.labels is not None
        return graph.labels[graph.test]
    test = edges.predicted.split("test")
    values = getattr(edges.predicted, "values", {})
    return torch.cat([test.flatten().double(), values.get("test", test[:0, 0]).double()])


@every_target
def test_a_search_and_the_evaluation_of_its_best_have_one_score(
    vrgcn: Command, store: Path, tmp_path: Path, name: str
) -> None:
    flags = [
        word
        for setting, value in {**SMALL, **TARGETS[name], "epochs": 1}.items()
        for word in (f"--{setting.replace('_', '-')}", value)
    ]
    found = tmp_path / "found"
    code, _, error = vrgcn("tune", store, *flags, "--trials", 1, "--no-baselines", "--out", found)
    assert code == 0, error
    (trial,) = [load_run(folder) for folder in (found / "trials").iterdir()]
    best = load_run(found / "best")
    assert trial.result is not None
    assert best.result is not None
    assert trial.result["test"] is None
    assert trial.result["val"] == best.result["val"]
    assert vrgcn("evaluate", found / "best")[0] == 0
    scored = evaluated(found / "best", best.result["metric"])
    assert scored == pytest.approx(best.result["test"], abs=1e-6)


def rows_of(run: Run) -> tuple[list[list[str]], Tensor]:
    """Rows of a table of three test edges, by the users' ids, and what the model gives to them."""
    graph = run.graph()
    edges = scored_edges(graph)
    assert edges is not None
    rows = edges.predicted.split("test")[:3]
    first = graph.kinds.range("item").start
    text = [[str(row[0]), LIKED, str(row[-1] - first)] for row in rows.tolist()]
    decoder: Any = run.saved.model.decoder
    embeddings = exact_sweeps(run.saved, graph).outputs(None)
    return text, edges.scorer(decoder, embeddings).score(rows)


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "labels"])
def test_edges_of_a_table_are_scored_under_the_users_ids(
    vrgcn: Command, runs, tmp_path: Path, name: str
) -> None:
    rows, scores = rows_of(runs(name))
    with (tmp_path / "asked.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["source", "relation", "target"], *rows])
    code, out, error = vrgcn(
        "predict", runs(name).folder, "--pairs", "asked.csv", "--out", "scored.csv"
    )
    assert code == 0, error
    assert " of 3 " in out
    written = list(csv.reader((tmp_path / "scored.csv").read_text().splitlines()))[1:]
    assert [[row[0], row[-2]] for row in written] == [[row[0], row[2]] for row in rows]
    np.testing.assert_allclose([float(row[-1]) for row in written], scores.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("labels", {"leave_one_out": True}),
        ("labels", {"negatives": 5}),
        ("labels", {"metric": "hits@3"}),
        ("labels", {"loss": "bpr"}),
        ("links", {"metric": "rmse"}),
        ("links", {"loss": "mse"}),
        ("links", {"class_weights": "balanced"}),
        ("links", {"calibrate": "always"}),
        ("values", {"temperature": 0.5}),
        ("values", {"metric": "auc"}),
        ("values", {"loss": "softmax"}),
        ("relations", {"metric": "auc"}),
        ("relations", {"pair_batches": "nodes"}),
        ("relations", {"own_edges": "exclude"}),
        ("relations", {"leave_one_out": True}),
        ("relations", {"val_negatives": "none.csv"}),
        ("relations", {"decoder": "dot"}),
        ("relations", {"calibrate": "always"}),
    ],
)  # fmt: skip
def test_settings_of_another_target_are_refused(
    store: Path, tmp_path: Path, name: str, flags: dict[str, Any]
) -> None:
    with refused():
        train(store, tmp_path / "run", name, **flags)
