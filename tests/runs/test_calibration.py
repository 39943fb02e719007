"""Runs whose model is calibrated on validation nodes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.baselines.problems import small
from tests.messages import refused
from vrgcn import train
from vrgcn.graph.graph import Graph
from vrgcn.inference.calibration import ENOUGH
from vrgcn.inference.predict import predict

SETTINGS: dict[str, Any] = {"hidden": 8, "epochs": 3, "diagnostics": 0, "smooth": "never"}
MANY = 3 * ENOUGH


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_a_run_with_enough_validation_nodes_is_calibrated(tmp_path: Path) -> None:
    run = train(small(nodes=MANY), out=tmp_path / "run", **SETTINGS)
    found = run.saved.calibration
    assert found is not None
    assert (found.fitted, len(found.scores)) == (200, 200)
    graph = run.graph()
    assert found.temperature != 1
    outputs = predict(run.saved.model, graph) / found.temperature
    torch.testing.assert_close(run.predict(), outputs)


def test_a_run_with_few_is_calibrated_if_it_is_asked_to(tmp_path: Path) -> None:
    few = small(nodes=MANY - 9)
    assert len(few.val) < ENOUGH
    assert train(few, out=tmp_path / "auto", **SETTINGS).saved.calibration is None
    asked = train(few, out=tmp_path / "always", calibrate="always", **SETTINGS)
    assert asked.saved.calibration is not None
    never = train(small(nodes=MANY), out=tmp_path / "no", calibrate="never", **SETTINGS)
    assert never.saved.calibration is None
    nothing = small(val=None)
    with refused():
        train(nothing, out=tmp_path / "none", calibrate="always", **SETTINGS)


def test_labels_of_test_nodes_change_nothing_of_a_run(tmp_path: Path) -> None:
    graph = small(nodes=MANY)
    assert graph.labels is not None
    labels = graph.labels.clone()
    labels[graph.test] = (labels[graph.test] + 1) % 3
    other = Graph.from_parts(
        graph.adjacency,
        graph.features,
        labels,
        {name: graph.split(name) for name in ("train", "val", "test")},
        3,
    )
    runs = [train(g, out=tmp_path / str(n), **SETTINGS) for n, g in enumerate((graph, other))]
    first, second = (run.saved.calibration for run in runs)
    assert first is not None
    assert second is not None
    assert first.settings == second.settings
    assert torch.equal(first.scores, second.scores)


def test_a_run_that_goes_on_is_calibrated_anew(tmp_path: Path) -> None:
    graph = small(nodes=MANY)
    train(graph, out=tmp_path / "run", **SETTINGS)
    longer = train(graph, out=tmp_path / "run", resume=True, **SETTINGS | {"epochs": 5})
    at_once = train(graph, out=tmp_path / "once", **SETTINGS | {"epochs": 5})
    assert torch.equal(longer.predict(), at_once.predict())


def test_predict_adds_sets_and_evaluate_shows_what_they_cover(tmp_path: Path, vrgcn) -> None:
    graph = small(nodes=MANY)
    run = train(graph, out=tmp_path / "run", **SETTINGS)
    code, _, err = vrgcn(
        "predict", tmp_path / "run", "--coverage", "0.9", "--out", tmp_path / "sets.csv"
    )
    assert code == 0, err
    rows = table(tmp_path / "sets.csv")
    found = run.saved.calibration
    assert found is not None
    chances = predict(run.saved.model, run.graph()).double().softmax(1)
    limit = found.limit(0.9)
    for row, own in zip(rows, chances.tolist(), strict=True):
        inside = [str(c) for c in range(3) if 1 - own[c] <= limit or own[c] == max(own)]
        assert row["set"] == "|".join(inside)

    code, out, err = vrgcn("evaluate", tmp_path / "run")
    assert code == 0, err
    trust = json.loads((tmp_path / "run" / "evaluation-test.json").read_text())["trust"]
    assert graph.labels is not None
    held = [
        str(int(graph.labels[n])) in rows[n]["set"].split("|") for n in run.graph().test.tolist()
    ]
    assert trust["coverage"]["0.9"]["share"] == pytest.approx(sum(held) / len(held))
    assert trust["temperature"] == found.temperature
    names = {group["name"] for group in trust["coverage_groups"]}
    assert {"class 0", "class 1", "class 2"} < names
    assert f"cover {sum(held) / len(held):.1%} of test nodes (promised: 90%)" in " ".join(
        out.split()
    )
    page = (tmp_path / "run" / "evaluation-test.html").read_text(encoding="utf-8")
    assert "reliability on the test nodes" in page

    code, out, err = vrgcn("evaluate", tmp_path / "run", "--split", "val")
    assert code == 0, err
    assert "it was fitted on these nodes" in out
    assert "trust" not in json.loads((tmp_path / "run" / "evaluation-val.json").read_text())

    code, out, err = vrgcn("report", tmp_path / "run", "--out", tmp_path / "report.html")
    assert code == 0, err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "reliability on the test nodes" in page
    assert "coverage of test nodes (promised: 90%)" in page


def test_intervals_of_numbers_are_columns(tmp_path: Path, vrgcn) -> None:
    run = train(small("regression", nodes=MANY), out=tmp_path / "run", **SETTINGS)
    out = tmp_path / "numbers.csv"
    code, _, err = vrgcn("predict", tmp_path / "run", "--coverage", "0.8", "--out", out)
    assert code == 0, err
    first = table(out)[0]
    assert run.saved.calibration is not None
    limit, middle = run.saved.calibration.limit(0.8), float(run.predict()[0, 0])
    assert float(first["low"]) == pytest.approx(middle - limit)
    assert float(first["high"]) == pytest.approx(middle + limit)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--coverage", "1.2"), "--coverage lies between 0 and 1"),
        (("--coverage", "0.996"), "needs at least 249 nodes"),
    ],
)
def test_a_coverage_that_cannot_be_promised_is_refused(
    tmp_path: Path, vrgcn, flags: tuple[str, ...], words: str
) -> None:
    train(small(nodes=MANY), out=tmp_path / "run", **SETTINGS | {"epochs": 1})
    code, _, err = vrgcn("predict", tmp_path / "run", *flags, "--out", tmp_path / "p.csv")
    assert code != 0
    assert words in err
    assert not (tmp_path / "p.csv").exists()
